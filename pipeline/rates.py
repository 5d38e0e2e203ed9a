"""What clients used over time: the period of a history, rates second by second, and hours of the week (Monday 00h is 0, Sunday 23h is 167)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import reduce
from operator import and_
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.metrics import QuotaType
from quotascope.pages.charts import DAYS, Curve
from quotascope.pages.words import amount

from .errors import PipelineError
from .history import History, rollup
from .history.charges import SECOND_MS as _SECOND
from .replay.compiled import Floats, Ints
from .table import File, Table
from .table.storage import DAY_MS

PIECES: Final = 360
_COLUMNS: Final = ("user", "client_id", "broker", "quota_type", "start", "amount")
_WINDOWS: Final = 11
"""Seconds over which a broker averages by default (`quota.window.num` of `quota.window.size.seconds`)."""
_SCALES: Final = {QuotaType.REQUEST: 1e-4}
"""From the unit of a roll-up to that of a limit: us of thread time a second are that many percent of a thread."""

_UNITS: Final = {
    QuotaType.PRODUCE: "B/s",
    QuotaType.FETCH: "B/s",
    QuotaType.REQUEST: "%",
    QuotaType.CONTROLLER_MUTATION: "mut/s",
}
HOURS: Final = 168
QUARTER_MS: Final = 900_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FARTHEST_MS: Final = 250_000_000_000_000
"""The year 9892: later ones are out of Python's calendar, earlier than its first are not meant either."""


class EmptyHistory(PipelineError):
    """A history without a single request."""


@dataclass(frozen=True, slots=True)
class LimitGroup:
    """Clients that share a limit of one quota type; None is a dimension that plays no part."""

    kind: QuotaType
    user: str | None
    client_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUsage:
    """What a group used on the broker where its peak was highest."""

    broker: str
    usage: Curve
    by_hour: Sequence[float]
    """The highest peak in each hour of the week, Monday 00h first; NaN where the history has no request, 0 where it has none of the group."""


def span_ms(history: History, *others: Table) -> tuple[int, int]:
    """
    The second of the first request of a history, and the end of the second of its last one: ms since 1970.

    The period is that of the requests that are replayed, whatever days the roll-ups still have, unless these are among the other tables.

    Raises:
        EmptyHistory: there is no request.

    """
    spans = [_span_of(table, file) for table in (history.detail, *others) for file in table.files() if file.rows]
    if not spans:
        raise EmptyHistory(f"{history.detail.storage.uri}: the history is empty: ingest request logs first")
    first, last = (min(span[0] for span in spans), max(span[1] for span in spans))
    return first - first % _SECOND, last - last % _SECOND + _SECOND


def _span_of(table: Table, file: File) -> tuple[int, int]:
    """The first and the last time of a file; it is read where another program wrote the commit without them."""
    if file.first is not None and file.last is not None:
        return file.first, file.last
    name = table.layout.day_of or ""
    times = table.read([name], files=[file])[name].to_numpy()
    return int(times.min()), int(times.max())


def usages(
    history: History, groups: Sequence[LimitGroup], span: tuple[int, int], zone: tzinfo
) -> dict[LimitGroup, GroupUsage]:
    """What groups used within the history's period; those that used nothing are missing."""
    return usages_of(sums_of(history, span, _COLUMNS), groups, span, zone)


