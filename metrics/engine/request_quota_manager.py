"""Quotas on the time of a broker's threads."""

from typing import Final

from ..kafka.entities import QuotaType
from ..kafka.principal import Principal
from .client_quota_manager import ClientQuotaManager
from .client_sensors import INACTIVE_SECONDS
from .metric import Breach
from .quota_callback import QuotaCallback
from .rate import Rate
from .registry import Registry
from .sensor import Sensor
from .window_config import ManagerConfig

PERCENT_PER_NANO: Final = 100.0 / 1e9
"""One thread that is busy for a second has used 100 percent."""


class RequestQuotaManager(ClientQuotaManager):
    """
    Limits the percentage of one thread's time that a client uses on one broker (Kafka: `ClientRequestQuotaManager`).

    All of a broker's threads offer `(num.io.threads + num.network.threads) * 100` percent. A throttle never lasts
    longer than one window (KIP-124). What brokers do among themselves is not limited but measured, in
    `exempt-request-time`, which never expires since Kafka 3.3 (`KafkaRelease.expires_exempt_time`).
    """

    metric = "request-time"

    def __init__(
        self,
        registry: Registry,
        now_ms: int,
        config: ManagerConfig | None = None,
        callback: QuotaCallback | None = None,
    ) -> None:
        super().__init__(registry, QuotaType.REQUEST, now_ms, config, callback)
        self._exempt: Sensor | None = None if self.config.release.expires_exempt_time else self._exempt_sensor(now_ms)

    def maybe_record_request(self, principal: Principal, client_id: str, thread_time_ns: int, now_ms: int) -> int:
        """Record the ns that handler threads spent on a request, if any rule exists; return the ms to throttle."""
        if not self.quotas_enabled:
            return 0
        percent = thread_time_ns * PERCENT_PER_NANO
        return self.record_and_get_throttle_time(principal, client_id, percent, now_ms)

    def record_network_thread_time(
        self, principal: Principal, client_id: str, thread_time_ns: int, now_ms: int
    ) -> None:
        """
        Record the ns that a network thread spent on a response that has left.

        A broker does so for requests that it recorded, that is, if a rule existed when they were answered.
        """
        percent = thread_time_ns * PERCENT_PER_NANO
        self.record_no_throttle(principal, client_id, percent, now_ms)

    def maybe_record_exempt(self, thread_time_ns: int, now_ms: int) -> None:
        """Record the ns spent on a request that no quota applies to, if any rule exists."""
        if self.quotas_enabled:
            self.record_exempt(thread_time_ns, now_ms)

    def record_exempt(self, thread_time_ns: int, now_ms: int) -> None:
        """Record the ns spent on a request that no quota applies to, such as its network thread's afterwards."""
        if self._exempt is None:
            self._exempt = self._exempt_sensor(now_ms, INACTIVE_SECONDS)
        self._exempt.record(thread_time_ns * PERCENT_PER_NANO, now_ms)

    def _exempt_sensor(self, now_ms: int, inactive_seconds: int | None = None) -> Sensor:
        group = QuotaType.REQUEST.group
        sensor = self._registry.sensor(f"exempt-{group}", now_ms, inactive_seconds=inactive_seconds)
        about = "Tracking exempt-request-time utilization percentage"
        sensor.add(self._registry.metric_name("exempt-request-time", group, (), about), Rate())
        return sensor

    def _throttle_time_ms(self, breach: Breach, now_ms: int) -> int:
        return min(super()._throttle_time_ms(breach, now_ms), self.config.window_ms)
