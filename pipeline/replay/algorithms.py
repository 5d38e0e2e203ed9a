"""
Kafka's quota algorithms, many sensors at once: the windowed rate, the token bucket, and their throttle times.

They equal `rate` with `sampled` of `metrics.engine`, of each sensor as of its broker's release, and its `token_bucket`
with `mutation_quota`; for comparison there is the burst-spreading rate of an early draft of KIP-599
(`metrics.engine.extras.burst_spreading`).

A rate does not depend on the limit that it is compared with: it is computed once, whatever the number of candidates.
What a bucket holds does, so that each candidate has its own; entities that a rule gives the same tags share one,
whatever the broker, since one controller decides.
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
"""Treatment of a value that is charged and not compared, as the network thread's time."""
CHECKED = 1
"""Treatment of a value that is charged, then measured."""
WITHHELD = 2
"""Treatment of a value that is charged, measured, and given back: a Fetch that was answered empty."""


class SensorRings(NamedTuple):
    """Aging of windows by sensor, which depends on the release of its broker."""

    overlapping: Codes
    """
    1 for a ring with `samples + 1` windows that age by their last event, 0 for one that ages by their start.

    The latter has `samples` windows (`KafkaRelease.keeps_overlapping_windows`).
    """
    shortest: Codes
    """Least time in ms that a rate is measured over (`KafkaRelease.shortest_span_ms`)."""

    def only(self, sensors: Ints | Codes) -> "SensorRings":
        """Return the rings of some sensors, which may be named several times."""
        return SensorRings(self.overlapping[sensors], self.shortest[sensors])


def rings_of(releases: Sequence[KafkaRelease]) -> SensorRings:
    """Return the rings of sensors on brokers of these releases."""
    return SensorRings(
        overlapping=np.array([release.keeps_overlapping_windows for release in releases], np.int32),
        shortest=np.array([release.shortest_span_ms for release in releases], np.int32),
    )


class SensorWindows(NamedTuple):
    """The rings of all sensors, `samples + 1` places each, one after the other."""

    starts: Ints
    lasts: Ints
    """Time that the age of a window is counted from: its last event, or its start."""
    sums: Floats
    currents: Codes
    sizes: Codes
    overlapping: Codes
    """As in `SensorRings`, and not written."""
    shortest: Codes


SensorWindows.WRITTEN = True  # type: ignore[attr-defined]
STATE: Final = ("starts", "lasts", "sums", "currents", "sizes")
"""Fields of `SensorWindows` that a replay writes."""


class Events(NamedTuple):
    """Events of the sensors, in order of time for each sensor."""

    sensors: Codes
    """Number of the sensor, negative for none."""
    times: Ints
    """Times in epoch ms."""
    values: Floats
    treatments: Flags
    """`UNCHECKED`, `CHECKED` or `WITHHELD`."""


class Measurements(NamedTuple):
    """Measurement at each event: the rate per second, and the ms that it is measured over."""

    rates: Floats
    """Rates, 0 without a measurement."""
    spans: Ints


Measurements.WRITTEN = True  # type: ignore[attr-defined]


