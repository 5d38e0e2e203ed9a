"""The quotas of one process, fed with what its request log says."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from quotascope.metrics import (
    UNLIMITED,
    ClientQuotaManager,
    KafkaMetric,
    QuotaManagers,
    QuotaType,
    Rate,
    Registry,
    ThrottlingQuotaExceeded,
)

from .apis import FETCH, PRODUCE
from .mutations import API_OF
from .prediction import Prediction
from .request import Request
from .rules import Key, Rules

EXPIRY_MS: Final = 30_000
"""Kafka looks for sensors that nobody used for an hour this often."""


class ReplayedBroker:
    """
    One process: a broker, a controller, or both, whose sensors are then the same.

    Args:
        rules: for the windows.
        quotas: in force at the start.
        now_ms: epoch ms of the start.

    """

    def __init__(self, rules: Rules, quotas: Mapping[Key, float], now_ms: int) -> None:
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
        """Remove what nobody used for an hour."""
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
        return self._managers.fetch.max_value_in_quota_window(
            request.principal, request.client_id, request.decided_ms
        )

    def mutate(self, request: Request, charges: Iterable[int], now_ms: int) -> None:
        """Charge partitions that came to the mutation quota, topic by topic; the answer's throttle is remembered for the client's line."""
        quota = self._managers.controller_mutation.quota_for(
            request.principal,
            request.client_id,
            API_OF[request.api_key],
            request.api_version,
            now_ms,
        )
        for charge in charges:
            with suppress(ThrottlingQuotaExceeded):
                quota.record(charge, now_ms)
        throttle_ms = quota.throttle_time_ms(request.decided_ms)
        self._from_controller[request.identity] = throttle_ms

    def decide(self, request: Request, fetched: int | None) -> Prediction:
        """Charge a request and say how long each quota throttles it; `fetched` are the bytes that a Fetch was charged."""
        mutation_ms = 0
        if not request.forwarded:
            mutation_ms = self._from_controller.pop(request.identity, 0)
        if request.api_key == PRODUCE:
            bytes_ms = self._charged(self._managers.produce, request, request.produced)
            return Prediction(
                bytes_of=QuotaType.PRODUCE,
                bytes_ms=bytes_ms,
                request_ms=self._request(request),
            )
        request_ms = self._request(request)
        if request.api_key == FETCH and not request.exempt:
            bytes_ms = self._fetched(request, fetched)
            return Prediction(
                bytes_of=QuotaType.FETCH, bytes_ms=bytes_ms, request_ms=request_ms
            )
        return Prediction(request_ms=request_ms, mutation_ms=mutation_ms)

    def charge_time(self, request: Request, percent: float, now_ms: int) -> None:
        """Charge thread time that nobody is throttled for on the spot; negative gives it back."""
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

    def _sensor(
        self, manager: ClientQuotaManager, request: Request
    ) -> tuple[str, KafkaMetric | None]:
        who = request.principal, request.client_id
        tags = manager.sensors_for(*who, request.decided_ms).tags
        name = self._registry.metric_name(
            manager.metric, manager.quota_type.group, tags.metric_tags(), ""
        )
        return f"{name.group}-{tags.suffix}", self._registry.metric(name)

    def _request(self, request: Request) -> int:
        if request.exempt:
            return 0
        return self._managers.request.maybe_record_request(
            request.principal,
            request.client_id,
            request.thread_ns,
            request.decided_ms,
        )

    def _charged(
        self, manager: ClientQuotaManager, request: Request, size: int | None
    ) -> int:
        if size is None:
            return 0
        return manager.maybe_record_and_get_throttle_time(
            request.principal, request.client_id, size, request.decided_ms
        )

    def _fetched(self, request: Request, size: int | None) -> int:
        """A Fetch that was throttled gives back what it was charged: it went out empty."""
        bytes_ms = self._charged(self._managers.fetch, request, size)
        if request.told_ms > 0 and size is not None:
            who = request.principal, request.client_id
            self._managers.fetch.unrecord(*who, size, request.decided_ms)
        return bytes_ms
