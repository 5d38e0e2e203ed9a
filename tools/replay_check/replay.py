"""What a log lets happen, in order, and one pass of it through the quotas of its process."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from quotascope.metrics import KafkaMetric, QuotaType
from quotascope.metrics.protocol import ApiKey

from .broker import Prediction, ReplayedBroker, attributed, charges_of
from .fetches import FetchSizes, decided
from .log import Request, RequestLog
from .moments import Moments
from .rules import Key, RulesInForce, TimedChange, changes_in, timed
from .unlogged import Shown, UnloggedTime, shown, shown_at_most

CLOSE_MS: Final = 3
"""A prediction this near is called the same."""
CHANGED: Final = 0
MUTATED: Final = 1
DECIDED: Final = 2
COMPLETED: Final = 3


class Event(NamedTuple):
    """A quota changed, mutations were charged, a request was decided on, or its answer had left; in one millisecond in this order."""

    at_ms: int
    kind: int
    line: int
    request: Request | None = None
    change: TimedChange | None = None


class Plan:
    """
    All that does not depend on what the replay finds.

    Args:
        log: what happens.
        rules: under which rules.
        earlier_ms: by how many ms requests were decided on earlier than the log says, by line.

    """

    def __init__(
        self,
        log: RequestLog,
        rules: RulesInForce,
        earlier_ms: Mapping[int, int] | None = None,
    ) -> None:
        at_log = decided(log)
        earlier = earlier_ms or {}
        requests = [
            replace(each, decided_ms=each.decided_ms - earlier.get(each.line, 0))
            for each in at_log
        ]
        quotas, changes = timed(rules, changes_in(log))
        self.rules = rules
        self.quotas: Mapping[Key, float] = quotas
        self.fetched = FetchSizes(log, at_log)
        self.charges: Mapping[int, tuple[int, ...]] = charges_of(requests)
        self.unreadable = log.unreadable
        self.events = sorted(
            [
                *(Event(c.at_ms, CHANGED, 0, change=c) for c in changes),
                *(event for request in requests for event in self._events(request)),
            ],
            key=lambda event: event[:3],
        )

    def _events(self, request: Request) -> Iterator[Event]:
        line = request.line
        if request.charged_ms is not None and line in self.charges:
            yield Event(request.charged_ms, MUTATED, line, request=request)
        yield Event(request.decided_ms, DECIDED, line, request=request)
        yield Event(request.completed_ms, COMPLETED, line, request=request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One answer."""

    request: Request
    prediction: Prediction
    reported_by: QuotaType
    """The quota that the reported throttle is put down to; of an answer without one, that which the replay names."""
    known: bool
    """False for a throttled Fetch of unknown size: its throttle may be the byte rate's."""

    @property
    def reported_ms(self) -> int:
        """The throttle in the answer."""
        return max(self.request.throttle_ms, 0)

    def counted_by(self, kind: QuotaType) -> bool:
        """Whether a quota has to do with the request."""
        if kind is QuotaType.REQUEST:
            return not self.request.exempt
        if kind is QuotaType.CONTROLLER_MUTATION:
            return self.request.charged_ms is not None
        return self.prediction.bytes_of is kind

    def close(self, kind: QuotaType) -> bool:
        """Whether a quota's prediction is near the answer, or, where another quota gave it, not longer."""
        error_ms = self.prediction.by(kind) - self.reported_ms
        least_ms = -CLOSE_MS if self.reported_by is kind else -self.reported_ms
        return least_ms <= error_ms <= CLOSE_MS


