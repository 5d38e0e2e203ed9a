"""
Usage of clients over time.

The period of a history, rates by second, and hours of the week (Monday 00h is 0, Sunday 23h is 167).
"""

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

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.charts import DAYS, Curve
from quotascope.pages.words import amount, counted, seconds

from .errors import PipelineError
from .history import History, rollup
from .history.charges import SECOND_MS as _SECOND
from .replay.compiled import Floats, Ints
from .table import File, Table
from .table.storage import DAY_MS

PIECES: Final = 360
"""Largest number of pieces of a curve."""
_COLUMNS: Final = ("user", "client_id", "broker", "quota_type", "start", "amount")
_WINDOWS: Final = 11
"""Number of seconds over which a broker averages by default (`quota.window.num` of `quota.window.size.seconds`)."""
_SCALES: Final = {QuotaType.REQUEST: 1e-4}
"""
Factor from the unit of a roll-up to that of a limit.

Us of thread time a second are that many percent of a thread.
"""
HOURS: Final = 168
"""Number of hours of a week."""
QUARTER_MS: Final = 900_000
"""Length of a quarter of an hour, ms."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARABLE: Final = 2.0
"""Greatest ratio of replayed to logged throttle time that says how accurate the replay is, and inverse of the least."""
_FARTHEST_MS: Final = 250_000_000_000_000
"""Latest time, in the year 9892: later ones are outside Python's calendar."""


class EmptyHistory(PipelineError):
    """A history without a single request."""


@dataclass(frozen=True, slots=True)
class LimitGroup:
    """Clients that share a limit of one quota type; a name is None if the limit does not depend on it."""

    kind: QuotaType
    user: str | None
    client_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUsage:
    """Usage of a group on the broker with the highest peak."""

    broker: str
    usage: Curve
    by_hour: Sequence[float]
    """
    Highest peak in each hour of the week, Monday 00h first.

    It is NaN if the history has no request, and 0 if it has none of the group.
    """


def span_ms(history: History, *tables: Table) -> tuple[int, int]:
    """
    Return the begin of the second with the first request of a history, and the end of the second with its last request.

    Both are ms since 1970. The requests of the history are those that are replayed. Rows of `tables`, such as roll-ups
    with earlier days, extend the period.

    Raises:
        EmptyHistory: there is no request.

    """
    spans = [_span_of(table, file) for table in (history.detail, *tables) for file in table.files() if file.rows]
    if not spans:
        raise EmptyHistory(f"{history.detail.storage.uri}: the history is empty: ingest request logs first")
    first_ms, last_ms = (min(span[0] for span in spans), max(span[1] for span in spans))
    return first_ms - first_ms % _SECOND, last_ms - last_ms % _SECOND + _SECOND


def _span_of(table: Table, file: File) -> tuple[int, int]:
    """Return the first and the last time in a file; read the file if another program committed it without them."""
    if file.first_ms is not None and file.last_ms is not None:
        return file.first_ms, file.last_ms
    name = table.layout.day_of or ""
    times = table.read([name], files=[file])[name].to_numpy()
    return int(times.min()), int(times.max())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedThrottle:
    """Throttles in the log, to which a replay of the quotas that were in force must come close."""

    requests: int = 0
    """Requests that were throttled or refused."""
    throttle_ms: int = 0
    """Sum of their throttle times in the responses, ms."""

    @classmethod
    def of(cls, history: History) -> LoggedThrottle:
        """Return the throttles of a history: sums of the request quota, which every throttled request charges once."""
        columns = ("quota_type", "throttled", "throttle_ms")
        requests = throttle_ms = 0
        for batch in history.seconds.batches(history.seconds.files(), columns):
            rows = batch.filter(pc.field("quota_type") == QuotaType.REQUEST.label)
            requests += pc.sum(rows["throttled"]).as_py() or 0
            throttle_ms += pc.sum(rows["throttle_ms"]).as_py() or 0
        return cls(requests=requests, throttle_ms=throttle_ms)

    def ratio(self, replayed_ms: int) -> float | None:
        """Return the throttle time of a replay, ms, divided by the logged one; None if none was logged."""
        return replayed_ms / self.throttle_ms if self.throttle_ms else None

    def against(self, replayed_ms: int, request_ms: int) -> str:
        """
        Return sentences that compare the replay of the first candidate with the log.

        If the throttle times differ by more than a factor of `_COMPARABLE`, there is no ratio, but the possible causes.

        Args:
            replayed_ms: throttle time of the replay, ms.
            request_ms: part of it that request quotas imposed, ms.

        """
        logged = f"{seconds(self.throttle_ms / 1_000)} of throttle time for {counted(self.requests, 'request')}"
        ratio = self.ratio(replayed_ms)
        sentence = (
            f"Calibration: the log has {logged}; the replay of the first candidate has {seconds(replayed_ms / 1_000)}"
        )
        if ratio is None:
            return f"{sentence}. Without logged throttle time, the log cannot show how far to trust a replay."
        if not 1 / _COMPARABLE <= ratio <= _COMPARABLE:
            return (
                f"{sentence}. They are too far apart to compare: other quotas were in force, or the log lacks requests "
                "or thread time."
            )
        hint = (
            f" Request quotas imposed {seconds(request_ms / 1_000)} of it: the log lacks part of their thread time, "
            "and errors may cancel out."
        )
        trust = "If that is what was in force, a replay can be trusted as far as both agree."
        return f"{sentence} ({ratio:.2f} times that). {trust}{hint if request_ms else ''}"

    def values(self, replayed_ms: int, request_ms: int) -> dict[str, float | None]:
        """Return the comparison for JSON, of the same arguments."""
        return {
            "logged_throttled_requests": self.requests,
            "logged_throttle_seconds": self.throttle_ms / 1_000,
            "replayed_throttle_seconds": replayed_ms / 1_000,
            "replayed_request_throttle_seconds": request_ms / 1_000,
            "ratio": self.ratio(replayed_ms),
        }


