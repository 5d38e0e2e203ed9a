"""Vectors about statistics, sensors and registries, and the two formulae of throttle times."""

from collections.abc import Callable
from enum import Enum

from tests.conformance import expectations, settings
from tests.conformance.fields import Fields, Malformed, Runner, Unmet, as_text

from quotascope.metrics import (
    BinScheme,
    CompoundStat,
    ConstantBins,
    KafkaMetric,
    KafkaRelease,
    LinearBins,
    Measurable,
    MetricConfig,
    MetricName,
    MetricsError,
    Quota,
    QuotaViolation,
    Rate,
    RecordingLevel,
    Registry,
    Sensor,
    Stat,
    TokenBucket,
    rate_throttle_time_ms,
    token_throttle_time_ms,
)


class StatRunner(Runner):
    """Records into a statistic and reads it, each time with the config of the moment."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._stat = settings.statistic(config)
        self._config = settings.config(config)

    def op_record(self, step: Fields) -> None:
        """Record a value."""
        self._stat.record(self._config, float(step.number("value")), self.now_ms(step))

    def op_measure(self, step: Fields) -> None:
        """Read."""
        value = self._measurable(step).measure(self._config, self.now_ms(step))
        expectations.number(step, value)

    def op_window_size(self, step: Fields) -> None:
        """Ask a rate for its divisor in ms."""
        measurable = self._measurable(step)
        if not isinstance(measurable, Rate):
            raise Malformed(f"a {type(measurable).__name__} has no window size")
        size_ms = measurable.window_size(self._config, self.now_ms(step))
        expectations.number(step, size_ms)

    def op_set_metric_config(self, step: Fields) -> None:
        """Go on with another config."""
        self._config = settings.config(step)

    def _measurable(self, step: Fields) -> Measurable:
        """The statistic itself, or the part of a compound one that `of` names."""
        if not isinstance(self._stat, CompoundStat):
            return self._stat
        of = settings.part_name(step.raw("of"))
        for part in self._stat.stats():
            if part.name.name == of:
                return part.measurable
        raise Malformed(f"the statistic has no part {of!r:.60}")


class _Scheme(Enum):
    """The words of the vectors."""

    CONSTANT = "constant"
    LINEAR = "linear"


class HistogramBinsRunner(Runner):
    """Asks for the bin of a value and for the edge of a bin."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._bins = _bins(config)

    def op_to_bin(self, step: Fields) -> None:
        """Ask for a value's bin."""
        number = self._bins.bin_of(float(step.number("value")))
        expectations.number(step, number)

    def op_from_bin(self, step: Fields) -> None:
        """Ask where a bin begins."""
        expectations.number(step, self._bins.edge(step.integer("bin")))


def _bins(config: Fields) -> BinScheme:
    scheme = settings.member(_Scheme, config.text("scheme").upper())
    bins, max_value = config.integer("bins"), float(config.number("max"))
    if scheme is _Scheme.LINEAR:
        return LinearBins(bins, max_value)
    return ConstantBins(bins, float(config.number("min")), max_value)


class SensorRunner(Runner):
    """Records into a sensor, with and without checks."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._registry = Registry()
        key = "inactive_expiration_s"
        inactive = config.integer(key) if key in config else None
        self._sensor: Sensor = self._registry.sensor("sensor", self._origin_ms, inactive_seconds=inactive)
        config.several("metrics", self._add)

    def _add(self, value: object) -> None:
        metric = Fields(value)
        name = self._registry.metric_name(metric.text("name"), "vector")
        self._sensor.add(name, settings.statistic(metric), settings.config(metric))
        metric.done()

    def op_record(self, step: Fields) -> None:
        """Record, then check unless switched off."""
        value, check = (
            float(step.number("value", 1.0)),
            step.flag("check_quotas", default=True),
        )
        now_ms = self.now_ms(step)
        expectations.violation(step, lambda: self._sensor.record(value, now_ms, check))

    def op_strict_record(self, step: Fields) -> None:
        """Check, then record."""
        value, now_ms = float(step.number("value")), self.now_ms(step)
        expectations.violation(step, lambda: self._sensor.record_if_within_quota(value, now_ms))

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


class RecordingLevelRunner(Runner):
    """Asks sensors of one level under registries of another."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._level = settings.member(RecordingLevel, config.text("sensor_level"))

    def op_should_record(self, step: Fields) -> None:
        """Ask whether the sensor records."""
        configured = settings.member(RecordingLevel, step.text("config_level"))
        registry = Registry(recording_level=configured)
        sensor = registry.sensor("sensor", 0, recording_level=self._level)
        expectations.flag(step, sensor.should_record())


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
            self._sensors[name] = self._registry.sensor(name, now_ms, inactive_seconds=expires, parents=family)

        _refusable(step, create)

    def op_add(self, step: Fields) -> None:
        """Add a metric to a sensor; false is expected of one that has expired."""
        sensor = self._sensor(step.text("sensor"))
        name, now_ms = self._name(step), self.now_ms(step)
        statistic = settings.statistic(step)
        _refusable(step, lambda: expectations.flag(step, sensor.add(name, statistic, now_ms=now_ms)))

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


class ThrottleFormulaRunner(Runner):
    """Throttle times of rates that nothing was recorded in, so that their window is `samples - 1` windows long."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._time_window_ms = config.integer("time_window_ms")

    def op_throttle_time(self, step: Fields) -> None:
        """Compute ms, not narrowed to 32 bits."""
        violation = _violated(
            Rate(),
            observed=step.number("observed"),
            bound=step.number("bound"),
            samples=step.integer("samples"),
            time_window_ms=self._time_window_ms,
        )
        throttle_ms = rate_throttle_time_ms(violation, self.now_ms(step))
        expectations.number(step, throttle_ms)


class TokenThrottleRunner(Runner):
    """Throttle times of token buckets."""

    def op_throttle_time(self, step: Fields) -> None:
        """Compute ms, not narrowed to 32 bits."""
        violation = _violated(TokenBucket(), observed=step.number("value"), bound=step.number("bound"))
        expectations.number(step, token_throttle_time_ms(violation))


def _violated(
    stat: Stat, *, observed: float, bound: float, samples: int = 2, time_window_ms: int = 30_000
) -> QuotaViolation:
    config = MetricConfig(samples, time_window_ms, quota=Quota(float(bound)))
    metric = Registry().add_metric(MetricName("violated", ""), stat, config)
    return QuotaViolation(metric.name, float(observed), float(bound), metric)
