"""
The queries about the past, answered from samples in memory, with the same figures as from a server.

Steps, ranges, the five minutes for which a sample lasts, and quantiles are Prometheus's
(https://prometheus.io/docs/prometheus/latest/querying/basics/#staleness, `promql/functions.go`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from . import promql

LOOKBACK_MS: Final = 300_000
"""Time in ms for which a sample is the value of its series, unless another one or an end follows: as in Prometheus."""
_S: Final = 1_000
_HOUR_MS: Final = promql.HOUR_S * _S

Floats: TypeAlias = npt.NDArray[np.float64]
Times: TypeAlias = npt.NDArray[np.int64]
Value: TypeAlias = tuple[float, float]
"""Unix time in seconds, and number."""


@dataclass(frozen=True, slots=True)
class Track:
    """The samples of one series, in order of time; no time is repeated."""

    times_ms: Times
    values: Floats
    """Values; the value of a staleness marker has no meaning."""
    ended: npt.NDArray[np.bool_]
    """True for a staleness marker, from which on the series has no value."""

    @classmethod
    def of(cls, times_ms: Times, values: Floats, ended: npt.NDArray[np.bool_]) -> Track:
        """
        Return samples in any order as a track.

        Of several samples of one time, the first is used, but no staleness marker if there is another one.
        """
        order = np.lexsort((ended, times_ms))
        times = times_ms[order]
        is_first_of_time = np.ones(len(times), np.bool_)
        is_first_of_time[1:] = times[1:] != times[:-1]
        order = order[is_first_of_time]
        return cls(times_ms[order], values[order], ended[order])

    def at(self, steps_ms: Times) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the value at each step as an instant query would, 0 without one, and a mask of steps with a value."""
        if not len(self.times_ms):
            return np.zeros(len(steps_ms)), np.zeros(len(steps_ms), np.bool_)
        places = np.searchsorted(self.times_ms, steps_ms, side="right") - 1
        last = np.maximum(places, 0)
        has_value = (places >= 0) & (steps_ms - self.times_ms[last] < LOOKBACK_MS) & ~self.ended[last]
        return np.where(has_value, self.values[last], 0.0), has_value

    def within(self, begin_ms: int, end_ms: int) -> Floats:
        """Return the values after `begin_ms`, up to and with `end_ms`, without staleness markers."""
        first, last = np.searchsorted(self.times_ms, (begin_ms, end_ms), side="right")
        return self.values[first:last][~self.ended[first:last]]


