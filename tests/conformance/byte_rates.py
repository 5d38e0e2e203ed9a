"""Vectors about the quotas on what brokers move for themselves."""

from tests.conformance import expectations
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import (
    ByteRateQuota,
    KafkaRelease,
    Quota,
    Registry,
    ReplicationQuotaManager,
    ReplicationQuotaType,
    RLMQuotaManager,
    RLMQuotaType,
    WindowConfig,
)


class ReplicationQuotaRunner(Runner):
    """Records into the leader's quota and asks whether it is exceeded."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._registry = Registry()
        self._manager = ReplicationQuotaManager(
            self._registry, ReplicationQuotaType.LEADER, _windows(config)
        )

    def op_update_quota(self, step: Fields) -> None:
        """Set the bound."""
        _update(self._manager, step)

    def op_record(self, step: Fields) -> None:
        """Record bytes."""
        self._manager.record(float(step.number("value")), self.now_ms(step))

    def op_is_exceeded(self, step: Fields) -> None:
        """Ask whether the rate is past its bound."""
        expectations.flag(step, self._manager.is_quota_exceeded(self.now_ms(step)))

    def op_rate(self, step: Fields) -> None:
        """Read the rate."""
        metric = self._registry.metrics()[self._manager.metric_name]
        expectations.number(step, metric.value(self.now_ms(step)))


class RLMQuotaRunner(Runner):
    """Records into the quota of copies to tiered storage and asks for the wait."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._manager = RLMQuotaManager(
            Registry(), RLMQuotaType.COPY, config.integer("bound"), _windows(config)
        )

    def op_update_quota(self, step: Fields) -> None:
        """Set the bound."""
        _update(self._manager, step)

    def op_record(self, step: Fields) -> None:
        """Record bytes."""
        self._manager.record(float(step.number("value")), self.now_ms(step))

    def op_throttle_time(self, step: Fields) -> None:
        """Ask for the wait in ms."""
        expectations.number(step, self._manager.throttle_time_ms(self.now_ms(step)))


def _windows(config: Fields) -> WindowConfig:
    return WindowConfig(
        samples=config.integer("samples"), window_seconds=config.integer("window_s")
    )


def _update(manager: ByteRateQuota, step: Fields) -> None:
    manager.update_quota(Quota(float(step.number("bound"))))
