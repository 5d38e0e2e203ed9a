"""The events of a log in order, and a pass that charges them to the quotas of the process."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable

from .broker import Prediction, ReplayedBroker, attributed, charges_of
from .fetches import FetchSizes, decided
from .log import Request, RequestLog
from .moments import Moments
from .rules import Key, RulesInForce, TimedChange, changes_in, timed
from .unlogged import SumBounds, UnloggedTime, bounds_by_other_quota, bounds_by_throttle

CLOSE_MS: Final = 3
"""Largest difference in ms between a prediction and an answer that count as the same."""
CHANGED: Final = 0
MUTATED: Final = 1
DECIDED: Final = 2
COMPLETED: Final = 3


class Event(NamedTuple):
    """
    An event of the log.

    Events of the same millisecond are in the order of their kinds: `CHANGED` (a quota), `MUTATED` (mutations were
    charged), `DECIDED` (on a request), `COMPLETED` (the answer had left).
    """

    at_ms: int
    kind: int
    line: int
    request: Request | None = None
    change: TimedChange | None = None


class Plan:
    """The events of a log and the rules, which are the same for all passes."""

    def __init__(self, log: RequestLog, rules: RulesInForce) -> None:
        self._requests = decided(log)
        self.quotas, self._changes = timed(rules, changes_in(log))
        self.rules = rules
        self.delays: dict[Key, int] = {}
        """Inferred time in ms from a change in the log until the quota came into force."""
        self.fetched = FetchSizes(log, self._requests)
        self.charges = charges_of(self._requests, validate_only=rules.config.client.release.charges_validate_only)
        self.unreadable = log.unreadable

    def rules_of(self, kind: QuotaType) -> tuple[RuleTable, Mapping[QuotaEntity, int]]:
        """
        Return all rules of a kind, and the times of the rules that the log shows to be set, epoch ms.

        All other rules were in force before the log began.
        """
        rules = QuotaRules({entity: value for (of_kind, entity), value in self.quotas.items() if of_kind is kind})
        changed_at: dict[QuotaEntity, int] = {}
        for change in self._changes:
            if change.key[0] is kind and change.value is not None:
                rules.set(change.key[1], change.value)
                changed_at.setdefault(change.key[1], change.at_ms)
        return rules, changed_at

    def events(self, earlier_ms: Mapping[int, int]) -> list[Event]:
        """
        Return the events in order.

        `earlier_ms` has the ms by which decisions on requests were earlier than in the log, by line.
        """
        events: list[Event] = []
        for change in self._changes:
            delay_ms = 0 if change.value is None else self.delays.get(change.key, 0)
            events.append(Event(change.at_ms + delay_ms, CHANGED, 0, change=change))
        for logged in self._requests:
            line = logged.line
            request = replace(logged, decided_ms=logged.decided_ms - earlier_ms[line]) if line in earlier_ms else logged
            if request.charged_ms is not None and line in self.charges:
                events.append(Event(request.charged_ms, MUTATED, line, request))
            events.append(Event(request.decided_ms, DECIDED, line, request))
            events.append(Event(request.completed_ms, COMPLETED, line, request))
        return sorted(events, key=lambda event: event[:3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The predicted and the reported throttle of one answer."""

    request: Request
    prediction: Prediction
    reported_by: QuotaType
    """Quota that the reported throttle is attributed to; without one, the quota with the longest prediction."""
    known: bool
    """
    False if the throttle cannot be predicted.

    That is so for a throttled Fetch of unknown size, and for the throttle from which the tokens of a bucket were
    inferred.
    """

    @property
    def reported_ms(self) -> int:
        """The throttle in the answer."""
        return max(self.request.throttle_ms, 0)

    def counted_by(self, kind: QuotaType) -> bool:
        """Return whether a quota charges the request."""
        if kind is QuotaType.REQUEST:
            return not self.request.exempt
        if kind is QuotaType.CONTROLLER_MUTATION:
            return self.request.charged_ms is not None
        return self.prediction.bytes_of is kind

    def close(self, kind: QuotaType) -> bool:
        """Return whether a quota's prediction is near the answer, or not longer if another quota caused the answer."""
        error_ms = self.prediction.by(kind) - self.reported_ms
        least_ms = -CLOSE_MS if self.reported_by is kind else -self.reported_ms
        return least_ms <= error_ms <= CLOSE_MS


