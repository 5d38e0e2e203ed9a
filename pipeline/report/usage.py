"""What a history shows in a report: its period, and what groups of clients used in it second by second, drawn beside their limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from typing import Any, Final
from xml.etree.ElementTree import Element

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.metrics import QuotaType, spelled
from quotascope.pages.charts import Curve, Format, LimitLine, heat_map, key, line_chart
from quotascope.pages.markup import Child, element
from quotascope.pages.words import shown

from ..errors import PipelineError
from ..history import History, rollup
from ..history.charges import SECOND_MS as _SECOND
from ..table import File, Table
from ..week import HOURS, QUARTER_MS, hours_of_week, seen_hours
from .words import rate, spaced

PIECES: Final = 360
_COLUMNS: Final = ("user", "client_id", "broker", "quota_type", "start", "amount")
_WINDOWS: Final = 11
"""Seconds over which a broker averages by default (`quota.window.num` of `quota.window.size.seconds`)."""
_SCALES: Final = {QuotaType.REQUEST: 1e-4}
"""From the unit of a roll-up to that of a limit: us of thread time a second are that many percent of a thread."""

_WEEK = "The highest peak in each hour of the week; gray hours are not in the history"

_FEWEST_HOURS: Final = 6
"""Of a week, in which requests were logged, for a map of its hours."""

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]


class EmptyHistory(PipelineError):
    """A history without a single request."""


@dataclass(frozen=True, slots=True)
class LimitGroup:
    """Clients that share a limit of one quota type; None is a dimension that plays no part."""

    kind: QuotaType
    user: str | None
    client_id: str | None


@dataclass(slots=True, kw_only=True)
class GroupSummary:
    """The limits that candidates set for a group, and what they would do to it."""

    group: LimitGroup
    muted_ms: int = 0
    """Of all candidates and clients together."""
    amount: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    """By candidate."""

    def weight(self) -> tuple[int, float]:
        """Throttled time, and usage as a part of the lowest limit: which groups are shown first."""
        lowest = min(self.limits.values(), default=0.0)
        return self.muted_ms, self.amount / lowest if lowest > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUsage:
    """What a group used on the broker where its peak was highest."""

    broker: str
    usage: Curve
    by_hour: Sequence[float]
    """The highest peak in each hour of the week, Monday 00h first; NaN where the history has no request, 0 where it has none of the group."""


def span_ms(history: History) -> tuple[int, int]:
    """
    The second of the first request of a history, and the end of the second of its last one: ms since 1970.

    The period is that of the requests that are replayed, whatever days the roll-ups still have.

    Raises:
        EmptyHistory: there is no request.

    """
    table = history.detail
    files = [file for file in table.files() if file.rows]
    if not files:
        raise EmptyHistory(f"{table.storage.uri}: the history is empty: ingest request logs first")
    spans = [_span_of(table, file) for file in files]
    first, last = (min(span[0] for span in spans), max(span[1] for span in spans))
    return first - first % _SECOND, last - last % _SECOND + _SECOND


def _span_of(table: Table, file: File) -> tuple[int, int]:
    """The first and the last time of a file; it is read where another program wrote the commit without them."""
    if file.first is not None and file.last is not None:
        return file.first, file.last
    times = table.read(["timestamp"], files=[file])["timestamp"].to_numpy()
    return int(times.min()), int(times.max())


def usages(
    history: History, groups: Sequence[LimitGroup], span: tuple[int, int], zone: tzinfo
) -> dict[LimitGroup, GroupUsage]:
    """What groups used within the history's period; those that used nothing are missing."""
    return usages_of(_seconds(history, span), groups, span, zone)


