"""
Inference of thread time that the request quota counts and the log leaves out.

Kafka charges a client for time in network threads, too: for reading a request, for sending the answer, and, with the
first request of a connection, for authentication. The log has only `sendTimeMs`, which is about the time of sending.

The other times can be inferred. A throttle that is shorter than a window shows the sum in the broker's sensor: a
throttle of X ms means a sum of (W + X) ms times the limit, if W is the measured time. After every answer, the replay's
sensor is corrected by that sum. No prediction uses its own answer or a later one, with one exception. The throttles
right after a connection was opened are all one window long, and only show a lower bound. So the time of authentication
is taken from the first answer that shows it completely, and charged in the next pass.

Corrections are bounded by the time that is plausible for the requests in the log (`PlausibleTime`). Without bounds,
enough unlogged time could explain any rule, and a comparison that cannot fail proves nothing.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.windowed import WindowedSum

from .log import NS_PER_MS, Request

PERCENT_PER_MS: Final = 0.1
"""One ms of thread time as the request quota counts it: a thread that is busy for a second is 100 percent."""
MOST_SHARE: Final = 2.0
"""
Largest plausible number of ms of network thread for each ms of `sendTimeMs`.

Real brokers charge 0.7 if many answers leave at once and wait for each other, and up to 1.4 if one leaves alone, since
reading the request is charged, too.
"""
MOST_OPENING_MS: Final = 100.0
"""Largest plausible number of ms for opening and authenticating a connection; a JVM that has just started takes 30."""
SHARE: Final = 1.0
"""First guess of the ms of network thread that are charged for each ms of `sendTimeMs`."""

_WEIGHT_MS: Final = 4.0
"""Weight of the first guess of the share, in ms of `sendTimeMs`."""
_MOST_MS: Final = 1.0
"""Largest weight of one answer, in ms."""
_LONGEST_MS: Final = 2.0
"""Longest `sendTimeMs` that may be work of a network thread; a longer one includes waiting."""
_MEMORY: Final = 0.9
"""Factor by which a new answer reduces the weight of all earlier ones."""
_DOUBLINGS: Final = 6
"""Largest number of doublings of a correction."""
_PLAUSIBLE: Final = 3.0
"""Largest plausible share; a larger one has another cause than network time."""
_WORTH_BOOKING: Final = 0.1
"""Least percent (1 ms) that is booked for the next pass; the share explains smaller differences."""


class PlausibleTime:
    """Bounds of the percent that one sensor can hold, measured over the same windows as the sensor."""

    __slots__ = ("_least", "_most")

    def __init__(self) -> None:
        self._least = WindowedSum()
        self._most = WindowedSum()

    def handled(self, config: MetricConfig, now_ms: int, thread_ms: float) -> None:
        """Record logged time of a handler thread."""
        percent = thread_ms * PERCENT_PER_MS
        self._least.record(config, percent, now_ms)
        self._most.record(config, percent, now_ms)

    def sent(self, config: MetricConfig, now_ms: int, send_ms: float, *, opened: bool) -> None:
        """Record the plausible network time of an answer; `opened` if its request was the first of a connection."""
        most_ms = send_ms * MOST_SHARE + (MOST_OPENING_MS if opened else 0.0)
        self._least.record(config, 0.0, now_ms)
        self._most.record(config, most_ms * PERCENT_PER_MS, now_ms)

    def bounds(self, config: MetricConfig, now_ms: int) -> tuple[float, float]:
        """Return the least and the most percent that the sensor's windows can hold."""
        return self._least.measure(config, now_ms), self._most.measure(config, now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumBounds:
    """Bounds of the sum in the broker's sensor, in percent, that follow from an answer; None for an unknown bound."""

    least: float | None
    most: float | None

    @property
    def exact(self) -> bool:
        """True if the answer determines the sum."""
        return self.least is not None and self.most is not None

    def missing(self, percent: float) -> float:
        """Return the percent that a sensor lacks to be within the bounds, negative when it has too much."""
        if self.least is not None and percent < self.least:
            return self.least - percent
        if self.most is not None and percent > self.most:
            return self.most - percent
        return 0.0


def bounds_by_throttle(throttle_ms: int, window_ms: int, measured_ms: int, bound: float) -> SumBounds:
    """
    Return the bounds of the sensor's sum that follow from a throttle of the request quota.

    Args:
        throttle_ms: throttle time in the answer.
        window_ms: length of a window, which is the longest throttle time.
        measured_ms: time that the sensor's rate is measured over.
        bound: limit in percent.

    """
    if throttle_ms <= 0:
        return SumBounds(least=None, most=bound * measured_ms / 1000)
    lower = bound * (measured_ms + throttle_ms - 0.5) / 1000  # Kafka rounds to whole ms
    if throttle_ms >= window_ms:
        return SumBounds(least=lower, most=None)
    return SumBounds(least=lower, most=lower + bound / 1000)


def bounds_by_other_quota(throttle_ms: int, window_ms: int, measured_ms: int, bound: float) -> SumBounds:
    """Return the bounds that follow from the throttle of another quota, as the request quota's was not longer."""
    if throttle_ms >= window_ms:
        return SumBounds(least=None, most=None)
    return SumBounds(least=None, most=bound * (measured_ms + throttle_ms + 0.5) / 1000)


@dataclass(slots=True)
class SensorTime:
    """Inferred time of one sensor. An answer is exact if it determines the sensor's sum (`SumBounds.exact`)."""

    share_sum: float = SHARE * _WEIGHT_MS
    share_weight: float = _WEIGHT_MS
    sent_ms: float = 0.0
    """Sum of `sendTimeMs` since the last exact answer."""
    put_right: float = 0.0
    """Percent by which the sensor was corrected since the last exact answer."""
    too_much: int = 0
    """Number of answers since the last exact one that showed too much in the sensor."""
    plausible: PlausibleTime = field(default_factory=PlausibleTime)
    origin: int | None = None
    """First line since the last exact answer after which time may be missing: a connection was opened, or corrected."""

    @property
    def share(self) -> float:
        """Ms of network thread for each ms of `sendTimeMs`."""
        return self.share_sum / self.share_weight

    def step(self, missing: float) -> float:
        """
        Return the correction of a sensor that lacks `missing` percent.

        If the sensor had too much several times in a row, the correction is doubled each time. Otherwise corrections
        that were too high would add up.
        """
        if missing >= 0:
            return missing
        self.too_much += 1
        return float(missing * 2 ** min(self.too_much, _DOUBLINGS))

    def learn(self) -> None:
        """Move the share towards the one that would have made the corrections of the sensor unnecessary."""
        if self.sent_ms <= 0:
            return
        share = self.share + self.put_right / PERCENT_PER_MS / self.sent_ms
        if 0 <= share <= _PLAUSIBLE:
            weight = min(self.sent_ms, _MOST_MS)
            self.share_sum = self.share_sum * _MEMORY + share * weight
            self.share_weight = self.share_weight * _MEMORY + weight


@dataclass(slots=True)
class UnloggedTime:
    """
    Inferred time of all sensors in one pass over a log.

    Args:
        booked: percent that an earlier pass found missing, by the line after which they are charged.
        share: first guess of the share of all sensors.

    """

    booked: Mapping[int, float] = field(default_factory=dict)
    share: float = SHARE
    found: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Percent that this pass found missing, for the next pass, by line."""
    total: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Percent of all network time, logged or not, by sensor."""
    _sensors: dict[str, SensorTime] = field(default_factory=dict)
    _connections: set[str] = field(default_factory=set)

    def sensor(self, name: str) -> SensorTime:
        """Return the results of a sensor."""
        return self._sensors.setdefault(name, SensorTime(share_sum=self.share * _WEIGHT_MS))

    def completed(self, name: str, request: Request, config: MetricConfig) -> float:
        """Return the percent to charge to a sensor when the answer to a request has left."""
        sensor = self.sensor(name)
        opened = request.connection not in self._connections
        sensor.plausible.sent(config, request.completed_ms, request.send_ms, opened=opened)
        if opened:
            self._connections.add(request.connection)
            sensor.origin = request.line if sensor.origin is None else sensor.origin
        send_ms = min(request.send_ms, _LONGEST_MS)
        sensor.sent_ms += send_ms
        sent = sensor.share * send_ms * PERCENT_PER_MS
        percent = sent + self.booked.get(request.line, 0.0)
        self.total[name] += percent
        return percent

    def handled(self, name: str, request: Request, config: MetricConfig) -> None:
        """Record that the logged time of a request was charged to a sensor."""
        plausible = self.sensor(name).plausible
        plausible.handled(config, request.decided_ms, request.thread_ns / NS_PER_MS)

    def answered(self, name: str, request: Request, config: MetricConfig, percent: float, evidence: SumBounds) -> float:
        """Return the correction, in percent, of a sensor that holds `percent`; an answer gave the bounds `evidence`."""
        sensor = self.sensor(name)
        lower, upper = sensor.plausible.bounds(config, request.decided_ms)
        target = percent + sensor.step(evidence.missing(percent))
        # what is plausible bounds the correction, but does not lower a sensor: only an answer does
        missing = min(max(target, lower), max(upper, percent)) - percent
        if missing > 0 and not evidence.exact and sensor.origin is None:
            sensor.origin = request.line
        sensor.put_right += missing
        self.total[name] += missing
        if evidence.exact:
            self._settle(sensor)
        return missing

    def average_share(self) -> float:
        """Return the mean share over all sensors that learned one, for the next pass."""
        learned = [sensor for sensor in self._sensors.values() if sensor.share_weight != _WEIGHT_MS]
        weight = sum(sensor.share_weight for sensor in learned)
        if not weight:
            return self.share
        return sum(sensor.share_sum for sensor in learned) / weight

    def _settle(self, sensor: SensorTime) -> None:
        """Book the corrections since the last exact answer, or learn the share from them, and start again."""
        if sensor.origin is not None and sensor.put_right > _WORTH_BOOKING:
            self.found[sensor.origin] += sensor.put_right
        elif sensor.origin is None or sensor.put_right < 0:
            sensor.learn()
        sensor.origin, sensor.put_right, sensor.sent_ms = None, 0.0, 0.0
        sensor.too_much = 0
