"""
The quotas of one process, fed with what its request log shows, and the quota that a throttle comes from.

The log has one throttle, the longest. The quotas differ: a request throttle is never longer than one window; the response to a
forwarded request holds more than the broker found itself only when the controller asked for it; and a quota that is not set throttles no
client. Where two are left, it is the one with the nearer prediction.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from quotascope.metrics import (
    UNLIMITED,
    ClientQuotaManager,
    KafkaMetric,
    MutationApi,
    QuotaManagers,
    QuotaType,
    Rate,
    Registry,
    ThrottlingQuotaExceeded,
)
from quotascope.metrics.protocol import ApiKey, ErrorCode
from quotascope.pipeline.request_log.messages import TOPICS_OF
from quotascope.pipeline.request_log.mutations import Row, TopicCounts

from .log import Request
from .rules import Key, RulesInForce

EXPIRY_MS: Final = 30_000
"""How often Kafka looks for sensors that were not used for an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the replay predicts of one request: throttles in ms by quota, 0 without one."""

    bytes_of: QuotaType | None = None
    """The byte-rate quota that the request falls under: Produce or Fetch."""
    bytes_ms: int = 0
    request_ms: int = 0
    mutation_ms: int = 0

    def by(self, kind: QuotaType) -> int:
        """The throttle of one quota."""
        if kind is self.bytes_of:
            return self.bytes_ms
        if kind is QuotaType.REQUEST:
            return self.request_ms
        return self.mutation_ms if kind is QuotaType.CONTROLLER_MUTATION else 0

    @property
    def total_ms(self) -> int:
        """The throttle in the response: the longest."""
        return max(self.bytes_ms, self.request_ms, self.mutation_ms, 0)

    @property
    def kind(self) -> QuotaType:
        """The quota that decides; a tie is the request quota's, as in Kafka."""
        if self.mutation_ms > self.request_ms:
            return QuotaType.CONTROLLER_MUTATION
        if self.bytes_of is not None and self.bytes_ms > self.request_ms:
            return self.bytes_of
        return QuotaType.REQUEST


