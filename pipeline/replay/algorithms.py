"""
Kafka's quota algorithms for many sensors at once: the windowed rate, the token bucket, and their throttle times.

They give the same results as `metrics.engine`: rates as `rate` with `sampled` of the broker's release, and buckets as
`token_bucket` with `mutation_quota`. For comparison there is the burst-spreading rate of an early draft of KIP-599
(`metrics.engine.extras.burst_spreading`).

A rate does not depend on the limit that it is compared with, so it is computed once for all candidates. The tokens of a
bucket depend on the limit, so each candidate has its own buckets. Entities with the same tags share a bucket on all
brokers, since one controller decides.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.quotas.candidates import MutationPolicy

from .compiled import LONG_MAX, Codes, Flags, Floats, Ints, kernel, run

INT_MAX = 2147483647
_TWO_TO_63 = 9223372036854775808.0
_HALF = 0.5
_SIGN = 0x80000000
_LOW = 0xFFFFFFFF

UNCHECKED = 0
"""Treatment of a value that is charged only: the network thread's time."""
CHECKED = 1
"""Treatment of a value that is charged, and whose rate is then measured."""
WITHHELD = 2
"""Treatment of a value that is charged, measured, and given back: a Fetch that was answered empty."""


class SensorRings(NamedTuple):
    """Form of the ring of windows by sensor, which depends on the release of its broker."""

    overlapping: Codes
    """
    1 for a ring of `samples + 1` windows, whose age counts from their last event; else 0.

    Otherwise the ring has `samples` windows, whose age counts from their start
    (`KafkaRelease.keeps_overlapping_windows`).
    """
    shortest: Codes
    """Shortest time in ms that a rate is measured over (`KafkaRelease.shortest_span_ms`)."""

    def only(self, sensors: Ints | Codes) -> "SensorRings":
        """Return the rings of some sensors by their indices, in which an index may be repeated."""
        return SensorRings(self.overlapping[sensors], self.shortest[sensors])


def rings_of(releases: Sequence[KafkaRelease]) -> SensorRings:
    """Return a ring for each release: that of a sensor on a broker of the release."""
    return SensorRings(
        overlapping=np.array([release.keeps_overlapping_windows for release in releases], np.int32),
        shortest=np.array([release.shortest_span_ms for release in releases], np.int32),
    )


class SensorWindows(NamedTuple):
    """
    State of all sensors: their windows and the rings that the windows are in.

    `starts`, `lasts` and `sums` have `samples + 1` elements for each sensor, and the other columns have one.
    """

    starts: Ints
    """Start of the window, epoch ms."""
    lasts: Ints
    """Time from which the age of the window counts, epoch ms: its last event, or its start."""
    sums: Floats
    """Sum of the values in the window."""
    currents: Codes
    """Index in the ring of the sensor's current window."""
    sizes: Codes
    """Number of windows of the sensor that have begun."""
    overlapping: Codes
    """As in `SensorRings`; kernels do not write it."""
    shortest: Codes
    """As in `SensorRings`; kernels do not write it."""


SensorWindows.WRITTEN = True  # type: ignore[attr-defined]
STATE: Final = ("starts", "lasts", "sums", "currents", "sizes")
"""Fields of `SensorWindows` that kernels write."""


class Events(NamedTuple):
    """Values that sensors record; the events of a sensor are in order of time."""

    sensors: Codes
    """Number of the sensor, negative for none."""
    times: Ints
    """Times in epoch ms."""
    values: Floats
    treatments: Flags
    """`UNCHECKED`, `CHECKED` or `WITHHELD`."""


class Measurements(NamedTuple):
    """Measurements, one for each event or request."""

    rates: Floats
    """Rate per second; 0 without a measurement."""
    spans: Ints
    """Time in ms that the rate is measured over; 0 without a measurement."""


Measurements.WRITTEN = True  # type: ignore[attr-defined]


def empty_windows(rings: SensorRings, samples: int) -> SensorWindows:
    """Return the windows of new sensors."""
    sensors = len(rings.overlapping)
    places = sensors * (samples + 1)
    return SensorWindows(
        starts=np.zeros(places, np.int64),
        lasts=np.zeros(places, np.int64),
        sums=np.zeros(places, np.float64),
        currents=np.zeros(sensors, np.int32),
        sizes=np.zeros(sensors, np.int32),
        overlapping=rings.overlapping,
        shortest=rings.shortest,
    )


