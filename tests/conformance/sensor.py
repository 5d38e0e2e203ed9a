"""Vectors about one sensor and its metrics."""

from tests.conformance import expectations, settings
from tests.conformance.failures import Malformed
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner

from quotascope.metrics import KafkaMetric, KafkaRelease, Registry, Sensor


class SensorRunner(Runner):
    """Records into a sensor, with and without checks."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._registry = Registry()
        key = "inactive_expiration_s"
        inactive = config.integer(key) if key in config else None
        self._sensor: Sensor = self._registry.sensor(
            "sensor", self._origin_ms, inactive_seconds=inactive
        )
        config.several("metrics", self._add)

    def _add(self, value: object) -> None:
        metric = Fields(value)
        name = self._registry.metric_name(metric.text("name"), "vector")
        self._sensor.add(name, settings.statistic(metric), settings.config(metric))
        metric.done()

    def op_record(self, step: Fields) -> None:
        """Record, then check unless told not to."""
        value, check = (
            float(step.number("value", 1.0)),
            step.flag("check_quotas", default=True),
        )
        now_ms = self.now_ms(step)
        expectations.violation(step, lambda: self._sensor.record(value, now_ms, check))

    def op_strict_record(self, step: Fields) -> None:
        """Check, then record."""
        value, now_ms = float(step.number("value")), self.now_ms(step)
        expectations.violation(
            step, lambda: self._sensor.record_if_within_quota(value, now_ms)
        )

    def op_check_quotas(self, step: Fields) -> None:
        """Check without recording."""
        now_ms = self.now_ms(step)
        expectations.violation(step, lambda: self._sensor.check_quotas(now_ms))

    def op_measure(self, step: Fields) -> None:
        """Read a metric."""
        expectations.number(step, self._metric(step).value(self.now_ms(step)))

    def op_has_expired(self, step: Fields) -> None:
        """Ask whether the sensor was unused for too long."""
        expectations.flag(step, self._sensor.has_expired(self.now_ms(step)))

    def _metric(self, step: Fields) -> KafkaMetric:
        name = step.text("metric")
        metric = self._registry.metric(self._registry.metric_name(name, "vector"))
        if metric is None:
            raise Malformed(f"the sensor has no metric {name!r:.60}")
        return metric
