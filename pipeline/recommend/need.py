"""Search for the lowest limit that an entity needs on a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

from ..rates import HOURS, hours_of_week
from ..replay.compiled import Floats, Ints
from ..replay.frame import in_order
from ..replay.ledger import ACTIVITY_MS
from .policy import ClusterWindows, Policy, limit_of, steps_of
from .sensors import QuotaSensor, mutations_of, sensors_of

CONTROLLER: Final = "controller"
"""Name in place of the broker for mutations, which the active controller measures for the whole cluster."""
AT_ONCE: Final = 15
"""Number of limits that are tried in one pass, so that a sixteenth of the limits remains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Lowest limit that keeps the policy's share on one broker."""

    broker: str
    entity: QuotaEntity
    kind: QuotaType
    steps: int
    """Limit as a number of `policy.STEPS`."""
    hour: int | None
    """Hour of the week that needs the highest limit; None if hours are not looked at, or the lowest limit is enough."""
    requests: int
    """Number of requests that such a quota checks."""
    unsized: int
    """Number of these requests with an unknown size. They count as 0 bytes, and may need a higher limit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seasons:
    """
    Requests of one sensor, and their seasons.

    A season is an hour of the week, or the whole period, in which the policy's share must be kept.
    """

    times_ms: Ints
    """Times of decisions, in order."""
    seasons: Ints
    """Season by request."""
    count: int
    """Number of seasons."""

    def shares(self, throttles_ms: Ints) -> Floats:
        """
        Return the throttled share of the active time, by season.

        As in the results of a replay, a request is activity for `ACTIVITY_MS`, a throttle is activity as long as it
        lasts, overlapping times count once, and everything ends `ACTIVITY_MS` after the last request. A time belongs to
        the season of the request with which it begins.
        """
        remaining_ms = self.times_ms[-1:] + ACTIVITY_MS - self.times_ms
        muted = np.clip(throttles_ms, 0, remaining_ms)
        throttled = self._covered_ms(muted)
        active = self._covered_ms(np.maximum(muted, ACTIVITY_MS))
        return np.divide(throttled, active, out=np.zeros(self.count), where=active > 0)

    def _covered_ms(self, lengths_ms: Ints) -> Floats:
        """Return the length of the union of `[time, time + length)` over all requests, by season."""
        ends = np.maximum.accumulate(self.times_ms + lengths_ms)
        previous_ends = np.concatenate((self.times_ms[:1], ends[:-1]))
        # of each request, only what lies after the ends of all earlier ones is new
        new_ms = np.maximum(ends - np.maximum(previous_ends, self.times_ms), 0)
        covered = np.bincount(self.seasons, weights=new_ms, minlength=self.count)
        return covered.astype(np.float64)


def needs(history: pa.Table, policy: Policy, windows: ClusterWindows) -> Iterator[Need]:
    """
    Yield the needs of the entities of a history, for each broker and quota type that they use.

    Requests without a client-id are left out if rules name client-ids, since no rule can name them.

    Args:
        history: all requests of the entities, in any order.
        policy: policy that the limits keep.
        windows: windows of the quotas.

    """
    names = policy.shape.names
    if "client_id" in names:
        has_client_id = pc.not_equal(history.column("client_id"), pa.scalar(""))
        history = history.filter(has_client_id)
    for rows in _groups(history, ("broker", *names)):
        for sensor in sensors_of(rows, windows):
            if sensor.kind in policy.kinds:
                yield _need(rows["broker"][0].as_py(), rows, sensor, policy)
    # a release that does not enforce these limits says so in its note
    if QuotaType.CONTROLLER_MUTATION in policy.kinds and windows.followed.enforces_controller_mutations:
        unknown = pc.is_valid(history.column("mutation_timestamp")).cast(pa.int32())
        requested: Any = pc.coalesce(history.column("mutations"), unknown)
        for rows in _groups(history.filter(pc.greater(requested, pa.scalar(0, pa.int32()))), names):
            sensor = mutations_of(rows, windows)
            if sensor.enough:  # without any known amount, the limit would be one for no usage at all
                yield _need(CONTROLLER, rows, sensor, policy)


def _groups(history: pa.Table, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the requests that have the same values of some columns, in order of their decisions."""
    if history.num_rows == 0:
        return
    columns: list[Any] = [history.column(name).combine_chunks() for name in names]
    groups = np.zeros(history.num_rows, np.int64)
    for column in columns:
        codes = column.dictionary_encode().indices.to_numpy()
        # the group so far and the value of this column as one number, and these numbers counted from 0 on
        groups = np.unique(groups * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    order = in_order(history, groups)
    starts = [0, *(np.flatnonzero(np.diff(groups[order])) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], history.num_rows], strict=True):
        yield history.take(order[start:end])


def _need(broker: str, rows: pa.Table, sensor: QuotaSensor, policy: Policy) -> Need:
    """Return the need of the entity whose requests (`rows`) a sensor would check."""
    times, kind = sensor.times_ms, sensor.kind
    seasons = Seasons(
        times_ms=times,
        seasons=hours_of_week(times, policy.zone) if policy.by_hour else np.zeros(times.size, np.int64),
        count=HOURS if policy.by_hour else 1
    )  # fmt: skip

    def shares(steps_tried: Sequence[int]) -> list[Floats]:
        """Return the throttled shares by season under some limits."""
        limits = np.array([limit_of(kind, steps) for steps in steps_tried])
        return [seasons.shares(row) for row in sensor.throttles_ms(limits)]

    def good(steps_tried: Sequence[int]) -> Sequence[bool]:
        """Return whether limits keep the policy's share in all seasons."""
        return [bool(np.all(season_shares <= policy.share)) for season_shares in shares(steps_tried)]

    steps, hour = lowest(good, steps_of(kind, sensor.enough)), None
    if policy.by_hour and steps > 1:  # the hour that is throttled most under the next lower limit
        (shares_below,) = shares([steps - 1])
        hour = int(np.argmax(shares_below))
    return Need(
        broker=broker,
        entity=QuotaEntity(**{name: rows[name][0].as_py() for name in policy.shape.names}),
        kind=kind,
        steps=steps,
        hour=hour,
        requests=times.size,
        unsized=sensor.unsized
    )  # fmt: skip


Good = Callable[[Sequence[int]], Sequence[bool]]
"""Function that returns whether limits, as numbers of steps, are good enough. All limits above a good one are good."""


def lowest(good: Good, high: int) -> int:
    """
    Return the lowest good number from 1 to `high`, which is assumed to be good.

    It takes as many calls of `good` as `high` has hexadecimal digits.

    >>> lowest(lambda limits: [limit >= 1_234 for limit in limits], 1_000_000)
    1234
    """
    bad, best = 0, high
    while best - bad > 1:
        tried: Sequence[int] = range(bad + 1, best)
        if len(tried) > AT_ONCE:
            parts = range(1, AT_ONCE + 1)
            tried = [bad + (best - bad) * part // (AT_ONCE + 1) for part in parts]
        verdicts = good(tried)
        bad = max((steps for steps, ok in zip(tried, verdicts, strict=True) if not ok), default=bad)
        best = min((steps for steps, ok in zip(tried, verdicts, strict=True) if ok and steps > bad), default=best)
    return best
