"""
The quotas of one process, charged with the requests of its log, and the attribution of a throttle to a quota.

The log has only the longest throttle of a response. `attributed` excludes quotas that cannot have caused it:

- A throttle of the request quota is never longer than one window.
- A response to a forwarded request has a longer throttle than the broker's own only if the controller imposed it.
- A quota that is not set throttles no client.

If two quotas remain, it is the one with the closer prediction.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from quotascope.metrics.engine.client_quota_manager import UNLIMITED, ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.controller_mutation import MutationApi
from quotascope.metrics.engine.errors import ThrottlingQuotaExceeded
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.protocol import ApiKey, ErrorCode
from quotascope.pipeline.request_log.messages import TOPICS_OF
from quotascope.pipeline.request_log.mutations import Row, TopicCounts

from .log import Request
from .rules import Key, RulesInForce

_BUCKET_OFF_S: Final = 0.5
"""
Least error of a bucket's tokens for which its first throttle corrects it, and is not compared.

It is given in seconds of the limit.
"""
EXPIRY_MS: Final = 30_000
"""Period in which Kafka looks for sensors that were not used for an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Predicted throttle times of one request in ms, by quota; 0 without a throttle."""

    bytes_of: QuotaType | None = None
    """The byte-rate quota that the request is charged to, Produce or Fetch; None for other requests."""
    bytes_ms: int = 0
    request_ms: int = 0
    mutation_ms: int = 0

    def by(self, kind: QuotaType) -> int:
        """Return the throttle time that one quota imposes, ms."""
        if kind is self.bytes_of:
            return self.bytes_ms
        if kind is QuotaType.REQUEST:
            return self.request_ms
        return self.mutation_ms if kind is QuotaType.CONTROLLER_MUTATION else 0

    @property
    def total_ms(self) -> int:
        """Throttle time in the response: the longest of all quotas, ms."""
        return max(self.bytes_ms, self.request_ms, self.mutation_ms, 0)

    @property
    def kind(self) -> QuotaType:
        """The quota with the longest throttle, and the request quota on a tie, as in Kafka."""
        if self.mutation_ms > self.request_ms:
            return QuotaType.CONTROLLER_MUTATION
        if self.bytes_of is not None and self.bytes_ms > self.request_ms:
            return self.bytes_of
        return QuotaType.REQUEST


class ReplayedBroker:
    """
    The quotas of one process: a broker, a controller, or both with the same sensors.

    Args:
        rules: rules, of which only the windows are used.
        quotas: quotas in force at the start.
        now_ms: time of the start, epoch ms.
        infer: whether to infer the tokens of a bucket from its first throttle.

    """

    def __init__(self, rules: RulesInForce, quotas: Mapping[Key, float], now_ms: int, *, infer: bool = False) -> None:
        self._registry = Registry(MetricConfig(release=rules.config.client.release))
        self._infer = infer
        self._known_buckets: set[str] = set()
        """Names of the buckets whose tokens were inferred."""
        self._revealing: set[tuple[str, str, int, int]] = set()
        """Identities of the requests from whose throttle the tokens of a bucket were inferred."""
        self._managers = QuotaManagers(self._registry, now_ms, rules.config)
        self._expired_ms = now_ms
        self._from_controller: dict[tuple[str, str, int, int], int] = {}
        """Throttle time in ms that the controller decided, by the identity of the request."""
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
        """Return the quota types that limit the client of a request."""
        return frozenset(
            manager.quota_type
            for manager in self._managers.all()
            if manager.quota(request.principal, request.client_id).bound < UNLIMITED
        )

    def most_fetched(self, request: Request) -> float:
        """Return the number of bytes that one Fetch of a client may read: as many as its whole windows allow."""
        return self._managers.fetch.max_value_in_quota_window(request.principal, request.client_id, request.decided_ms)

    def mutate(self, request: Request, charges: Iterable[int], now_ms: int) -> None:
        """
        Charge the partitions of a request to the mutation quota, topic by topic.

        The throttle time is kept for the client's line of the same request (`decide`).
        """
        charges = tuple(charges)
        api = MutationApi[ApiKey(request.api_key).name]
        manager = self._managers.controller_mutation
        quota = manager.quota_for(request.principal, request.client_id, api, request.api_version, now_ms)
        if self._infer and request.throttle_ms > self.longest_request_ms and len(charges) == 1:
            is_permissive = request.api_version < api.strict_since
            self._learn_bucket(request, charges[0] if is_permissive else 0, now_ms)
        for charge in charges:
            with suppress(ThrottlingQuotaExceeded):
                quota.record(charge, now_ms)
        throttle_ms = quota.throttle_time_ms(request.decided_ms)
        self._from_controller[request.identity] = throttle_ms

    def shows_bucket(self, request: Request) -> bool:
        """
        Return whether the tokens of a bucket were inferred from the throttle of this request.

        Forget it, so that a second call returns False.
        """
        reveals = not request.forwarded and request.identity in self._revealing
        if reveals:
            self._revealing.remove(request.identity)
        return reveals

    def _learn_bucket(self, request: Request, permits: int, now_ms: int) -> None:
        """
        Set the tokens of a bucket to the number that its first throttle implies.

        The bucket may hold others, because earlier mutations are not in the log, or were charged before the rule came.
        `permits` is the number of partitions that are charged before the throttle time is computed.
        """
        manager = self._managers.controller_mutation
        name, metric = self._sensor(manager, request)
        quota = None if metric is None else metric.config.quota
        if metric is None or quota is None or name in self._known_buckets or quota.bound >= UNLIMITED:
            return
        self._known_buckets.add(name)
        implied_tokens = permits - request.throttle_ms / 1000 * quota.bound
        excess = metric.peek(now_ms) - implied_tokens
        if abs(excess) > _BUCKET_OFF_S * quota.bound:
            self._revealing.add(request.identity)
            manager.record_no_throttle(request.principal, request.client_id, excess, now_ms)

    def decide(self, request: Request, fetched: int | None) -> Prediction:
        """
        Charge a request, and return the throttle times that quotas impose on it.

        `fetched` is the number of bytes that a Fetch is charged; None if it is unknown.
        """
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
                # the answer went out empty, and the charge is given back
                self._managers.fetch.unrecord(*client, fetched, request.decided_ms)
        return Prediction(bytes_of=bytes_of, bytes_ms=bytes_ms, request_ms=request_ms, mutation_ms=mutation_ms)

    def charge_time(self, request: Request, percent: float, now_ms: int) -> None:
        """Charge thread time in percent without a throttle; a negative time is given back."""
        if percent and not request.exempt and self._managers.request.quotas_enabled:
            principal_and_client = request.principal, request.client_id
            self._managers.request.record_no_throttle(*principal_and_client, percent, now_ms)

    def bytes_sensor(self, request: Request, kind: QuotaType) -> tuple[str, int] | None:
        """
        Return the name of the sensor that a request's bytes are charged to, and the begin of its oldest window.

        Return None if no quota applies. The begin is in epoch ms.
        """
        manager = self._managers.of(kind)
        if not manager.quotas_enabled:
            return None
        name, metric = self._sensor(manager, request)
        rate = None if metric is None else metric.stat
        if not isinstance(rate, Rate):
            return None
        return name, rate.stat.oldest_start_ms(request.decided_ms)

    def request_sensor(self, request: Request) -> tuple[str, KafkaMetric] | None:
        """Return the name and the metric of the sensor that thread time is charged to; None without a limit."""
        manager = self._managers.request
        if not manager.quotas_enabled:
            return None
        name, metric = self._sensor(manager, request)
        limited = manager.quota(request.principal, request.client_id).bound < UNLIMITED
        return None if metric is None or not limited else (name, metric)

    def _sensor(self, manager: ClientQuotaManager, request: Request) -> tuple[str, KafkaMetric | None]:
        """Return the name and the metric of a request's sensor in a manager."""
        principal_and_client = request.principal, request.client_id
        tags = manager.sensors_for(*principal_and_client, request.decided_ms).tags
        name = self._registry.metric_name(manager.metric, manager.quota_type.group, tags.metric_tags(), "")
        return f"{name.group}-{tags.suffix}", self._registry.metric(name)

    def _charged(self, manager: ClientQuotaManager, request: Request, size: int | None) -> int:
        """Charge bytes, and return the throttle time in ms; an unknown size is not charged."""
        if size is None:
            return 0
        return manager.maybe_record_and_get_throttle_time(
            request.principal, request.client_id, size, request.decided_ms
        )


