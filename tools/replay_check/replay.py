"""One pass of a log through the quotas of its process."""

from collections.abc import Iterator

from quotascope.metrics import KafkaMetric, QuotaType

from .apis import FETCH
from .attribution import attributed
from .broker import ReplayedBroker
from .comparison import Comparison
from .moments import Moments
from .plan import COMPLETED, MUTATED, Event, Plan
from .prediction import Prediction
from .request import Request
from .unlogged import Shown, UnloggedTime, shown, shown_at_most


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
        lost = request.api_key == FETCH and not request.exempt and fetched is None
        known = not (lost and request.told_ms > 0 and reported_by is QuotaType.FETCH)
        return Comparison(
            request=request,
            prediction=prediction,
            reported_by=reported_by if request.told_ms > 0 else prediction.kind,
            known=known,
        )

    def _fetched(self, request: Request) -> int | None:
        if request.api_key != FETCH or request.exempt:
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
        if request.told_ms > 0 and reported_by is kind and prediction.bytes_ms > 0:
            error_ms = prediction.bytes_ms - request.told_ms
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
        told_ms = request.own_ms
        by_time = reported_by in (QuotaType.REQUEST, QuotaType.CONTROLLER_MUTATION)
        show = shown if by_time else shown_at_most
        return show(told_ms, window_ms, measured_ms, quota.bound)
