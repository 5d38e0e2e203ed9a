"""
Thread time that the request quota counts and the log leaves out.

Kafka charges a client for its time in network threads, too: for reading the request, for sending the answer, and with
the first request of a connection for authenticating it. The log has `sendTimeMs`, which is about the second of these
three.

All of it can be inferred, because each throttle below a window gives away what the broker's sensor held at that moment:
a throttle of X ms means (W + X) ms worth of the limit, W being the measured time. So after each answer the replay's
sensor is put right by what the answer shows; no prediction uses its own answer or a later one. There is one exception.
The throttles right after a connection was opened are all one window long, which says no more than "at least": what
authentication took is read from the first answer that shows it whole.

The inferred time is bounded by how much a sensor can hold by what the log shows: without bounds any rule could be
explained by enough unlogged time, and a comparison that cannot fail proves nothing.
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
Ms of network thread for each ms of `sendTimeMs`, at most.

Real brokers charge 0.7 where many answers leave at once, since each waits for
the others, and up to 1.4 where one leaves alone, since reading the request is charged as well.
"""
MOST_OPENING_MS: Final = 100.0
"""Most ms of network thread for opening and authenticating a connection; a JVM that has just started takes 30."""
SHARE: Final = 1.0
"""Ms of network thread charged for each ms of `sendTimeMs`, until answers show better."""

_WEIGHT_MS: Final = 4.0
"""Weight of the first guess of the share, in ms of `sendTimeMs`."""
_MOST_MS: Final = 1.0
"""Greatest weight of one answer, in ms."""
_LONGEST_MS: Final = 2.0
"""Longest `sendTimeMs` that may be work of a network thread; a longer one includes waiting."""
_MEMORY: Final = 0.9
"""Weight of earlier answers that remains after each new one."""
_DOUBLINGS: Final = 6
"""Largest number of doublings of a correction."""
_PLAUSIBLE: Final = 3.0
"""Greatest plausible share: a higher one is not network time, but something else that was left out."""
_WORTH_BOOKING: Final = 0.1
"""Least percent (1 ms) that is booked: smaller differences are explained by the share."""


class PlausibleTime:
    """The least and the most percent that one sensor may hold, over the same windows as the sensor's own."""

    __slots__ = ("_least", "_most")

    def __init__(self) -> None:
        self._least = WindowedSum()
        self._most = WindowedSum()

    def handled(self, config: MetricConfig, now_ms: int, thread_ms: float) -> None:
        """Record that a handler thread was busy, as the log shows."""
        percent = thread_ms * PERCENT_PER_MS
        self._least.record(config, percent, now_ms)
        self._most.record(config, percent, now_ms)

    def sent(self, config: MetricConfig, now_ms: int, send_ms: float, *, opened: bool) -> None:
        """Record that an answer has left, and whether a connection was `opened` for its request."""
        most_ms = send_ms * MOST_SHARE + (MOST_OPENING_MS if opened else 0.0)
        self._least.record(config, 0.0, now_ms)
        self._most.record(config, most_ms * PERCENT_PER_MS, now_ms)

    def bounds(self, config: MetricConfig, now_ms: int) -> tuple[float, float]:
        """Return the least and the most percent that the sensor's windows can hold."""
        return self._least.measure(config, now_ms), self._most.measure(config, now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Bounds of the sum in the broker's sensor, in percent, as an answer shows them; None for an unknown bound."""

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


def shown(throttle_ms: int, window_ms: int, measured_ms: int, bound: float) -> Shown:
    """
    Return the bounds that a request throttle gives.

    `window_ms` is the longest there is, `measured_ms` and `bound` are the sensor's.
    """
    if throttle_ms <= 0:
        return Shown(least=None, most=bound * measured_ms / 1000)
    lower = bound * (measured_ms + throttle_ms - 0.5) / 1000
    if throttle_ms >= window_ms:
        return Shown(least=lower, most=None)
    return Shown(least=lower, most=lower + bound / 1000)


def shown_at_most(throttle_ms: int, window_ms: int, measured_ms: int, bound: float) -> Shown:
    """Return the bounds that the throttle of another quota gives: the request quota's was not longer."""
    if throttle_ms >= window_ms:
        return Shown(least=None, most=None)
    return Shown(least=None, most=bound * (measured_ms + throttle_ms + 0.5) / 1000)


@dataclass(slots=True)
class SensorTime:
    """Results for one sensor."""

    share_sum: float = SHARE * _WEIGHT_MS
    share_weight: float = _WEIGHT_MS
    sent_ms: float = 0.0
    """Sent time in ms since the last answer that determined the sum."""
    put_right: float = 0.0
    """Percent by which the sensor was corrected since then."""
    too_much: int = 0
    """Answers since then that showed too much in the sensor."""
    plausible: PlausibleTime = field(default_factory=PlausibleTime)
    origin: int | None = None
    """The line after which the log first left out time since then, if there is one."""

    @property
    def share(self) -> float:
        """Ms of network thread for each ms of `sendTimeMs`."""
        return self.share_sum / self.share_weight

    def step(self, missing: float) -> float:
        """
        Return the correction.

        It is doubled for each time in a row that the sensor had too much, as false alarms would add up otherwise.
        """
        if missing >= 0:
            return missing
        self.too_much += 1
        return float(missing * 2 ** min(self.too_much, _DOUBLINGS))

    def learn(self) -> None:
        """Learn the share from the percent by which the sensor was corrected."""
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
    Results for all sensors, in one pass over a log.

    Args:
        booked: percent left out by the line after which they are charged, from an earlier pass.
        share: the first guess of each sensor's share.

    """

    booked: Mapping[int, float] = field(default_factory=dict)
    share: float = SHARE
    found: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Percent booked for the next pass."""
    total: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Percent that were left out of the log, `sendTimeMs` and all, by sensor."""
    _sensors: dict[str, SensorTime] = field(default_factory=dict)
    _connections: set[str] = field(default_factory=set)

    def sensor(self, name: str) -> SensorTime:
        """Return the results of a sensor."""
        return self._sensors.setdefault(name, SensorTime(share_sum=self.share * _WEIGHT_MS))

    def completed(self, name: str, request: Request, config: MetricConfig) -> float:
        """Return the percent to charge a sensor for when an answer has left."""
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
        """Record that a sensor was charged for the time that the log shows."""
        plausible = self.sensor(name).plausible
        plausible.handled(config, request.decided_ms, request.thread_ns / NS_PER_MS)

    def answered(self, name: str, request: Request, config: MetricConfig, percent: float, evidence: Shown) -> float:
        """Return the percent by which to correct a sensor. `evidence` has the bounds that an answer gave."""
        sensor = self.sensor(name)
        lower, upper = sensor.plausible.bounds(config, request.decided_ms)
        target = percent + sensor.step(evidence.missing(percent))
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
        learned = [s for s in self._sensors.values() if s.share_weight != _WEIGHT_MS]
        weight = sum(sensor.share_weight for sensor in learned)
        if not weight:
            return self.share
        return sum(sensor.share_sum for sensor in learned) / weight

    def _settle(self, sensor: SensorTime) -> None:
        if sensor.origin is not None and sensor.put_right > _WORTH_BOOKING:
            self.found[sensor.origin] += sensor.put_right
        elif sensor.origin is None or sensor.put_right < 0:
            sensor.learn()
        sensor.origin, sensor.put_right, sensor.sent_ms = None, 0.0, 0.0
        sensor.too_much = 0