class Window:
    """
    The samples of one entity in a range, as queries see them.

    Args:
        tracks: series of the entity. Usages of several series are added up; of throttle times the largest is used.
        samples: description of the series for queries.
        begin: begin of the range, Unix time in seconds, which is not part of it.
        end: end of the range, Unix time in seconds, which is part of it.
        step_s: seconds between the steps of subqueries, whose times are multiples of it.

    """

    def __init__(
        self, tracks: Sequence[Track], samples: promql.Samples, begin: float, end: float, step_s: float
    ) -> None:
        self._tracks, self.samples = tracks, samples
        self._begin_ms, self.end_ms = round(begin * _S), round(end * _S)
        self._step_ms = round(step_s * _S)

    @cached_property
    def steps(self) -> tuple[Times, Floats]:
        """Times in ms, and values, of the steps that have a value."""
        first = self._begin_ms // self._step_ms + 1
        times = np.arange(first, self.end_ms // self._step_ms + 1, dtype=np.int64) * self._step_ms
        total, has_any_value = np.zeros(len(times)), np.zeros(len(times), np.bool_)
        for track in self._tracks:
            values, has_value = track.at(times)
            if self.samples.of_rates:
                total += values
            else:  # the largest value of the series that have one at the step
                largest = np.where(has_any_value, np.fmax(total, values), values)
                total = np.where(has_value, largest, total)
            has_any_value |= has_value
        return times[has_any_value], total[has_any_value]

    @cached_property
    def scraped(self) -> Floats:
        """Values as they were scraped; for a sum of series, its values at the steps."""
        if self.samples.by:
            return self.steps[1]
        (track,) = self._tracks
        return track.within(self._begin_ms, self.end_ms)

    def value(self, number: float) -> list[Value]:
        """Return a number in the form of the answer to an instant query at the end of the range."""
        return [(self.end_ms / _S, float(number))]


def answer(query: promql.Query, window: Window) -> list[Value]:
    """Return the answer to a query about an entity in a range; an empty list where a server would return no series."""
    function, settings = (query.func, query.keywords) if isinstance(query, partial) else (query, {})
    return _FIGURES[function](window, **settings)


def _seen(window: Window) -> list[Value]:
    """Return the number of samples."""
    return window.value(len(window.scraped)) if len(window.scraped) else []


def _total(window: Window) -> list[Value]:
    """Return the sum of the samples."""
    return window.value(window.scraped.sum()) if len(window.scraped) else []


def _highest(window: Window) -> list[Value]:
    """Return the highest sample."""
    return window.value(window.scraped.max()) if len(window.scraped) else []


def _active(window: Window, above: float = 0.0) -> list[Value]:
    """Return the number of steps whose value is above a number in Kafka's unit; nothing without such a step."""
    _, values = window.steps
    count = int(np.count_nonzero(values > above / window.samples.factor))
    return window.value(count) if count else []


def _changes(window: Window) -> list[Value]:
    """Return the number of times that the load began or ended."""
    _, values = window.steps
    is_on = values > 0
    return window.value(int(np.count_nonzero(is_on[1:] != is_on[:-1]))) if len(values) else []


def _quantile(window: Window, share: float) -> list[Value]:
    """Return the quantile `share` of the values above 0."""
    _, values = window.steps
    active = values[values > 0]
    return window.value(_reached(active, share)) if len(active) else []


def _highest_hour(window: Window, share: float) -> list[Value]:
    """Return the highest quantile `share` of any clock hour, of the values above 0."""
    times, values = window.steps
    is_on = values > 0
    times, values = times[is_on], values[is_on]
    if not len(values):
        return []
    # an hour includes the step at its end, and excludes the step at its begin
    _, firsts = np.unique((times - 1) // _HOUR_MS, return_index=True)
    return window.value(max(_reached(hour_values, share) for hour_values in np.split(values, firsts[1:])))


def _throttles(window: Window) -> list[Value]:
    """Return the steps with a throttle time above 0."""
    times, values = window.steps
    is_on = values > 0
    return list(zip((times[is_on] / _S).tolist(), values[is_on].tolist(), strict=True))


def _reached(values: Floats, share: float) -> float:
    """Return the quantile `share` of some values, interpolated between two of them as `quantile_over_time` does."""
    values = np.sort(values)
    rank = share * (len(values) - 1)
    lower = max(0, int(np.floor(rank)))
    upper = min(len(values) - 1, lower + 1)
    weight = rank - np.floor(rank)
    return float(values[lower] * (1 - weight) + values[upper] * weight)


_FIGURES: Final[Mapping[Any, Callable[..., list[Value]]]] = {
    promql.seen: _seen,
    promql.total: _total,
    promql.highest: _highest,
    promql.active: _active,
    promql.changes: _changes,
    promql.quantile: _quantile,
    promql.highest_hour: _highest_hour,
    promql.throttles: _throttles,
}
"""Functions that answer the queries of `promql` about entities."""


def scrapes_by_hour(track: Track, begin: float, end: float, window_s: int) -> dict[int, tuple[float, float]]:
    """
    Return two numbers of samples by clock hour: the largest of any window in the hour, and all of the hour.

    Hours are named by their end, a Unix time in seconds. Hours without a sample are left out.

    Args:
        track: samples.
        begin: begin of the period, Unix time in seconds, a whole hour.
        end: end of the period, Unix time in seconds, a whole hour.
        window_s: length of the windows in seconds, which divides an hour.

    """
    times = track.times_ms[~track.ended]
    times = times[(times > begin * _S) & (times <= end * _S)]
    windows, counts = np.unique((times - 1) // (window_s * _S), return_counts=True)
    hours: dict[int, tuple[float, float]] = {}
    for window, count in zip(windows.tolist(), counts.tolist(), strict=True):
        hour = (window * window_s // promql.HOUR_S + 1) * promql.HOUR_S
        busiest, total = hours.get(hour, (0.0, 0.0))
        hours[hour] = max(busiest, float(count)), total + count
    return hours