def usages(
    history: History, groups: Sequence[LimitGroup], span: tuple[int, int], zone: tzinfo
) -> dict[LimitGroup, GroupUsage]:
    """Return the usage of groups in a period of a history; groups without usage are missing."""
    return usages_of(sums_of(history, span, _COLUMNS), groups, span, zone)


def sums_of(history: History, span: tuple[int, int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """
    Yield the sums (`ROLLUP`) of a period, ms since 1970.

    Sums of days that only the roll-up has dropped are computed from the requests. A client, quota type and second may
    have several rows, which add up. `start` must be among the columns.
    """
    table, detail = history.seconds, history.detail
    begin, end = span
    # late requests of dropped days may be in both tables, so days are taken from one of them
    kept_day = table.first_kept_day or 0
    is_kept: Any = pc.field("start") >= kept_day * DAY_MS
    inside: Any = (pc.field("start") >= begin) & (pc.field("start") < end)
    for batch in table.batches([file for file in table.files() if file.overlaps(begin, end)], columns):
        yield from pa.Table.from_batches([batch]).filter(inside & is_kept).to_batches()
    for batch in detail.batches([file for file in detail.files() if file.day < kept_day]):
        sums = rollup(pa.Table.from_batches([batch]))
        yield from sums.filter(inside & ~is_kept).select(columns).to_batches()


def usages_of(
    batches: Iterable[pa.RecordBatch], groups: Sequence[LimitGroup], span: tuple[int, int], zone: tzinfo
) -> dict[LimitGroup, GroupUsage]:
    """
    Return the usage of the groups; groups without usage are missing.

    Args:
        batches: batches of a roll-up by seconds (`quotascope.pipeline.history.ROLLUP`), in any order; only rows of
            these groups are kept.
        groups: the groups that are drawn.
        span: beginning and end of the history.
        zone: time zone of hours and weekdays.

    """
    rows_by_group: dict[LimitGroup, list[pa.Table]] = {group: [] for group in groups}
    quarters = np.zeros(0, np.int64)
    for batch in batches:
        starts: Any = batch.column("start").to_numpy()
        quarters = np.union1d(quarters, starts // QUARTER_MS)
        rows = pa.Table.from_batches([batch])
        for group, parts in rows_by_group.items():
            values = {"quota_type": group.kind.label, "user": group.user, "client_id": group.client_id}
            chosen = [pc.field(name) == value for name, value in values.items() if value is not None]
            parts.append(rows.filter(reduce(and_, chosen)).select(("broker", "start", "amount")))
    hours = seen_hours(quarters * QUARTER_MS, zone)
    usages = {group: _busiest(group.kind, parts, span, zone, hours) for group, parts in rows_by_group.items() if parts}
    return {group: usage for group, usage in usages.items() if usage is not None}


def _busiest(
    kind: QuotaType, parts: Sequence[pa.Table], span: tuple[int, int], zone: tzinfo, seen: NDArray[np.bool_]
) -> GroupUsage | None:
    """
    Return the usage of a group on the broker with the highest peak; None without usage.

    `parts` are tables of `broker`, `start` and `amount`; `seen` is a mask of the hours of the week with requests.
    """
    sums = pa.concat_tables(parts).group_by(["broker", "start"]).aggregate([("amount", "sum")])
    sums = sums.sort_by([("broker", "ascending"), ("start", "ascending")])
    usages = []
    for broker in map(str, sums["broker"].unique().to_pylist()):
        sums_of_broker = sums.filter(pc.field("broker") == broker)
        starts, amounts = sums_of_broker["start"].to_numpy(), sums_of_broker["amount_sum"].to_numpy()
        usages.append((broker, starts, amounts, peaks(kind, starts, amounts)))
    if not usages:
        return None
    broker, starts, amounts, highest = max(usages, key=lambda usage: usage[3].max())
    by_hour = np.zeros(HOURS)
    np.maximum.at(by_hour, hours_of_week(starts, zone), highest)
    return GroupUsage(
        broker=broker,
        usage=curve_of(kind, starts, amounts, span),
        by_hour=np.where(by_hour > 0, by_hour, np.where(seen, 0.0, np.nan)).tolist(),
    )


def curve_of(kind: QuotaType, starts_ms: Ints, amounts: Ints, span: tuple[int, int]) -> Curve:
    """
    Return usage over time in at most `PIECES` pieces, in the unit of the quota type: means, and the highest `peaks`.

    Args:
        kind: quota type, which gives the unit.
        starts_ms: begins of seconds, in order; seconds without usage are missing.
        amounts: amount of each second, as `quotascope.pipeline.history.ROLLUP` counts.
        span: beginning and end of the curve.

    """
    begin, end = span
    begin -= begin % _SECOND
    # whole seconds, rounded up so that there are no more than PIECES pieces
    piece = max(1, -(-(end - begin) // (PIECES * _SECOND))) * _SECOND
    pieces, first_rows = np.unique((starts_ms - begin) // piece, return_index=True)
    sums = np.add.reduceat(_rates(kind, amounts), first_rows)
    highest = np.maximum.reduceat(peaks(kind, starts_ms, amounts), first_rows)
    # in pieces shorter than the windows of `peaks`, a mean could be above the peak
    has_means = piece >= _WINDOWS * _SECOND
    return Curve(
        begin_ms=begin,
        end_ms=max(end, begin + piece),
        piece_ms=piece,
        times_ms=(begin + pieces * piece).tolist(),
        mean=(sums * (_SECOND / piece)).tolist() if has_means else (),
        peak=highest.tolist(),
    )


def peaks(kind: QuotaType, starts_ms: Ints, amounts: Ints) -> Floats:
    """
    Return the mean rate over the 11 s that end with a second, by second.

    It is about the rate that a broker compares with a limit.
    """
    # sums of all seconds before each one, so that a difference of two is the sum of the seconds between them
    total = np.concatenate(([0.0], np.cumsum(_rates(kind, amounts))))
    oldest = np.searchsorted(starts_ms, starts_ms - (_WINDOWS - 1) * _SECOND)
    sums: Floats = total[1:] - total[oldest]
    return (np.maximum(sums, 0.0) / _WINDOWS).astype(np.float64)


def _rates(kind: QuotaType, amounts: Ints) -> Floats:
    """Return amounts of a second in the unit of the quota type."""
    return (amounts * _SCALES.get(kind, 1.0)).astype(np.float64)


def rate(kind: QuotaType, value: float) -> str:
    """
    Return a rate or a limit in the unit of its quota type: bytes/s, percent of one thread, mutations/s.

    >>> rate(QuotaType.PRODUCE, 2_104_000.0), rate(QuotaType.REQUEST, 2.5), rate(QuotaType.FETCH, 30.0)
    ('2.1 MB/s', '2.5 %', '30 B/s')
    """
    return f"{amount(value)}{kind.unit.short}"


def units_legend(kinds: Iterable[QuotaType]) -> str:
    """
    Return the explanation of the units of some quota types, for below a table; empty for bytes alone.

    >>> units_legend([QuotaType.PRODUCE, QuotaType.REQUEST])
    '%: percent of a thread'
    """
    present = set(kinds)
    parts = ["%: percent of a thread"] if QuotaType.REQUEST in present else []
    if QuotaType.CONTROLLER_MUTATION in present:
        parts.append("mut: controller mutations (partitions created, added or deleted)")
    return "; ".join(parts)


def hours_of_week(times_ms: Ints, zone: tzinfo) -> Ints:
    """
    Return the hour of the week of times (ms since 1970) in a time zone, with daylight saving time.

    It is computed once for each quarter of an hour, as the offsets of all zones are multiples of a quarter.
    """
    quarters = np.clip(times_ms, 0, _FARTHEST_MS) // QUARTER_MS
    seen, places = np.unique(quarters, return_inverse=True)
    ages = (timedelta(milliseconds=quarter * QUARTER_MS) for quarter in seen.tolist())
    moments = [(_EPOCH + age).astimezone(zone) for age in ages]
    hours = np.array([moment.weekday() * 24 + moment.hour for moment in moments], np.int64)
    return hours[places] if hours.size else np.zeros(0, np.int64)


def hour_name(hour: int) -> str:
    """
    Return the name of an hour of the week.

    >>> hour_name(0), hour_name(167)
    ('Mon 00h', 'Sun 23h')
    """
    return f"{DAYS[hour // 24]} {hour % 24:02}h"


def seen_hours(times_ms: Ints, zone: tzinfo) -> NDArray[np.bool_]:
    """Return a mask of the 168 hours of the week that contain any of some times (ms since 1970)."""
    seen = np.zeros(HOURS, np.bool_)
    seen[hours_of_week(times_ms, zone)] = True
    return seen
