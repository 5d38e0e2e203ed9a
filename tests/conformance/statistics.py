"""Vectors about statistics, sensors and registries, and the two formulae of throttle times."""

from collections.abc import Callable
from typing import Annotated

from tests.conformance.fields import Malformed, Runner, Unmet, called, is_same
from tests.conformance.settings import DEFAULTS, Config, part_name, statistic

from quotascope.metrics.engine.config import MetricConfig, RecordingLevel
from quotascope.metrics.engine.errors import QuotaViolation
from quotascope.metrics.engine.extras.histogram import ConstantBins, LinearBins
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.sensor import Sensor
from quotascope.metrics.engine.stat import CompoundStat, Measurable, Stat
from quotascope.metrics.engine.throttle_time import rate_throttle_time_ms, token_throttle_time_ms
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.kafka.errors import MetricsError


class StatRunner(Runner):
    def _begin(self, stat: str, metric: Config = DEFAULTS, **keys: object) -> None:
        self._stat, self._config = statistic(stat, keys), metric

    def _op_record(self, value: float) -> None:
        self._stat.record(self._config, value, self._now_ms)

    def _op_measure(self, of: object = None) -> float:
        return self._measurable(of).measure(self._config, self._now_ms)

    def _op_window_size(self, of: object = None) -> int:
        """A rate's divisor in ms."""
        measurable = self._measurable(of)
        if not isinstance(measurable, Rate):
            raise Malformed(f"a {type(measurable).__name__} has no window size")
        return measurable.window_size(self._config, self._now_ms)

    def _op_set_metric_config(self, metric: Config) -> None:
        self._config = metric

    def _measurable(self, of: object) -> Measurable:
        """Return the statistic itself, or the part of a compound one that `of` names."""
        if not isinstance(self._stat, CompoundStat):
            if of is not None:
                raise Malformed("the statistic has no parts")
            return self._stat
        for part in self._stat.stats():
            if part.name.name == part_name(of):
                return part.measurable
        raise Malformed(f"the statistic has no part {of!r:.60}")


class HistogramBinsRunner(Runner):
    def _begin(
        self,
        scheme: str,
        bins: int,
        max: float,  # noqa: A002 - a key of a config
        min: float | None = None,  # noqa: A002 - as above
    ) -> None:
        """Create bins; constant ones have a minimum, linear ones begin at 0."""
        if (scheme, min is None) not in (("constant", False), ("linear", True)):
            raise Malformed(f"unknown scheme {scheme!r:.60} with the minimum {min}")
        self._bins = LinearBins(bins, max) if min is None else ConstantBins(bins, min, max)

    def _op_to_bin(self, value: float) -> int:
        return self._bins.bin_of(value)

    def _op_from_bin(self, bin: int) -> float:  # noqa: A002 - a key of a step
        return self._bins.edge(bin)


def _violation(metric: str, value: float | None = None, bound: float | None = None) -> tuple[object, ...]:
    return metric, value, bound


Violation = Annotated[tuple[object, ...], lambda value: called(_violation, value)]
"""A metric, its value and its bound, either of which may be left out."""


def _check(expected: tuple[object, ...] | None, action: Callable[[], object]) -> None:
    """Run something that may violate a quota and compare the violation; where none is expected, none may occur."""
    try:
        action()
    except QuotaViolation as error:
        found = error.metric_name.name, error.value, error.bound
        if expected is None or not all(
            wanted is None or is_same(wanted, actual) for wanted, actual in zip(expected, found, strict=True)
        ):
            raise Unmet(f"the violation {expected!r}, got {error}") from error
    else:
        if expected is not None:
            raise Unmet(f"a violation {expected!r}, got none")


class SensorRunner(Runner):
    def _begin(self, metrics: list[object], inactive_expiration_s: int | None = None) -> None:
        self._registry = Registry()
        self._sensor = self._registry.sensor("sensor", self._origin_ms, inactive_seconds=inactive_expiration_s)
        for metric in metrics:
            called(self._add, metric)

    def _add(self, name: str, stat: str, metric: Config = DEFAULTS, **keys: object) -> None:
        self._sensor.add(self._registry.metric_name(name, "vector"), statistic(stat, keys), metric)

    def _op_record(
        self,
        value: float = 1.0,
        check_quotas: bool = True,  # noqa: FBT001, FBT002 - a key of a step
        expect_violation: Violation | None = None,
    ) -> None:
        _check(expect_violation, lambda: self._sensor.record(value, self._now_ms, check_quotas))

    def _op_strict_record(self, value: float, expect_violation: Violation | None = None) -> None:
        _check(expect_violation, lambda: self._sensor.record_if_within_quota(value, self._now_ms))

    def _op_check_quotas(self, expect_violation: Violation | None = None) -> None:
        _check(expect_violation, lambda: self._sensor.check_quotas(self._now_ms))

    def _op_measure(self, metric: str) -> float:
        measured_metric = self._registry.metric(self._registry.metric_name(metric, "vector"))
        if measured_metric is None:
            raise Malformed(f"the sensor has no metric {metric!r:.60}")
        return measured_metric.value(self._now_ms)

    def _op_has_expired(self) -> bool:
        return self._sensor.has_expired(self._now_ms)