def observe(
    events: Events, rings: SensorRings, samples: int, window_ms: int, windows: SensorWindows | None = None
) -> Measurements:
    """
    Record events to sensors, and return the measurement at each event.

    Args:
        events: events; a clock that goes back has the same effect as on a broker.
        rings: rings of the sensors.
        samples: `quota.window.num`.
        window_ms: `quota.window.size.seconds`, in ms.
        windows: windows of the sensors, which are changed; windows of new sensors by default.

    """
    count = len(events.times)
    windows = windows or empty_windows(rings, samples)
    measured = Measurements(np.zeros(count, np.float64), np.zeros(count, np.int64))
    run(_observe, events, windows, measured, samples, window_ms, work=count)
    return measured


@kernel
def _observe(events: Events, windows: SensorWindows, measured: Measurements, samples: int, window_ms: int) -> None:
    """Record events, and write their measurements to `measured`."""
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
    """Record a value, and return the index of its window in `windows.sums`."""
    base = sensor * (samples + 1)
    if windows.sizes[sensor] == 0:
        windows.sizes[sensor] = 1
        _begin(windows, base, now_ms)
    place: int = base + windows.currents[sensor]
    if now_ms - windows.starts[place] >= window_ms:
        following = (windows.currents[sensor] + 1) % (samples + windows.overlapping[sensor])
        windows.currents[sensor] = following
        windows.sizes[sensor] = max(windows.sizes[sensor], following + 1)
        place = base + following
        _begin(windows, place, now_ms)
    windows.sums[place] += value
    if windows.overlapping[sensor] == 1:
        windows.lasts[place] = now_ms
    return place


@kernel
def measure(windows: SensorWindows, sensor: int, now_ms: int, samples: int, window_ms: int) -> tuple[float, int]:
    """Return the rate per second, and the ms that it is measured over; start obsolete windows again, as Kafka does."""
    base = sensor * (samples + 1)
    total = 0.0
    oldest_ms = LONG_MAX
    for place in range(base, base + windows.sizes[sensor]):
        if now_ms - windows.lasts[place] >= samples * window_ms:
            _begin(windows, place, now_ms)
        total += windows.sums[place]
        oldest_ms = min(oldest_ms, windows.starts[place])
    span = span_ms(now_ms - oldest_ms, samples, window_ms, windows.shortest[sensor])
    if span == 0:
        return (math.inf if total > 0.0 else math.nan), span  # yields a throttle time of 0
    return total / (span / 1000.0), span


