"""
The windowed `Rate` of bandwidth and request quotas, many sensors at once (`metrics.rate`, `metrics.sampled`), and how long it throttles.

A rate does not depend on the limit that it is compared with: it is computed once, whatever the number of candidates.
"""

import math
from typing import NamedTuple

import numpy as np

from .compiled import Codes, Flags, Floats, Ints, kernel, run

LONG_MAX = 9223372036854775807
INT_MAX = 2147483647
_TWO_TO_63 = 9223372036854775808.0
_HALF = 0.5
_SIGN = 0x80000000
_LOW = 0xFFFFFFFF

UNCHECKED = 0
"""Charged and not compared, as the network thread's time."""
CHECKED = 1
"""Charged, then measured."""
WITHHELD = 2
"""Charged, measured, and given back: a Fetch that was answered empty."""


class SensorWindows(NamedTuple):
    """The rings of all sensors, `samples + 1` places each, one after the other."""

    starts: Ints
    lasts: Ints
    sums: Floats
    currents: Codes
    sizes: Codes


SensorWindows.WRITTEN = True  # type: ignore[attr-defined]


class Events(NamedTuple):
    """What happens to the sensors, in order of time for each sensor."""

    sensors: Codes
    """Number of the sensor, negative for none."""
    times: Ints
    """Epoch ms."""
    values: Floats
    treatments: Flags
    """`UNCHECKED`, `CHECKED` or `WITHHELD`."""


class Measurements(NamedTuple):
    """What was measured at each event: the rate per second, and the ms that it is measured over."""

    rates: Floats
    """0 where nothing was measured."""
    spans: Ints


Measurements.WRITTEN = True  # type: ignore[attr-defined]


def empty_windows(sensors: int, samples: int) -> SensorWindows:
    """Return the state of new sensors."""
    places = sensors * (samples + 1)
    return SensorWindows(
        starts=np.zeros(places, np.int64),
        lasts=np.zeros(places, np.int64),
        sums=np.zeros(places, np.float64),
        currents=np.zeros(sensors, np.int32),
        sizes=np.zeros(sensors, np.int32),
    )


def observe(
    events: Events, sensors: int, samples: int, window_ms: int, work: int = 0, windows: SensorWindows | None = None
) -> Measurements:
    """
    Record all events to sensors, new ones unless windows are given, and return what each check measures.

    Args:
        events: in order of time for each sensor; a clock that goes back is taken as a broker takes it.
        sensors: how many there are.
        samples: `quota.window.num`.
        window_ms: `quota.window.size.seconds`, in ms.
        work: about how many events follow these; a few alone are not worth compiling the kernel.
        windows: what the sensors hold, and hold afterwards.

    """
    count = len(events.times)
    windows = windows or empty_windows(sensors, samples)
    measured = Measurements(np.zeros(count, np.float64), np.zeros(count, np.int64))
    run(_observe, events, windows, measured, samples, window_ms, work=count + work)
    return measured


@kernel
def _observe(events: Events, windows: SensorWindows, measured: Measurements, samples: int, window_ms: int) -> None:
    """Do the work of `observe`."""
    for number in range(len(events.times)):
        sensor = events.sensors[number]
        if sensor < 0:
            continue
        now_ms = events.times[number]
        value = events.values[number]
        place = add(windows, sensor, value, now_ms, samples, window_ms)
        treatment = events.treatments[number]
        if treatment == UNCHECKED:
            continue
        rate, span = measure(windows, sensor, now_ms, samples, window_ms)
        measured.rates[number] = rate
        measured.spans[number] = span
        if treatment == WITHHELD:
            windows.sums[place] += -value


@kernel
def add(windows: SensorWindows, sensor: int, value: float, now_ms: int, samples: int, window_ms: int) -> int:
    """Record a value, and return the place of its window."""
    slots = samples + 1
    base = sensor * slots
    if windows.sizes[sensor] == 0:
        windows.sizes[sensor] = 1
        _begin(windows, base, now_ms)
    place: int = base + windows.currents[sensor]
    if now_ms - windows.starts[place] >= window_ms:
        following = (windows.currents[sensor] + 1) % slots
        windows.currents[sensor] = following
        windows.sizes[sensor] = max(windows.sizes[sensor], following + 1)
        place = base + following
        _begin(windows, place, now_ms)
    windows.sums[place] += value
    windows.lasts[place] = now_ms
    return place


