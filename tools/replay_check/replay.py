"""Events of a log, in order, and one pass of them through the quotas of its process."""

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
from .unlogged import Shown, UnloggedTime, shown, shown_at_most

CLOSE_MS: Final = 3
"""Largest difference in ms between a prediction and an answer that count as the same."""
CHANGED: Final = 0
MUTATED: Final = 1
DECIDED: Final = 2
COMPLETED: Final = 3


class Event(NamedTuple):
    """
    A quota changed, mutations were charged, a request was decided on, or its answer had left.

    In one millisecond in this order.
    """

    at_ms: int
    kind: int
    line: int
    request: Request | None = None
    change: TimedChange | None = None


class Plan:
    """All that does not depend on the results of the replay: the events of a log, and the rules."""

    def __init__(self, log: RequestLog, rules: RulesInForce) -> None:
        self._requests = decided(log)
        self.quotas, self._changes = timed(rules, changes_in(log))
        self.rules = rules
        self.delays: dict[Key, int] = {}
        """Time in ms by which quotas came into force later than the log shows, as inferred."""
        self.fetched = FetchSizes(log, self._requests)
        self.charges = charges_of(self._requests, validate_only=rules.config.client.release.charges_validate_only)
        self.unreadable = log.unreadable

    def rules_of(self, kind: QuotaType) -> tuple[RuleTable, Mapping[QuotaEntity, int]]:
        """
        Return all rules of a kind, and the moments of those that the log shows.

        All other rules were there before the log began.
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

        `earlier_ms` has the ms by which requests were decided on before the time in the log, by line.
        """
        events = [
            Event(
                change.at_ms + (0 if change.value is None else self.delays.get(change.key, 0)),
                CHANGED,
                0,
                change=change,
            )
            for change in self._changes
        ]
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
    """One answer, predicted and reported."""

    request: Request
    prediction: Prediction
    reported_by: QuotaType
    """
    The quota that the reported throttle is attributed to; without a reported throttle, the quota that the replay names.
    """
    known: bool
    """
    False for a throttled Fetch of unknown size: its throttle may be the byte rate's.

    It is also False for the first throttle of a bucket, which shows the content of the bucket when the log begins.
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
        """Return whether a quota's prediction is near the answer, or, where another quota gave it, not longer."""
        error_ms = self.prediction.by(kind) - self.reported_ms
        least_ms = -CLOSE_MS if self.reported_by is kind else -self.reported_ms
        return least_ms <= error_ms <= CLOSE_MS


class Replay:
    """
    Charges each request, compares the throttles, and learns from the answer what the log leaves out.

    Args:
        plan: what happens.
        earlier_ms: as of `Plan.events`.
        time: what is known of unlogged time; learns.
        infer: whether answers put the sensors right.

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
        broker = self._broker
        broker.expire(request.decided_ms)
        fetches = request.api_key == ApiKey.FETCH and not request.exempt
        fetched = None
        if fetches:
            max_bytes = broker.most_fetched(request)
            fetched = self._plan.fetched.size(request.line, max_bytes)
        prediction = broker.decide(request, fetched)
        reported_by = attributed(request, prediction, broker.limited(request), broker.longest_request_ms)
        throttled = request.throttle_ms > 0
        self._date(request, prediction, by_bytes=throttled and reported_by is prediction.bytes_of)
        sensor = broker.request_sensor(request)
        if sensor is not None and not request.exempt:
            self._time.handled(sensor[0], request, sensor[1].config)
            if self._infer and not request.forwarded:
                self._learn(request, reported_by, *sensor)
        lost = fetches and fetched is None and throttled
        shows = broker.shows_bucket(request)
        return Comparison(
            request=request,
            prediction=prediction,
            reported_by=reported_by if throttled else prediction.kind,
            known=not (
                (lost and reported_by is QuotaType.FETCH) or (reported_by is QuotaType.CONTROLLER_MUTATION and shows)
            ),
        )

    def _date(self, request: Request, prediction: Prediction, *, by_bytes: bool) -> None:
        """Learn the beginning of the oldest window that a byte rate's throttle was measured from."""
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
            evidence = Shown(least=None, most=None)
        else:
            by_time = reported_by in (QuotaType.REQUEST, QuotaType.CONTROLLER_MUTATION)
            show = shown if by_time else shown_at_most
            window_ms = self._broker.longest_request_ms
            evidence = show(request.own_ms, window_ms, measured_ms, quota.bound)
        percent = self._time.answered(name, request, metric.config, percent_held, evidence)
        self._broker.charge_time(request, percent, now_ms)
