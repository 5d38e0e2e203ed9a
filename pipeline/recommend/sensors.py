"""
Throttle times of a sensor's clients under any limit.

Requests arrive as logged (open loop). So a higher limit never throttles longer, and the lowest sufficient limit can be
found by a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.windows import WindowConfig

from ..replay.algorithms import UNCHECKED, Measurements, observe, rings_of, throttle_times
from ..replay.compiled import Floats, Ints
from ..replay.frame import REQUEST, Frame, entities_of, frame_of
from ..replay.open_loop import events_of
from ..replay.plan import MEASURED, TYPES
from .policy import ClusterWindows

_MS: Final = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuotaSensor:
    """Requests that one quota would check, and their throttle times under any limit."""

    kind: QuotaType
    times_ms: Ints
    """Times of the checks, ms since 1970, in order."""
    enough: float
    """Limit that throttles no request."""
    throttles_ms: Callable[[Floats], Ints]
    """
    Function that returns throttle times in ms under some limits, as an array of limits x requests.

    A higher limit never throttles longer.
    """
    unsized: int = 0
    """Number of requests of unknown size."""


def sensors_of(rows: pa.Table, windows: ClusterWindows) -> Iterator[QuotaSensor]:
    """
    Yield the sensors that would measure some requests on a broker, one for each quota type that checks any of them.

    Args:
        rows: rows of a history of one broker that share a quota, in order of their decisions.
        windows: windows of the quotas.

    """
    frame = _frame(rows)
    timed = ~np.isnan(frame.requests.percents)
    sized = ~frame.unsized  # without any known amount, the limit would be one for no usage at all
    for number in MEASURED:
        is_checked = timed if number == REQUEST else (frame.requests.kinds == number) & sized
        if np.any(is_checked):
            yield _rate_sensor(number, frame, windows)


def _rate_sensor(number: int, frame: Frame, windows: ClusterWindows) -> QuotaSensor:
    """
    Return the sensor of a byte rate or of thread time; its rates do not depend on the limit.

    Throttle times are bounded as in the release (`KafkaRelease.longest_rate_ms`), but not cut to 32 bits: after an
    overflow, a lower limit would seem to throttle less.
    """
    config, release = windows.client, windows.followed.release_of(str(frame.brokers[0].as_py()))
    longest_ms = release.longest_rate_ms
    most_ms = min(config.window_ms, longest_ms) if number == REQUEST else longest_ms
    one_entity = np.zeros(frame.pairs, np.int32)
    _, events = events_of(frame, one_entity, number)
    observed = observe(events, rings_of([release]), config.samples, config.window_ms)
    checked = events.treatments != UNCHECKED
    measured = Measurements(observed.rates[checked], observed.spans[checked])
    return QuotaSensor(
        kind=TYPES[number],
        times_ms=events.times[checked],
        enough=max(0.0, float(measured.rates.max(where=measured.spans > 0, initial=0.0))),
        throttles_ms=lambda limits: throttle_times(measured, limits, most_ms),
        unsized=int((frame.unsized & (frame.requests.kinds == number)).sum()),
    )


def mutations_of(rows: pa.Table, windows: ClusterWindows) -> QuotaSensor:
    """
    Return the sensor of the active controller that would measure some mutations.

    Args:
        rows: rows of a history, from all brokers, that mutate topics and share a quota.
        windows: windows of the quotas.

    """
    frame = _frame(rows)
    order = np.argsort(frame.mutation_times, kind="stable")
    refused = frame.requests.as_logged == 1
    charged = np.where(refused, frame.charged, frame.requests.sizes)
    sensor = debt_sensor(
        frame.mutation_times[order],
        charged[order].astype(np.float64),
        frame.requests.permissive[order] == 1,
        windows.controller,
    )
    return replace(sensor, unsized=int(frame.unsized.sum()))


def debt_sensor(times_ms: Ints, values: Floats, permissive: NDArray[np.bool_], config: WindowConfig) -> QuotaSensor:
    """
    Return the sensor of a token bucket that is charged all mutations, so that a higher limit never throttles longer.

    Kafka (`TokenBucket`, KIP-599) does not charge mutations that it refuses, and so throttles later ones for a shorter
    time. The throttle times here are upper bounds, and limits that follow from them are high enough.

    Args:
        times_ms: times of the mutations, in order.
        values: number of partitions; 0 for a request that the log shows as refused, since its retry is in the log.
        permissive: mask of the requests that are charged before they are checked, as their clients are too old to be
            refused.
        config: windows of the quota.

    """
    burst_s = float(config.samples * config.window_seconds)
    elapsed = (times_ms - times_ms[0]) / _MS
    taken_before = np.concatenate(([0.0], np.cumsum(values)))

    def throttle_ms(limit: float) -> Ints:
        """Return the throttle time of each mutation: the time in which the limit pays for what exceeds the burst."""
        balance = taken_before[:-1] - limit * elapsed
        # The partitions that the limit has not paid for yet. A full bucket gets no more tokens, so there is no credit.
        debt = balance - np.minimum.accumulate(balance)
        checked = np.where(permissive, debt + values, debt)
        over = np.maximum(checked - limit * burst_s, 0.0)
        throttles: Ints = np.ceil(over / limit * _MS).astype(np.int64)
        return throttles

    return QuotaSensor(
        kind=QuotaType.CONTROLLER_MUTATION,
        times_ms=times_ms,
        enough=float(values.sum()) / burst_s,
        throttles_ms=lambda limits: np.stack(list(map(throttle_ms, limits.tolist()))),
    )


def _frame(rows: pa.Table) -> Frame:
    """Return the frame of some rows, with all of them in group 0."""
    entities, codes = entities_of(rows)
    return frame_of(rows, entities, codes, np.zeros(len(rows), np.int64))