class ReplayedBroker:
    """
    One process: a broker, a controller, or both with the same sensors.

    Args:
        rules: for the windows.
        quotas: in force at the start.
        now_ms: epoch ms of the start.

    """

    def __init__(self, rules: RulesInForce, quotas: Mapping[Key, float], now_ms: int) -> None:
        self._registry = Registry()
        self._managers = QuotaManagers(self._registry, now_ms, rules.config)
        self._expired_ms = now_ms
        self._from_controller: dict[tuple[str, str, int, int], int] = {}
        for (kind, entity), value in quotas.items():
            self._managers.update_quota(kind, entity, value)

    @property
    def longest_request_ms(self) -> int:
        """The longest throttle of the request quota: one window."""
        return self._managers.request.config.window_ms

    def change(self, key: Key, value: float | None) -> None:
        """Set or remove one quota."""
        self._managers.update_quota(*key, value)

    def expire(self, now_ms: int) -> None:
        """Remove sensors that were not used for an hour."""
        if now_ms - self._expired_ms >= EXPIRY_MS:
            self._expired_ms = now_ms
            self._registry.expire_sensors(now_ms)

    def limited(self, request: Request) -> frozenset[QuotaType]:
        """The kinds of quota that limit a client."""
        return frozenset(
            manager.quota_type
            for manager in self._managers.all()
            if manager.quota(request.principal, request.client_id).bound < UNLIMITED
        )

    def most_fetched(self, request: Request) -> float:
        """Bytes that one fetch may read."""
        return self._managers.fetch.max_value_in_quota_window(request.principal, request.client_id, request.decided_ms)

    def mutate(self, request: Request, charges: Iterable[int], now_ms: int) -> None:
        """Charge partitions that came to the mutation quota, topic by topic; the answer's throttle is remembered for the client's line."""
        quota = self._managers.controller_mutation.quota_for(
            request.principal, request.client_id, MutationApi[ApiKey(request.api_key).name], request.api_version, now_ms
        )
        for charge in charges:
            with suppress(ThrottlingQuotaExceeded):
                quota.record(charge, now_ms)
        throttle_ms = quota.throttle_time_ms(request.decided_ms)
        self._from_controller[request.identity] = throttle_ms

    def decide(self, request: Request, fetched: int | None) -> Prediction:
        """Charge a request and return how long each quota throttles it; `fetched` are the bytes that a Fetch was charged."""
        client = request.principal, request.client_id
        mutation_ms = 0
        if not request.forwarded:
            mutation_ms = self._from_controller.pop(request.identity, 0)
        bytes_of, bytes_ms = None, 0
        if request.api_key == ApiKey.PRODUCE:
            bytes_of, mutation_ms = QuotaType.PRODUCE, 0
            bytes_ms = self._charged(self._managers.produce, request, request.produced)
        request_ms = 0
        if not request.exempt:
            request_ms = self._managers.request.maybe_record_request(*client, request.thread_ns, request.decided_ms)
        if request.api_key == ApiKey.FETCH and not request.exempt:
            bytes_of, mutation_ms = QuotaType.FETCH, 0
            bytes_ms = self._charged(self._managers.fetch, request, fetched)
            if request.throttle_ms > 0 and fetched is not None:
                # it went out empty, and gives back what it was charged
                self._managers.fetch.unrecord(*client, fetched, request.decided_ms)
        return Prediction(bytes_of=bytes_of, bytes_ms=bytes_ms, request_ms=request_ms, mutation_ms=mutation_ms)

    def charge_time(self, request: Request, percent: float, now_ms: int) -> None:
        """Charge thread time without a throttle; a negative time is given back."""
        if percent and not request.exempt and self._managers.request.quotas_enabled:
            who = request.principal, request.client_id
            self._managers.request.record_no_throttle(*who, percent, now_ms)

    def bytes_sensor(self, request: Request, kind: QuotaType) -> tuple[str, int] | None:
        """Name of the sensor that a request's bytes were charged to, and when its oldest window began; None without a quota."""
        manager = self._managers.of(kind)
        if not manager.quotas_enabled:
            return None
        name, metric = self._sensor(manager, request)
        rate = None if metric is None else metric.stat
        if not isinstance(rate, Rate):
            return None
        return name, rate.stat.oldest_start_ms(request.decided_ms)

    def request_sensor(self, request: Request) -> tuple[str, KafkaMetric] | None:
        """Name and metric of the sensor that a request's time is charged to; None without a limit."""
        manager = self._managers.request
        if not manager.quotas_enabled:
            return None
        name, metric = self._sensor(manager, request)
        limited = manager.quota(request.principal, request.client_id).bound < UNLIMITED
        return None if metric is None or not limited else (name, metric)

    def _sensor(self, manager: ClientQuotaManager, request: Request) -> tuple[str, KafkaMetric | None]:
        who = request.principal, request.client_id
        tags = manager.sensors_for(*who, request.decided_ms).tags
        name = self._registry.metric_name(manager.metric, manager.quota_type.group, tags.metric_tags(), "")
        return f"{name.group}-{tags.suffix}", self._registry.metric(name)

    def _charged(self, manager: ClientQuotaManager, request: Request, size: int | None) -> int:
        if size is None:
            return 0
        return manager.maybe_record_and_get_throttle_time(
            request.principal, request.client_id, size, request.decided_ms
        )


def attributed(
    request: Request, prediction: Prediction, limited: Collection[QuotaType], longest_request_ms: int
) -> QuotaType:
    """
    The quota behind `request.throttle_ms`.

    Args:
        request: with a throttle in its answer.
        prediction: what the replay says.
        limited: the quotas that limit this client.
        longest_request_ms: one window of the request quota.

    """
    if not request.forwarded and request.throttle_ms > request.own_ms:
        return QuotaType.CONTROLLER_MUTATION
    kind = prediction.bytes_of
    if kind is None or kind not in limited:
        return QuotaType.REQUEST
    if QuotaType.REQUEST not in limited or request.throttle_ms > longest_request_ms:
        return kind
    by_bytes = abs(request.throttle_ms - prediction.bytes_ms)
    by_time = abs(request.throttle_ms - prediction.request_ms)
    return kind if prediction.bytes_ms > 0 and by_bytes < by_time else QuotaType.REQUEST


def charges_of(requests: Iterable[Request]) -> Mapping[int, tuple[int, ...]]:
    """
    Partitions of each topic that came to the mutation quota, by line, since a strict quota checks each topic on its own.

    They are charged on the controller's line where the log has it, else on the client's. A topic of unknown partitions counts
    nothing.
    """
    mutating = [request for request in requests if request.api_key in TOPICS_OF]
    forwarded = {request.identity for request in mutating if request.forwarded}
    rows: dict[int, Row] = {
        request.line: {"api_key": request.api_key, "completed": request.completed_ms, "topics": request.topics}
        for request in mutating
        if request.forwarded or request.identity not in forwarded
    }  # fmt: skip
    counts = TopicCounts()
    for row in rows.values():
        counts.learn(row)
    at_the_quota = (ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    return {
        line: tuple(counts.asked(row, topic) or 0 for topic in row["topics"] if topic["error"] in at_the_quota)
        for line, row in rows.items()
    }  # fmt: skip