def attributed(
    request: Request, prediction: Prediction, limited: Collection[QuotaType], longest_request_ms: int
) -> QuotaType:
    """
    Return the quota that caused `request.throttle_ms`.

    Args:
        request: request with a throttle in its answer.
        prediction: prediction of the replay.
        limited: quota types that limit the client.
        longest_request_ms: longest throttle of the request quota: one window.

    """
    if not request.forwarded and request.throttle_ms > request.own_ms:
        return QuotaType.CONTROLLER_MUTATION
    may_be_request_quota = QuotaType.REQUEST in limited and request.throttle_ms <= longest_request_ms
    if request.charged_ms is not None and QuotaType.CONTROLLER_MUTATION in limited and not may_be_request_quota:
        return QuotaType.CONTROLLER_MUTATION  # in ZooKeeper mode the controller mutes its client itself
    byte_quota = prediction.bytes_of
    if byte_quota is None or byte_quota not in limited:
        return QuotaType.REQUEST
    if not may_be_request_quota:
        return byte_quota
    bytes_error = abs(request.throttle_ms - prediction.bytes_ms)
    time_error = abs(request.throttle_ms - prediction.request_ms)
    if prediction.bytes_ms > 0 and bytes_error < time_error:
        return byte_quota
    return QuotaType.REQUEST


def charges_of(requests: Iterable[Request], *, validate_only: bool = True) -> Mapping[int, tuple[int, ...]]:
    """
    Return the number of partitions of each topic that reached the mutation quota, by line.

    Topics stay apart because a strict quota checks them one by one. They are on the controller's line of a request if
    the log has it, and otherwise on the client's. A topic with an unknown number of partitions counts as 0. Without
    `validate_only`, topics that a request only validates are left out (`KafkaRelease.charges_validate_only`).
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
    reached_the_quota = (ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    return {
        line: tuple(
            counts.requested(row, topic) or 0
            for topic in row["topics"]
            if topic["error"] in reached_the_quota and (validate_only or not topic["validate_only"])
        )
        for line, row in rows.items()
    }  # fmt: skip