def empty_windows(rings: SensorRings, samples: int) -> SensorWindows:
    """Return the state of new sensors."""
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
    Record all events to sensors, new ones unless windows are given, and return what each check measures.

    Args:
        events: events in order of time for each sensor; a clock that goes back has the same effect as on a broker.
        rings: rings of the sensors.
        samples: `quota.window.num`.
        window_ms: `quota.window.size.seconds`, in ms.
        windows: windows of the sensors, which are changed.

    """
    count = len(events.times)
    windows = windows or empty_windows(rings, samples)
    measured = Measurements(np.zeros(count, np.float64), np.zeros(count, np.int64))
    run(_observe, events, windows, measured, samples, window_ms, work=count)
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
    """Return the rate per second and the ms it is measured over; obsolete windows start again."""
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
    """Return the ms that a rate is divided by, given the age of its oldest window (`Rate.windowSize`)."""
    full = elapsed_ms // window_ms
    if elapsed_ms < 0:
        full = -(-elapsed_ms // window_ms)
    if full > INT_MAX or full < -INT_MAX:
        full = low_bits(full)
    whole = samples - 1
    if full < whole:
        elapsed_ms += low_bits(whole - full) * window_ms
    return elapsed_ms if shortest_ms == 0 else max(shortest_ms, elapsed_ms)


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
        measured: measurements that `observe` returned for one sensor, or several.
        limits: 0 or above, in the unit of the rates; infinite for none.
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
    """
    Return the ms of silence after which a rate is back at its limit, at most `most_ms`.

    It is 0 within the limit (`metrics.engine.throttle_time`).
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
"""Treatment if the client understands a refusal: checked first, and charged if it is not refused."""
PERMISSIVE = 1
"""Treatment if the client is too old: charged, then checked."""
PROBE = 2
"""Treatment of a mutation that is checked as `STRICT` is, and not charged."""

TOKEN_BUCKET = 0
BURST_SPREADING = 1
POLICIES = {
    MutationPolicy.TOKEN_BUCKET: TOKEN_BUCKET,
    MutationPolicy.BURST_SPREADING: BURST_SPREADING,
}
"""Numbers of the kernels for the candidates' policies."""

IDLE_MS = 3_600_000
"""Time without a record after which a sensor is removed; the next request finds a full bucket."""


class Buckets(NamedTuple):
    """Buckets and their tokens."""

    limits: Floats
    """Partitions per second, 0 or above."""
    bursts: Floats
    """Most tokens: `samples * window in s * limit`."""
    tokens: Floats
    touched: Ints
    """Times for which these tokens are counted, epoch ms."""
    charged: Ints
    """Times of the last charge, epoch ms; negative for none."""


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
    """Return the ms after which a bucket in debt is back at zero (`metrics.engine.throttle_time`)."""
    return rounded(quotient(-tokens, limit) * 1000.0)


class Spreads(NamedTuple):
    """Rates, and the bookings in their windows."""

    limits: Floats
    """Partitions per second, 0 or above."""
    samples: Ints
    window_ms: Ints
    bases: Ints
    """Places where the windows of each begin; they are in order, the current one last."""
    windows: Floats
    currents: Ints
    """Number of the current window since 1970."""


Spreads.WRITTEN = True  # type: ignore[attr-defined]


def new_spreads(limits: Floats, samples: Ints, window_ms: Ints, windows_each: int) -> Spreads:
    """Return rates without bookings, with room for this many windows each."""
    return Spreads(
        limits=limits,
        samples=samples,
        window_ms=window_ms,
        bases=np.arange(len(limits)) * windows_each,
        windows=np.zeros(len(limits) * windows_each, np.float64),
        currents=np.zeros(len(limits), np.int64),
    )


@kernel
def spread(spreads: Spreads, rate: int, permits: float, now_ms: int, treatment: int) -> tuple[int, bool]:
    """
    Book a mutation over the windows before, or refuse it.

    Return the ms to wait, at least 1, and whether it was refused.

    The draft knows no clients that are too old to be refused.
    """
    base, samples = spreads.bases[rate], spreads.samples[rate]
    current = now_ms // spreads.window_ms[rate]
    over = min(max(0, current - spreads.currents[rate]), samples)
    if over > 0:
        for place in range(base, base + samples - over):
            spreads.windows[place] = spreads.windows[place + over]
        for place in range(base + samples - over, base + samples):
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
        full = limit * spreads.window_ms[rate] / 1000.0
        remaining = permits
        for place in range(base, base + samples - 1):
            booked = max(0.0, min(remaining, full - spreads.windows[place]))
            spreads.windows[place] += booked
            remaining -= booked
        spreads.windows[base + samples - 1] += remaining
    return 0, False
