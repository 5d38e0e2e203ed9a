"""The windowed rate of bandwidth and request time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType, WindowConfig

from ..kernels.compiled import run
from ..kernels.rate import (
    CHECKED,
    UNCHECKED,
    WITHHELD,
    Events,
    Measured,
    empty_windows,
    observe,
    observe_all,
)
from ..kernels.throttle import throttle_times
from ..whatif.frame import Frame

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateSensor:
    """What was measured at each check. It does not depend on the limit, which is only compared with it."""

    kind: QuotaType
    times_ms: Ints
    window_ms: int
    measured: Measured
    most_ms: int
    """Longest throttle."""

    @property
    def enough(self) -> float:
        """The highest rate: whoever may use so much is never throttled."""
        return max(0.0, float(self.measured.rates.max()))

    def throttles_ms(self, limits: Floats) -> Ints:
        """Ms to wait after each request, as an array of limits x requests."""
        return throttle_times(self.measured, limits, self.most_ms)


def prepare(requests: int, config: WindowConfig) -> None:
    """Let the kernel be compiled if so many requests are worth it: they come in pieces of which none may be."""
    nothing = _events(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
    measured = Measured(np.zeros(0), np.zeros(0, np.int64))
    windows = empty_windows(1, config.samples)
    run(observe_all, nothing, windows, measured, config.samples, config.window_ms, work=requests)  # fmt: skip


def bandwidth(
    kind: QuotaType,
    frame: Frame,
    rows: NDArray[np.bool_],
    config: WindowConfig,
    longest_ms: int,
) -> RateSensor:
    """
    The sensor of bytes; a Fetch that the log shows as answered empty was charged and given back.

    Throttle times stop at `longest_ms` and are not cut to 32 bits: where a release has nothing that stops them
    (`KafkaRelease.longest_rate_ms`) a wrapped one would make a lower limit look milder.
    """
    withheld = frame.requests.as_logged[rows] == 1
    events = _events(
        frame.requests.times[rows],
        frame.requests.sizes[rows].astype(np.float64),
        np.where(withheld, WITHHELD, CHECKED),
    )
    return _sensor(kind, events, config, longest_ms)


def request_time(frame: Frame, config: WindowConfig, longest_ms: int) -> RateSensor:
    """The sensor of thread time: the handler's is checked, the network thread's is added unchecked when the response has left."""
    timed = ~np.isnan(frame.requests.percents)
    later = frame.networks > 0
    times = np.concatenate((frame.requests.times[timed], frame.completed[later]))
    values = np.concatenate((frame.requests.percents[timed], frame.networks[later]))
    checked = np.arange(times.size) < np.count_nonzero(timed)
    order = np.argsort(times, kind="stable")
    treatments = np.where(checked, CHECKED, UNCHECKED)
    events = _events(times[order], values[order], treatments[order])
    most_ms = min(config.window_ms, longest_ms)
    return _sensor(QuotaType.REQUEST, events, config, most_ms)


def _events(times: Ints, values: Floats, treatments: NDArray[np.int64]) -> Events:
    one = np.zeros(times.size, np.int32)
    return Events(one, times, values, treatments.astype(np.int8))


def _sensor(
    kind: QuotaType, events: Events, config: WindowConfig, most_ms: int
) -> RateSensor:
    windows = empty_windows(1, config.samples)
    measured = observe(events, windows, config.samples, config.window_ms)
    checked = events.treatments != UNCHECKED
    return RateSensor(
        kind=kind,
        times_ms=events.times[checked],
        window_ms=config.window_ms,
        measured=Measured(measured.rates[checked], measured.spans[checked]),
        most_ms=most_ms,
    )