def _seconds(history: History, span: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    """The sums of a period; for days that only the roll-up lost, they are computed from the requests again."""
    table, detail = history.seconds, history.detail
    begin, end = span
    for file in table.files():
        for batch in table.batches([file], _COLUMNS):
            starts = batch.column("start").to_numpy()
            yield batch.filter(pa.array((starts >= begin) & (starts < end)))
    kept = table.first_kept_day
    for file in detail.files():
        if kept and file.day < kept:
            for batch in detail.batches([file]):
                sums = rollup(pa.Table.from_batches([batch]))
                yield from sums.select(_COLUMNS).to_batches()


@dataclass(slots=True)
class _Seconds:
    """What was used on one broker; a second may come in several rows."""

    starts: list[_Ints] = field(default_factory=list)
    amounts: list[_Ints] = field(default_factory=list)

    def sums(self) -> tuple[_Ints, _Ints]:
        """Seconds in order, and what was used in each."""
        starts = np.concatenate(self.starts)
        seconds, places = np.unique(starts, return_inverse=True)
        sums = np.zeros(seconds.size, np.int64)
        np.add.at(sums, places, np.concatenate(self.amounts))
        return seconds, sums


def usages_of(
    batches: Iterable[pa.RecordBatch], groups: Sequence[LimitGroup], span: tuple[int, int], zone: tzinfo
) -> dict[LimitGroup, GroupUsage]:
    """
    What the groups used; those that used nothing are missing.

    Args:
        batches: of a roll-up by seconds (`quotascope.pipeline.history.ROLLUP`), in any order; only rows of these groups are kept.
        groups: those to be drawn.
        span: beginning and end of the history.
        zone: time zone of hours and weekdays.

    """
    found: dict[LimitGroup, dict[str, _Seconds]] = {group: {} for group in groups}
    quarters = np.zeros(0, np.int64)
    for batch in batches:
        starts: Any = batch.column("start").to_numpy()
        quarters = np.union1d(quarters, starts // QUARTER_MS)
        for group in groups:
            wanted = {"quota_type": group.kind.label, "user": group.user, "client_id": group.client_id}
            keep = np.ones(batch.num_rows, np.bool_)
            for name, value in wanted.items():
                if value is not None:
                    keep &= _equal(batch, name, value)
            rows = batch.filter(pa.array(keep))
            for broker in map(str, rows.column("broker").unique().to_pylist()):
                own = rows.filter(pa.array(_equal(rows, "broker", broker)))
                seconds = found[group].setdefault(broker, _Seconds())
                seconds.starts.append(own.column("start").to_numpy())
                seconds.amounts.append(own.column("amount").to_numpy())
    seen = seen_hours(quarters * QUARTER_MS, zone)
    return {group: _busiest(group.kind, brokers, span, zone, seen) for group, brokers in found.items() if brokers}


def _equal(batch: pa.RecordBatch, name: str, value: str) -> NDArray[np.bool_]:
    column: Any = batch.column(name)
    same: NDArray[np.bool_] = pc.equal(column, pa.scalar(value)).to_numpy(zero_copy_only=False)
    return same


def _busiest(
    kind: QuotaType, brokers: dict[str, _Seconds], span: tuple[int, int], zone: tzinfo, seen: NDArray[np.bool_]
) -> GroupUsage:
    made = [(broker, *seconds.sums()) for broker, seconds in sorted(brokers.items())]
    highest = max(made, key=lambda each: peaks(kind, each[1], each[2]).max())
    broker, starts, amounts = highest
    found = np.zeros(HOURS)
    np.maximum.at(found, hours_of_week(starts, zone), peaks(kind, starts, amounts))
    return GroupUsage(
        broker=broker,
        usage=curve_of(kind, starts, amounts, span),
        by_hour=np.where(found > 0, found, np.where(seen, 0.0, np.nan)).tolist(),
    )


def curve_of(kind: QuotaType, starts_ms: _Ints, amounts: _Ints, span: tuple[int, int]) -> Curve:
    """
    Usage over time, in at most `PIECES` pieces; its rates are in the unit of the quota type, its peaks the highest of `peaks`.

    Args:
        kind: gives the unit.
        starts_ms: when the seconds begin, in order; those without usage are missing.
        amounts: what was used in each, as `quotascope.pipeline.history.ROLLUP` counts.
        span: the beginning and the end of what is drawn.

    """
    begin, end = span
    begin -= begin % _SECOND
    piece = max(1, -(-(end - begin) // (PIECES * _SECOND))) * _SECOND
    pieces, first = np.unique((starts_ms - begin) // piece, return_index=True)
    sums = np.add.reduceat(_rates(kind, amounts), first)
    highest = np.maximum.reduceat(peaks(kind, starts_ms, amounts), first)
    return Curve(
        begin_ms=begin,
        end_ms=max(end, begin + piece),
        piece_ms=piece,
        times_ms=(begin + pieces * piece).tolist(),
        mean=(sums * (_SECOND / piece)).tolist() if piece >= _WINDOWS * _SECOND else (),
        peak=highest.tolist(),
    )


def peaks(kind: QuotaType, starts_ms: _Ints, amounts: _Ints) -> _Floats:
    """For each second the mean rate over the 11 s that end with it: about what a broker compares with a limit."""
    total = np.concatenate(([0.0], np.cumsum(_rates(kind, amounts))))
    oldest = np.searchsorted(starts_ms, starts_ms - (_WINDOWS - 1) * _SECOND)
    sums: _Floats = total[1:] - total[oldest]
    return (np.maximum(sums, 0.0) / _WINDOWS).astype(np.float64)


def _rates(kind: QuotaType, amounts: _Ints) -> _Floats:
    return (amounts * _SCALES.get(kind, 1.0)).astype(np.float64)


def group_section(
    summary: GroupSummary, drawn: GroupUsage, colors: Mapping[str, int], zone: tzinfo
) -> Iterator[Element]:
    """
    A heading, a line chart with its legend, and a heat map where the history has at least six hours of the week.

    Args:
        summary: the group and its limits by candidate.
        drawn: its usage.
        colors: number of the color of each candidate.
        zone: time zone of the labels below the time axis.

    """
    group = summary.group
    unit = partial(rate, group.kind)
    limits = [LimitLine(name=name, value=value, color=colors[name]) for name, value in summary.limits.items()]
    chart, left_out = line_chart(drawn.usage, limits, unit, zone)
    yield element("h3", f"{spelled(group.user, group.client_id)}: {spaced(group.kind.label)}")
    yield element("p", f"on broker {shown(drawn.broker)}", class_="where")
    yield element("p", *_legend(drawn, limits, unit), class_="legend")
    yield chart
    for limit in left_out:
        text = f"Far above: {shown(limit.name)}, {unit(limit.value)}"
        yield element("p", text, class_="where")
    if sum(map(math.isfinite, drawn.by_hour)) >= _FEWEST_HOURS:
        yield element("p", _WEEK, class_="where above")
        yield heat_map(drawn.by_hour, unit, _WEEK)


def _legend(drawn: GroupUsage, limits: Sequence[LimitLine], unit: Format) -> Iterator[Child]:
    if drawn.usage.mean:
        yield key("used, mean", element("path", class_="mean", d="M0 5H22"))
    yield key("peak", element("rect", class_="peak", width=22, height=10))
    by_value: dict[float, list[LimitLine]] = {}
    for limit in limits:
        by_value.setdefault(limit.value, []).append(limit)
    for value, alike in by_value.items():
        names = ", ".join(shown(limit.name, 60) for limit in alike)
        mark = alike[-1].mark(d="M0 5H22")  # the last is drawn above the others
        yield key(f"{unit(value)}: {names}", mark)
