"""What one entity needs on one broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.metrics import QuotaEntity, QuotaType

from ..week import HOURS, hours_of_week
from .groups import Group, groups, mutating_groups
from .policy import Policy
from .rate import prepare
from .search import lowest
from .sensors import Sensor, Windows, mutations_of, sensors_of
from .share import Seasons
from .steps import limit_of, steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The lowest limit that keeps the share on one broker."""

    broker: str
    entity: QuotaEntity
    kind: QuotaType
    steps: int
    """The limit, in `steps.STEPS` of its unit."""
    hour: int | None
    """The hour of the week that needs the most; None when seasons are not told apart, or any limit would do."""
    requests: int
    """Those that are checked against such a quota."""


def needs(history: pa.Table, policy: Policy, windows: Windows) -> Iterator[Need]:
    """
    What every entity of some history needs, broker by broker, for each quota that it uses.

    Args:
        history: whole entities, in any order.
        policy: what limits have to keep.
        windows: of the quotas.

    """
    prepare(history.num_rows, windows.client)
    for group in groups(history, policy.shape):
        for sensor in sensors_of(group.rows, windows):
            if sensor.kind in policy.kinds:
                yield _need(group, sensor, policy)
    if QuotaType.CONTROLLER_MUTATION not in policy.kinds:
        return
    for group in mutating_groups(history, policy.shape):
        yield _need(group, mutations_of(group.rows, windows), policy)


def _need(group: Group, sensor: Sensor, policy: Policy) -> Need:
    of_time = _seasons(sensor, policy)
    high = steps_of(sensor.kind, sensor.enough)

    def good(tried: Sequence[int]) -> Sequence[bool]:
        return [
            bool(np.all(shares <= policy.share))
            for shares in _shares(sensor, of_time, tried)
        ]

    steps = lowest(good, high)
    return Need(
        broker=group.broker,
        entity=group.entity,
        kind=sensor.kind,
        steps=steps,
        hour=_hardest(sensor, of_time, steps - 1) if policy.by_hour else None,
        requests=sensor.times_ms.size,
    )


def _seasons(sensor: Sensor, policy: Policy) -> Seasons:
    times = sensor.times_ms
    if not policy.by_hour:
        alone = np.zeros(times.size, np.int64)
        return Seasons(times_ms=times, whose=alone, count=1, window_ms=sensor.window_ms)
    whose = hours_of_week(times, policy.zone)
    return Seasons(times_ms=times, whose=whose, count=HOURS, window_ms=sensor.window_ms)


def _shares(
    sensor: Sensor, of_time: Seasons, tried: Sequence[int]
) -> list[NDArray[np.float64]]:
    limits = np.array([limit_of(sensor.kind, steps) for steps in tried])
    return [of_time.shares(row) for row in sensor.throttles_ms(limits)]


def _hardest(sensor: Sensor, of_time: Seasons, steps: int) -> int | None:
    """The season that is throttled most under a limit; None below the lowest there is."""
    if steps < 1:
        return None
    (shares,) = _shares(sensor, of_time, [steps])
    return int(np.argmax(shares))
