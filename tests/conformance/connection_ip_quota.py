"""Vectors about the rate of new connections of one address."""

from tests.conformance import expectations
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import (
    ConnectionQuotas,
    ConnectionThrottled,
    KafkaRelease,
    Registry,
    WindowConfig,
)

IP, LISTENER = "10.0.0.1", "CLIENT"


class ConnectionIpQuotaRunner(Runner):
    """Opens connections until one is refused."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        windows = WindowConfig(
            samples=config.integer("samples"), window_seconds=config.integer("window_s")
        )
        self._registry = Registry()
        self._quotas = ConnectionQuotas(self._registry, self._origin_ms, windows)
        self._quotas.add_listener(LISTENER, self._origin_ms)
        self._throttle_ms = 0

    def op_set_ip_quota(self, step: Fields) -> None:
        """Limit the address."""
        self._quotas.update_ip_rate(IP, step.integer("bound"))

    def op_connect(self, step: Fields) -> None:
        """Open up to `count` connections at once."""
        now_ms = self.now_ms(step)
        accepted = 0
        while accepted < step.integer("count") and self._is_admitted(now_ms):
            accepted += 1
        expectations.number(step, accepted, "expect_accepted")

    def op_rate(self, step: Fields) -> None:
        """Read the rate of the address, and of its listener, which is the same."""
        for tags in ({"ip": IP}, {"listener": LISTENER}):
            name = self._registry.metric_name(
                "connection-accept-rate", "socket-server-metrics", tags
            )
            value = self._registry.metrics()[name].value(self.now_ms(step))
            expectations.number(step, value)

    def op_last_throttle_ms(self, step: Fields) -> None:
        """Compare how long the last refused connection is kept open."""
        expectations.number(step, self._throttle_ms)

    def _is_admitted(self, now_ms: int) -> bool:
        self._quotas.accept(LISTENER, now_ms)
        try:
            self._quotas.admit(LISTENER, IP, now_ms)
        except ConnectionThrottled as refusal:
            self._throttle_ms = refusal.throttle_time_ms
            return False
        return True