class RecordingLevelRunner(Runner):
    def _begin(self, sensor_level: RecordingLevel) -> None:
        self._level = sensor_level

    def _op_should_record(self, config_level: RecordingLevel) -> bool:
        return Registry(recording_level=config_level).sensor("sensor", 0, recording_level=self._level).should_record()


REFUSED = "IllegalArgumentException"
"""How Kafka refuses a request that makes no sense; ours are `MetricsError`s that are `ValueError`s."""


class RegistryRunner(Runner):
    def _begin(self) -> None:
        self._registry = Registry()
        self._sensors: dict[str, Sensor] = {}

    def _op_sensor(
        self, name: str, parents: list[str] | None = None, expiration_s: int | None = None, expect_error: str = ""
    ) -> None:
        family = [self._sensor(parent) for parent in parents or ()]

        def create() -> None:
            self._sensors[name] = self._registry.sensor(
                name, self._now_ms, inactive_seconds=expiration_s, parents=family
            )

        _refusable(expect_error, create)

    def _op_add(
        self, sensor: str, metric: str, stat: str, expect: object = None, expect_error: str = "", **keys: object
    ) -> None:
        """Add a metric; false is expected of a sensor that has expired."""
        chosen, statistic_ = self._sensor(sensor), statistic(stat, keys)

        def add() -> None:
            added = chosen.add(self._name(metric), statistic_, now_ms=self._now_ms)
            if expect is not None and not is_same(expect, added):
                raise Unmet(f"expect {expect}, got {added}")

        _refusable(expect_error, add)

    def _op_record(self, sensor: str, value: float = 1.0, expect_violation: Violation | None = None) -> None:
        chosen = self._sensor(sensor)
        _check(expect_violation, lambda: chosen.record(value, self._now_ms))

    def _op_value(self, metric: str) -> float:
        target = self._metric(metric)
        if target is None:
            raise Unmet("a metric, got none")
        return target.value(self._now_ms)

    def _op_has_metric(self, metric: str) -> bool:
        return self._metric(metric) is not None

    def _op_exists(self, sensor: str) -> bool:
        return self._registry.get_sensor(sensor) is not None

    def _op_remove_sensor(self, sensor: str) -> None:
        self._registry.remove_sensor(sensor)

    def _op_expire(self) -> None:
        self._registry.expire_sensors(self._now_ms)

    def _sensor(self, name: str) -> Sensor:
        if name not in self._sensors:
            raise Malformed(f"no sensor {name!r:.60} was created")
        return self._sensors[name]

    def _name(self, metric: str) -> MetricName:
        return self._registry.metric_name(metric, "vector")

    def _metric(self, metric: str) -> KafkaMetric | None:
        return self._registry.metric(self._name(metric))


def _refusable(expected: str, action: Callable[[], object]) -> None:
    """Run something that the engine has to refuse if an error is expected."""
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
    """
    A runner for throttle times of rates without records, whose window is `samples - 1` windows long.

    The times are in ms and not narrowed to 32 bits.
    """

    def _begin(self, time_window_ms: int) -> None:
        self._time_window_ms = time_window_ms

    def _op_throttle_time(self, observed: float, bound: float, samples: int) -> int:
        config = MetricConfig(samples, self._time_window_ms, quota=Quota(bound))
        return rate_throttle_time_ms(_violated(Rate(), observed, config), self._now_ms)


class TokenThrottleRunner(Runner):
    """Throttle times of token buckets in ms, not narrowed to 32 bits."""

    def _op_throttle_time(self, value: float, bound: float) -> int:
        return token_throttle_time_ms(_violated(TokenBucket(), value, MetricConfig(quota=Quota(bound))))


def _violated(stat: Stat, value: float, config: MetricConfig) -> QuotaViolation:
    metric = Registry().add_metric(MetricName("violated", ""), stat, config)
    assert config.quota is not None
    return QuotaViolation(metric.name, value, config.quota.bound, metric)
