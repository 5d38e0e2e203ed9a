"""Vectors about a registry: hierarchies of sensors, removal, expiry."""

from collections.abc import Callable

from tests.conformance import expectations, settings
from tests.conformance.failures import Malformed, Unmet
from tests.conformance.fields import Fields, as_text
from tests.conformance.runner import Runner

from quotascope.metrics import (
    KafkaMetric,
    KafkaRelease,
    MetricName,
    MetricsError,
    Registry,
    Sensor,
)

REFUSED = "IllegalArgumentException"
"""How Kafka refuses a request that makes no sense; ours are `MetricsError`s that are `ValueError`s."""


class RegistryRunner(Runner):
    """Creates, feeds and removes sensors."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._registry = Registry()
        self._sensors: dict[str, Sensor] = {}

    def op_sensor(self, step: Fields) -> None:
        """Get or create a sensor."""
        name, parents = step.text("name"), step.several("parents", as_text, ())
        expires = step.integer("expiration_s") if "expiration_s" in step else None
        now_ms = self.now_ms(step)
        family = [self._sensor(parent) for parent in parents]

        def create() -> None:
            self._sensors[name] = self._registry.sensor(
                name, now_ms, inactive_seconds=expires, parents=family
            )

        _refusable(step, create)

    def op_add(self, step: Fields) -> None:
        """Add a metric to a sensor; false is expected of one that has expired."""
        sensor = self._sensor(step.text("sensor"))
        name, now_ms = self._name(step), self.now_ms(step)
        statistic = settings.statistic(step)
        _refusable(
            step,
            lambda: expectations.flag(step, sensor.add(name, statistic, now_ms=now_ms)),
        )

    def op_record(self, step: Fields) -> None:
        """Record."""
        sensor, value = (
            self._sensor(step.text("sensor")),
            float(step.number("value", 1.0)),
        )
        now_ms = self.now_ms(step)
        expectations.violation(step, lambda: sensor.record(value, now_ms))

    def op_value(self, step: Fields) -> None:
        """Read a metric."""
        metric = self._metric(step)
        if metric is None:
            raise Unmet("a metric, got none")
        expectations.number(step, metric.value(self.now_ms(step)))

    def op_has_metric(self, step: Fields) -> None:
        """Ask whether a metric exists."""
        expectations.flag(step, self._metric(step) is not None)

    def op_exists(self, step: Fields) -> None:
        """Ask whether a sensor exists."""
        sensor = self._registry.get_sensor(step.text("sensor"))
        expectations.flag(step, sensor is not None)

    def op_remove_sensor(self, step: Fields) -> None:
        """Remove a sensor, if it exists."""
        self._registry.remove_sensor(step.text("sensor"))

    def op_expire(self, step: Fields) -> None:
        """Remove what has expired."""
        self._registry.expire_sensors(self.now_ms(step))

    def _sensor(self, name: str) -> Sensor:
        if name not in self._sensors:
            raise Malformed(f"no sensor {name!r:.60} was created")
        return self._sensors[name]

    def _name(self, step: Fields) -> MetricName:
        return self._registry.metric_name(step.text("metric"), "vector")

    def _metric(self, step: Fields) -> KafkaMetric | None:
        return self._registry.metric(self._name(step))


def _refusable(step: Fields, action: Callable[[], object]) -> None:
    """Run something; with `expect_error` the engine has to refuse it."""
    expected = step.text("expect_error", "")
    if expected not in ("", REFUSED):
        raise Malformed(f"unknown error {expected!r:.60}")
    try:
        action()
    except MetricsError as error:
        if expected and isinstance(error, ValueError):
            return
        raise
    if expected:
        raise Unmet("a refusal, got none")