@kernel
def measure(windows: SensorWindows, sensor: int, now_ms: int, samples: int, window_ms: int) -> tuple[float, int]:
    """Return the rate per second and the ms it is measured over; obsolete windows start again."""
    base = sensor * (samples + 1)
    total = 0.0
    oldest_ms = LONG_MAX
    for place in range(base, base + windows.sizes[sensor]):
        if now_ms - windows.lasts[place] >= samples * window_ms:
            _begin(windows, place, now_ms)
        total += windows.sums[place]
        oldest_ms = min(oldest_ms, windows.starts[place])
    span = span_ms(now_ms - oldest_ms, samples, window_ms)
    return total / (span / 1000.0), span


@kernel
def span_ms(elapsed_ms: int, samples: int, window_ms: int) -> int:
    """Return the divisor of a rate by the age of its oldest window (`Rate.windowSize`)."""
    full = elapsed_ms // window_ms
    if elapsed_ms < 0:
        full = -(-elapsed_ms // window_ms)
    if full > INT_MAX or full < -INT_MAX:
        full = low_bits(full)
    whole = samples - 1
    if full < whole:
        elapsed_ms += low_bits(whole - full) * window_ms
    return max(1, elapsed_ms)


@kernel
def _begin(windows: SensorWindows, place: int, now_ms: int) -> None:
    windows.starts[place] = now_ms
    windows.lasts[place] = now_ms
    windows.sums[place] = 0.0


class ThrottleTimes(NamedTuple):
    """Throttle times in ms, one limit after the other."""

    times: Ints


ThrottleTimes.WRITTEN = True  # type: ignore[attr-defined]


def throttle_times(measured: Measurements, limits: Floats, most_ms: int) -> Ints:
    """
    Return the throttle in ms of each measurement under each limit, as an array of limits x measurements.

    They are whole: not cut to 32 bits, as a broker's protocol holds them.

    Args:
        measured: what `observe` returned for one sensor, or several.
        limits: above 0, in the unit of the rates; infinite for none.
        most_ms: longest throttle, one window for request quotas (KIP-124).

    """
    outcome = ThrottleTimes(np.zeros(len(limits) * len(measured.rates), np.int64))
    run(_each_limit, measured, limits, outcome, most_ms, work=len(outcome.times))
    return outcome.times.reshape(len(limits), len(measured.rates))


@kernel
def _each_limit(measured: Measurements, limits: Floats, outcome: ThrottleTimes, most_ms: int) -> None:
    count = len(measured.rates)
    for row in range(len(limits)):
        for number in range(count):
            outcome.times[row * count + number] = rate_throttle(
                measured.rates[number], limits[row], measured.spans[number], most_ms
            )


@kernel
def rate_throttle(rate: float, limit: float, span: int, most_ms: int) -> int:
    """Return the ms of silence after which a rate is back at its limit, at most `most_ms`; 0 within the limit (`metrics.throttle_time`)."""
    if rate <= limit:
        return 0
    return min(rounded((rate - limit) / limit * span), most_ms)


@kernel
def rounded(x: float) -> int:
    """Round half up, NaN to 0, saturating at 64 bits (`metrics.numbers.jround`)."""
    if not abs(x) < _TWO_TO_63:
        if math.isnan(x):
            return 0
        return LONG_MAX if x > 0 else -LONG_MAX - 1
    below = math.floor(x)
    # Added, not branched on: half of all numbers round up, and no processor guesses which.
    return int(below) + int(x - below >= _HALF)


@kernel
def low_bits(n: int) -> int:
    """Keep the low 32 bits as a signed number (`metrics.numbers.to_i32`)."""
    return ((n + _SIGN) & _LOW) - _SIGN
