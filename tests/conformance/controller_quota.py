"""Vectors about the quota of one controller request."""

from tests.conformance import expectations, settings
from tests.conformance.failures import Malformed
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import (
    UNBOUNDED,
    ClientSensors,
    EntityTags,
    KafkaRelease,
    ManagerConfig,
    MetricConfig,
    MetricName,
    MutationQuota,
    PermissiveMutationQuota,
    Registry,
    StrictMutationQuota,
    ThrottlingQuotaExceeded,
    TokenBucket,
)


class ControllerQuotaRunner(Runner):
    """Charges mutations to a strict, a permissive or an unbounded quota over one token bucket."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        metric = settings.config(config)
        sensors = _sensors(metric, self._origin_ms)
        self._quota = _quota(config.text("mode"), sensors, release)

    def op_record(self, step: Fields) -> None:
        """Charge."""
        try:
            self._quota.record(float(step.number("value")), self.now_ms(step))
        except ThrottlingQuotaExceeded:
            expectations.flag(step, True, "expect_rejected")  # noqa: FBT003 - the value itself
        else:
            expectations.flag(step, False, "expect_rejected")  # noqa: FBT003

    def op_is_exceeded(self, step: Fields) -> None:
        """Ask whether a mutation was refused."""
        expectations.flag(step, self._quota.is_exceeded)

    def op_throttle_time(self, step: Fields) -> None:
        """Ask for the ms that are left."""
        throttle_ms = self._quota.throttle_time_ms(self.now_ms(step))
        expectations.number(step, throttle_ms)


def _sensors(metric: MetricConfig, now_ms: int) -> ClientSensors:
    registry = Registry()
    sensor = registry.sensor("quota", now_ms)
    sensor.add(MetricName("tokens", ""), TokenBucket(), metric)
    return ClientSensors(
        EntityTags("", "", ""), sensor, registry.sensor("throttle-time", now_ms)
    )


def _quota(mode: str, sensors: ClientSensors, release: KafkaRelease) -> MutationQuota:
    match mode:
        case "strict":
            return StrictMutationQuota(sensors, ManagerConfig(release=release))
        case "permissive":
            return PermissiveMutationQuota(sensors, ManagerConfig(release=release))
        case "unbounded":
            return UNBOUNDED
        case _:
            raise Malformed(f"unknown mode {mode!r:.60}")