def sums_of(history: History, span: tuple[int, int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """
    The sums (`ROLLUP`) of a period, ms since 1970; for days that only the roll-up lost, they are computed from the requests again.

    A client, quota type and second may have several rows, which add up. `start` must be among the columns.
    """
    table, detail = history.seconds, history.detail
    begin, end = span
    # late requests of days that were dropped are in both
    kept_day = table.first_kept_day or 0
    kept: Any = pc.field("start") >= kept_day * DAY_MS
    inside: Any = (pc.field("start") >= begin) & (pc.field("start") < end)
    for batch in table.batches([file for file in table.files() if file.overlaps(begin, end)], columns):
        yield from pa.Table.from_batches([batch]).filter(inside & kept).to_batches()
    for batch in detail.batches([file for file in detail.files() if file.day < kept_day]):
        sums = rollup(pa.Table.from_batches([batch]))
        yield from sums.filter(inside & ~kept).select(columns).to_batches()


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
    found: dict[LimitGroup, list[pa.Table]] = {group: [] for group in groups}
    quarters = np.zeros(0, np.int64)
    for batch in batches:
        starts: Any = batch.column("start").to_numpy()
        quarters = np.union1d(quarters, starts // QUARTER_MS)
        rows = pa.Table.from_batches([batch])
        for group, parts in found.items():
            wanted = {"quota_type": group.kind.label, "user": group.user, "client_id": group.client_id}
            chosen = [pc.field(name) == value for name, value in wanted.items() if value is not None]
            parts.append(rows.filter(reduce(and_, chosen)).select(("broker", "start", "amount")))
    seen = seen_hours(quarters * QUARTER_MS, zone)
    usages = {group: _busiest(group.kind, parts, span, zone, seen) for group, parts in found.items() if parts}
    return {group: usage for group, usage in usages.items() if usage is not None}


def _busiest(
    kind: QuotaType, parts: Sequence[pa.Table], span: tuple[int, int], zone: tzinfo, seen: NDArray[np.bool_]
) -> GroupUsage | None:
    """The usage on the broker with the highest peak, None without any; a second may come in several rows."""
    sums = pa.concat_tables(parts).group_by(["broker", "start"]).aggregate([("amount", "sum")])
    sums = sums.sort_by([("broker", "ascending"), ("start", "ascending")])
    made = []
    for broker in map(str, sums["broker"].unique().to_pylist()):
        own = sums.filter(pc.field("broker") == broker)
        starts, amounts = own["start"].to_numpy(), own["amount_sum"].to_numpy()
        made.append((broker, starts, amounts, peaks(kind, starts, amounts)))
    if not made:
        return None
    broker, starts, amounts, highest = max(made, key=lambda each: each[3].max())
    by_hour = np.zeros(HOURS)
    np.maximum.at(by_hour, hours_of_week(starts, zone), highest)
    return GroupUsage(
        broker=broker,
        usage=curve_of(kind, starts, amounts, span),
        by_hour=np.where(by_hour > 0, by_hour, np.where(seen, 0.0, np.nan)).tolist(),
    )


def curve_of(kind: QuotaType, starts_ms: Ints, amounts: Ints, span: tuple[int, int]) -> Curve:
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


def peaks(kind: QuotaType, starts_ms: Ints, amounts: Ints) -> Floats:
    """For each second the mean rate over the 11 s that end with it: about what a broker compares with a limit."""
    total = np.concatenate(([0.0], np.cumsum(_rates(kind, amounts))))
    oldest = np.searchsorted(starts_ms, starts_ms - (_WINDOWS - 1) * _SECOND)
    sums: Floats = total[1:] - total[oldest]
    return (np.maximum(sums, 0.0) / _WINDOWS).astype(np.float64)


def _rates(kind: QuotaType, amounts: Ints) -> Floats:
    return (amounts * _SCALES.get(kind, 1.0)).astype(np.float64)


def rate(kind: QuotaType, value: float) -> str:
    """
    A rate or a limit in the unit of its quota type: bytes/s, percent of one thread, mutations/s.

    >>> rate(QuotaType.PRODUCE, 2_104_000.0), rate(QuotaType.REQUEST, 2.5), rate(QuotaType.FETCH, 30.0)
    ('2.1 MB/s', '2.5 %', '30 B/s')
    """
    return f"{amount(value)}{_UNITS[kind]}"


def hours_of_week(times_ms: Ints, zone: tzinfo) -> Ints:
    """
    The hour of the week of each moment (ms since 1970) by the clocks of a zone, daylight saving included.

    Every zone is a whole number of quarters of an hour off UTC (today's are), so that one look for each quarter is enough.
    """
    quarters = np.clip(times_ms, 0, _FARTHEST_MS) // QUARTER_MS
    seen, places = np.unique(quarters, return_inverse=True)
    ages = (timedelta(milliseconds=each * QUARTER_MS) for each in seen.tolist())
    moments = [(_EPOCH + age).astimezone(zone) for age in ages]
    hours = np.array([each.weekday() * 24 + each.hour for each in moments], np.int64)
    return hours[places] if hours.size else np.zeros(0, np.int64)


def hour_name(hour: int) -> str:
    """
    An hour of the week.

    >>> hour_name(0), hour_name(167)
    ('Mon 00h', 'Sun 23h')
    """
    return f"{DAYS[hour // 24]} {hour % 24:02}h"


def seen_hours(times_ms: Ints, zone: tzinfo) -> NDArray[np.bool_]:
    """Which of the 168 hours have any of some moments (ms since 1970)."""
    seen = np.zeros(HOURS, np.bool_)
    seen[hours_of_week(times_ms, zone)] = True
    return seen