@kernel
def span_ms(elapsed_ms: int, samples: int, window_ms: int, shortest_ms: int) -> int:
    """Return the ms that a sum is divided by to get a rate; `elapsed_ms` is the age of the oldest window."""
    # Kafka's `Rate.windowSize`, with Java's division and its overflow
    elapsed_windows = elapsed_ms // window_ms
    if elapsed_ms < 0:
        elapsed_windows = -(-elapsed_ms // window_ms)
    if elapsed_windows > INT_MAX or elapsed_windows < -INT_MAX:
        elapsed_windows = low_bits(elapsed_windows)
    least_windows = samples - 1
    if elapsed_windows < least_windows:
        elapsed_ms += low_bits(least_windows - elapsed_windows) * window_ms
    return elapsed_ms if shortest_ms == 0 else max(shortest_ms, elapsed_ms)


@kernel
def _begin(windows: SensorWindows, place: int, now_ms: int) -> None:
    """Empty a window, and let it start now."""
    windows.starts[place] = now_ms
    windows.lasts[place] = now_ms
    windows.sums[place] = 0.0


class ThrottleTimes(NamedTuple):
    """Throttle times in ms, one limit after the other."""

    times: Ints


ThrottleTimes.WRITTEN = True  # type: ignore[attr-defined]


def throttle_times(measured: Measurements, limits: Floats, most_ms: int) -> Ints:
    """
    Return the throttle time of each measurement under each limit, ms, as an array of limits x measurements.

    A broker's response cuts throttle times to 32 bits; these are whole.

    Args:
        measured: measurements that `observe` returned.
        limits: 0 or above, in the unit of the rates; infinite for none.
        most_ms: longest throttle, one window for request quotas (KIP-124).

    """
    outcome = ThrottleTimes(np.zeros(len(limits) * len(measured.rates), np.int64))
    run(_fill_throttle_times, measured, limits, outcome, most_ms, work=len(outcome.times))
    return outcome.times.reshape(len(limits), len(measured.rates))


@kernel
def _fill_throttle_times(measured: Measurements, limits: Floats, outcome: ThrottleTimes, most_ms: int) -> None:
    """Write the throttle time of each measurement under each limit to `outcome`, one limit after the other."""
    count = len(measured.rates)
    for row in range(len(limits)):
        for number in range(count):
            outcome.times[row * count + number] = rate_throttle(
                measured.rates[number], limits[row], measured.spans[number], most_ms
            )


@kernel
def rate_throttle(rate: float, limit: float, span: int, most_ms: int) -> int:
    """
    Return the ms without a request after which a rate is back at its limit, at most `most_ms`; 0 within the limit.

    `span` is the time in ms that the rate was measured over (`metrics.engine.throttle_time`).
    """
    if rate <= limit:
        return 0
    return min(rounded(quotient(rate - limit, limit) * span), most_ms)


@kernel
def quotient(excess: float, limit: float) -> float:
    """Divide an excess above 0 as Java does, where a limit of 0 gives infinity (`metrics.kafka.numbers.jdiv`)."""
    return math.inf if limit == 0.0 else excess / limit


@kernel
def rounded(x: float) -> int:
    """Round half up, NaN to 0, saturating at 64 bits (`metrics.kafka.numbers.jround`)."""
    if not abs(x) < _TWO_TO_63:
        if math.isnan(x):
            return 0
        return LONG_MAX if x > 0 else -LONG_MAX - 1
    floor = math.floor(x)
    # Added, not branched on: half of all numbers round up, and no processor guesses which.
    return int(floor) + int(x - floor >= _HALF)


@kernel
def low_bits(n: int) -> int:
    """Keep the low 32 bits as a signed number (`metrics.kafka.numbers.to_i32`)."""
    return ((n + _SIGN) & _LOW) - _SIGN


STRICT = 0
"""Treatment of a mutation whose client understands a refusal: checked, and charged if it is not refused."""
PERMISSIVE = 1
"""Treatment of a mutation whose client is too old for that: charged, then checked, and never refused."""
PROBE = 2
"""Treatment of a mutation that is checked as with `STRICT`, and never charged."""

TOKEN_BUCKET = 0
BURST_SPREADING = 1
POLICIES = {
    MutationPolicy.TOKEN_BUCKET: TOKEN_BUCKET,
    MutationPolicy.BURST_SPREADING: BURST_SPREADING,
}
"""Numbers of the candidates' policies in kernels."""

IDLE_MS = 3_600_000
"""Time without a charge after which a broker removes a sensor, so that the next request meets a full bucket."""


class Buckets(NamedTuple):
    """Token buckets."""

    limits: Floats
    """Partitions per second, 0 or above."""
    bursts: Floats
    """Largest number of tokens: `samples * window in s * limit`."""
    tokens: Floats
    """Number of tokens at the time `touched`."""
    touched: Ints
    """Time of the last change of `tokens`, epoch ms."""
    charged: Ints
    """Time of the last charge, epoch ms; negative for none."""


Buckets.WRITTEN = True  # type: ignore[attr-defined]


def new_buckets(limits: Floats, samples: Ints, window_ms: Ints) -> Buckets:
    """Return unused buckets: empty in 1970 and so full at any real time, as in Kafka."""
    count = len(limits)
    return Buckets(
        limits=limits,
        bursts=samples.astype(np.float64) * (window_ms / 1000.0) * limits,
        tokens=np.zeros(count, np.float64),
        touched=np.zeros(count, np.int64),
        charged=np.full(count, -1, np.int64),
    )


@kernel
def take(buckets: Buckets, bucket: int, permits: float, now_ms: int, treatment: int) -> tuple[int, bool]:
    """
    Charge a mutation, or refuse it; return the throttle in ms and whether it was refused.

    Args:
        buckets: the buckets, which are changed.
        bucket: number of the bucket.
        permits: partitions.
        now_ms: epoch ms.
        treatment: `STRICT`, `PERMISSIVE` or `PROBE`.

    """
    if buckets.charged[bucket] < 0:
        buckets.charged[bucket] = now_ms
    elif now_ms - buckets.charged[bucket] > IDLE_MS:
        buckets.tokens[bucket] = 0.0
        buckets.touched[bucket] = 0
        buckets.charged[bucket] = now_ms
    limit, burst = buckets.limits[bucket], buckets.bursts[bucket]
    passed_s = (now_ms - buckets.touched[bucket]) / 1000.0
    tokens = min(burst, buckets.tokens[bucket] + limit * passed_s)
    buckets.touched[bucket] = now_ms
    buckets.tokens[bucket] = tokens
    if treatment != PERMISSIVE and tokens < 0.0:
        return debt_throttle(tokens, limit), True
    if treatment == PROBE:
        return 0, False
    remaining = min(burst, tokens - permits)
    buckets.tokens[bucket] = remaining
    buckets.charged[bucket] = now_ms
    if treatment == PERMISSIVE and remaining < 0.0:
        return debt_throttle(remaining, limit), False
    return 0, False


@kernel
def debt_throttle(tokens: float, limit: float) -> int:
    """Return the ms after which a bucket with a negative number of tokens has none (`metrics.engine.throttle_time`)."""
    return rounded(quotient(-tokens, limit) * 1000.0)


class Spreads(NamedTuple):
    """Burst-spreading rates, and the mutations that are booked in their windows."""

    limits: Floats
    """Partitions per second, 0 or above."""
    samples: Ints
    """Number of windows."""
    window_ms: Ints
    """Length of a window."""
    bases: Ints
    """Index in `windows` of the oldest window; the current one is the last."""
    windows: Floats
    """Partitions that are booked in each window of all rates."""
    currents: Ints
    """Number of the current window since 1970."""


Spreads.WRITTEN = True  # type: ignore[attr-defined]


def new_spreads(limits: Floats, samples: Ints, window_ms: Ints, windows_per_rate: int) -> Spreads:
    """Return burst-spreading rates without bookings, with room for `windows_per_rate` windows each."""
    return Spreads(
        limits=limits,
        samples=samples,
        window_ms=window_ms,
        bases=np.arange(len(limits)) * windows_per_rate,
        windows=np.zeros(len(limits) * windows_per_rate, np.float64),
        currents=np.zeros(len(limits), np.int64),
    )


@kernel
def spread(spreads: Spreads, rate: int, permits: float, now_ms: int, treatment: int) -> tuple[int, bool]:
    """
    Book a mutation in the windows of a rate, the oldest with room first, or refuse it.

    Return the ms to wait, and whether the mutation was refused: at least 1 if it was, else 0.

    `PERMISSIVE` is treated as `STRICT`: the draft has no clients that are too old to be refused.
    """
    base, samples = spreads.bases[rate], spreads.samples[rate]
    current = now_ms // spreads.window_ms[rate]
    passed_windows = min(max(0, current - spreads.currents[rate]), samples)
    if passed_windows > 0:  # move the windows to the front, and begin empty ones at the end
        for place in range(base, base + samples - passed_windows):
            spreads.windows[place] = spreads.windows[place + passed_windows]
        for place in range(base + samples - passed_windows, base + samples):
            spreads.windows[place] = 0.0
        spreads.currents[rate] = current
    total = 0.0
    for place in range(base, base + samples):
        total += spreads.windows[place]
    limit = spreads.limits[rate]
    span_s = samples * spreads.window_ms[rate] / 1000.0
    per_second = total / span_s
    if per_second > limit:
        wait_ms = quotient(per_second - limit, limit) * span_s * 1000.0
        return max(1, rounded(wait_ms)), True
    if treatment != PROBE:
        full = limit * spreads.window_ms[rate] / 1000.0  # partitions that fill a window
        remaining = permits
        for place in range(base, base + samples - 1):
            booked = max(0.0, min(remaining, full - spreads.windows[place]))
            spreads.windows[place] += booked
            remaining -= booked
        spreads.windows[base + samples - 1] += remaining  # the current window takes the rest, above its limit, too
    return 0, False