class Replay:
    """
    Charges each request, compares, and lets the answer say what the log leaves out.

    Args:
        plan: what happens.
        time: what is known of unlogged time; learns.
        infer: whether answers put the sensors right.

    """

    def __init__(self, plan: Plan, time: UnloggedTime, *, infer: bool) -> None:
        self._plan = plan
        self.time = time
        self._infer = infer
        start_ms = plan.events[0].at_ms
        self._broker = ReplayedBroker(plan.rules, plan.quotas, start_ms)
        self.moments = Moments()

    def comparisons(self) -> Iterator[Comparison]:
        """Answers to clients, in the order of the broker's decisions."""
        for event in self._plan.events:
            request = event.request
            if request is None:
                self._change(event)
            elif event.kind == MUTATED:
                charges = self._plan.charges[request.line]
                self._broker.mutate(request, charges, event.at_ms)
            elif event.kind == COMPLETED:
                self._complete(request)
            elif not request.forwarded:
                yield self._decide(request)
            else:
                self._decide(request)

    def _change(self, event: Event) -> None:
        if event.change is not None:
            self._broker.change(event.change.key, event.change.value)

    def _complete(self, request: Request) -> None:
        sensor = self._broker.request_sensor(request)
        if sensor is not None and not request.exempt:
            percent = self.time.completed(sensor[0], request, sensor[1].config)
            self._broker.charge_time(request, percent, request.completed_ms)

    def _decide(self, request: Request) -> Comparison:
        self._broker.expire(request.decided_ms)
        fetched = self._fetched(request)
        prediction = self._broker.decide(request, fetched)
        reported_by = attributed(
            request,
            prediction,
            self._broker.limited(request),
            self._broker.longest_request_ms,
        )
        self._date(request, prediction, reported_by)
        sensor = self._broker.request_sensor(request)
        if sensor is not None and not request.exempt:
            self.time.handled(sensor[0], request, sensor[1].config)
        if self._infer and not request.forwarded and not request.exempt:
            self._learn(request, reported_by)
        lost = (
            request.api_key == ApiKey.FETCH and not request.exempt and fetched is None
        )
        known = not (
            lost and request.throttle_ms > 0 and reported_by is QuotaType.FETCH
        )
        return Comparison(
            request=request,
            prediction=prediction,
            reported_by=reported_by if request.throttle_ms > 0 else prediction.kind,
            known=known,
        )

    def _fetched(self, request: Request) -> int | None:
        if request.api_key != ApiKey.FETCH or request.exempt:
            return None
        most = self._broker.most_fetched(request)
        return self._plan.fetched.size(request.line, most)

    def _date(
        self, request: Request, prediction: Prediction, reported_by: QuotaType
    ) -> None:
        kind = prediction.bytes_of
        if kind is None:
            return
        sensor = self._broker.bytes_sensor(request, kind)
        if sensor is None:
            return
        name, oldest_ms = sensor
        self.moments.charged(name, oldest_ms, request)
        if request.throttle_ms > 0 and reported_by is kind and prediction.bytes_ms > 0:
            error_ms = prediction.bytes_ms - request.throttle_ms
            self.moments.answered(name, oldest_ms, request, error_ms)

    def _learn(self, request: Request, reported_by: QuotaType) -> None:
        sensor = self._broker.request_sensor(request)
        if sensor is None:
            return
        name, metric = sensor
        now_ms = request.decided_ms
        measured_ms = metric.window_size(now_ms)
        held = metric.value(now_ms) * measured_ms / 1000
        seen = self._seen(request, reported_by, metric, measured_ms)
        percent = self.time.answered(name, request, metric.config, held, seen)
        self._broker.charge_time(request, percent, now_ms)

    def _seen(
        self,
        request: Request,
        reported_by: QuotaType,
        metric: KafkaMetric,
        measured_ms: int,
    ) -> Shown:
        quota = metric.config.quota
        if quota is None:
            return Shown(least=None, most=None)
        window_ms = self._broker.longest_request_ms
        throttle_ms = request.own_ms
        by_time = reported_by in (QuotaType.REQUEST, QuotaType.CONTROLLER_MUTATION)
        show = shown if by_time else shown_at_most
        return show(throttle_ms, window_ms, measured_ms, quota.bound)