class Replay:
    """
    One pass over a log, which charges requests, compares throttles, and learns from the answers.

    Args:
        plan: events and rules.
        earlier_ms: as in `Plan.events`.
        time: known thread time that the log leaves out; it is changed.
        infer: whether answers correct the sensors.

    """

    def __init__(self, plan: Plan, earlier_ms: Mapping[int, int], time: UnloggedTime, *, infer: bool) -> None:
        self._plan = plan
        self._events = plan.events(earlier_ms)
        self._time = time
        self._infer = infer
        start_ms = self._events[0].at_ms
        self._broker = ReplayedBroker(plan.rules, plan.quotas, start_ms, infer=infer)
        self.moments = Moments()

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the answers to clients, in the order of the broker's decisions."""
        for event in self._events:
            request = event.request
            if event.change is not None:
                self._broker.change(event.change.key, event.change.value)
            elif request is None:
                continue
            elif event.kind == MUTATED:
                charges = self._plan.charges[request.line]
                self._broker.mutate(request, charges, event.at_ms)
            elif event.kind == COMPLETED:
                sensor = self._broker.request_sensor(request)
                if sensor is not None and not request.exempt:
                    percent = self._time.completed(sensor[0], request, sensor[1].config)
                    self._broker.charge_time(request, percent, request.completed_ms)
            else:
                comparison = self._decide(request)
                if not request.forwarded:
                    yield comparison

    def _decide(self, request: Request) -> Comparison:
        """Charge a request, learn from its answer, and return the comparison."""
        broker = self._broker
        broker.expire(request.decided_ms)
        is_fetch = request.api_key == ApiKey.FETCH and not request.exempt
        fetched = None
        if is_fetch:
            max_bytes = broker.most_fetched(request)
            fetched = self._plan.fetched.size(request.line, max_bytes)
        prediction = broker.decide(request, fetched)
        reported_by = attributed(request, prediction, broker.limited(request), broker.longest_request_ms)
        is_throttled = request.throttle_ms > 0
        self._learn_moments(request, prediction, by_bytes=is_throttled and reported_by is prediction.bytes_of)
        sensor = broker.request_sensor(request)
        if sensor is not None and not request.exempt:
            self._time.handled(sensor[0], request, sensor[1].config)
            if self._infer and not request.forwarded:
                self._learn(request, reported_by, *sensor)
        has_unknown_size = is_fetch and fetched is None and is_throttled and reported_by is QuotaType.FETCH
        reveals_bucket = broker.shows_bucket(request) and reported_by is QuotaType.CONTROLLER_MUTATION
        return Comparison(
            request=request,
            prediction=prediction,
            reported_by=reported_by if is_throttled else prediction.kind,
            known=not has_unknown_size and not reveals_bucket,
        )

    def _learn_moments(self, request: Request, prediction: Prediction, *, by_bytes: bool) -> None:
        """Learn moments of decisions from an answer, if a byte rate caused its throttle (`by_bytes`)."""
        kind = prediction.bytes_of
        sensor = None if kind is None else self._broker.bytes_sensor(request, kind)
        if sensor is not None:
            self.moments.charged(*sensor, request)
            if by_bytes and prediction.bytes_ms > 0:
                error_ms = prediction.bytes_ms - request.throttle_ms
                self.moments.answered(*sensor, request, error_ms)

    def _learn(self, request: Request, reported_by: QuotaType, name: str, metric: KafkaMetric) -> None:
        """Correct the sensor of the request quota by the answer."""
        now_ms = request.decided_ms
        measured_ms = metric.window_size(now_ms)
        percent_held = metric.value(now_ms) * measured_ms / 1000
        quota = metric.config.quota
        if quota is None:
            evidence = SumBounds(least=None, most=None)
        else:
            is_request_throttle = reported_by in (QuotaType.REQUEST, QuotaType.CONTROLLER_MUTATION)
            bounds_of = bounds_by_throttle if is_request_throttle else bounds_by_other_quota
            window_ms = self._broker.longest_request_ms
            evidence = bounds_of(request.own_ms, window_ms, measured_ms, quota.bound)
        percent = self._time.answered(name, request, metric.config, percent_held, evidence)
        self._broker.charge_time(request, percent, now_ms)
