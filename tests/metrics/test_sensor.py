"""Recording and checking."""

import math

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.config import MetricConfig, RecordingLevel
from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.errors import DuplicateMetric, QuotaViolation
from quotascope.metrics.engine.extras.all_time import CumulativeCount
from quotascope.metrics.engine.extras.meter import Meter
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.sensor import Sensor
from quotascope.metrics.engine.windowed import Avg, Max, WindowedCount

FIVE = MetricConfig(quota=Quota(5.0))


def named(name: str) -> MetricName:
    return MetricName(name, "")


def value_of(sensor: Sensor, name: str, now_ms: int = EPOCH_MS) -> float:
    metrics = {metric.name.name: metric for metric in sensor.metrics()}
    return metrics[name].value(now_ms)


@pytest.fixture
def sensor(registry: Registry) -> Sensor:
    """A sensor that expires after a minute."""
    return registry.sensor("s", EPOCH_MS, inactive_seconds=60)


class TestRecord:
    """Effects of a record and of a check."""

    def test_a_violating_value_counts(self, sensor: Sensor) -> None:
        """A value is recorded in all metrics before a violation is raised."""
        sensor.add(named("sum"), CumulativeSum(), FIVE)
        sensor.add(named("count"), CumulativeCount())
        with pytest.raises(QuotaViolation) as caught:
            sensor.record(6.0, EPOCH_MS)
        assert (caught.value.value, caught.value.bound) == (6.0, 5.0)
        assert caught.value.metric is sensor.metrics()[0]
        assert (value_of(sensor, "sum"), value_of(sensor, "count")) == (6.0, 1.0)

    def test_uses_the_config_of_the_moment(self, sensor: Sensor) -> None:
        """A metric records with its new config; a compound is read with it, but records with its first config."""
        sensor.add(named("count"), WindowedCount(), MetricConfig(samples=1, time_window_ms=1_000_000))
        sensor.add_compound(Meter(named("rate"), named("total"), WindowedCount()))
        metrics = {metric.name.name: metric for metric in sensor.metrics()}
        metrics["count"].config = MetricConfig(samples=3, event_window=1)
        metrics["rate"].config = MetricConfig(samples=1, time_window_ms=1_000, event_window=1)
        for _ in range(9):
            sensor.record(1.0, EPOCH_MS)
        assert metrics["count"].value(EPOCH_MS) == 4.0
        assert metrics["rate"].value(EPOCH_MS + 999) == pytest.approx(9.0 / 0.999)

    def test_nothing_read_is_a_violation(self, sensor: Sensor) -> None:
        """An average of nothing is NaN, which no bound accepts."""
        sensor.add(named("avg"), Avg(), FIVE)
        with pytest.raises(QuotaViolation) as caught:
            sensor.check_quotas(EPOCH_MS)
        assert math.isnan(caught.value.value)


class TestAdd:
    """Registering metrics."""

    def test_another_sensors_name_is_taken(self, registry: Registry, sensor: Sensor) -> None:
        """A refused metric leaves the sensor as it was."""
        sensor.add(named("m"), CumulativeSum())
        second = registry.sensor("other", EPOCH_MS)
        with pytest.raises(DuplicateMetric):
            second.add(named("m"), CumulativeSum())
        with pytest.raises(DuplicateMetric):
            second.add_compound(Meter(named("m"), named("total")))
        assert [metric.name.name for metric in second.metrics()] == ["total"]

    def test_a_name_the_sensor_has_keeps_its_first_metric(self, sensor: Sensor) -> None:
        """Adding a name again is no error, keeps the first metric, and records once."""
        assert sensor.add(named("sum"), CumulativeSum())
        assert sensor.add(named("sum"), Max())
        assert sensor.add(named("total"), Max())
        assert sensor.add_compound(Meter(named("rate"), named("total")))
        for _ in range(2):
            sensor.record(2.0, EPOCH_MS)
        assert [value_of(sensor, name) for name in ("sum", "total", "rate")] == [4.0, 2.0, 4.0 / 30.0]

    def test_not_to_an_expired_sensor(self, sensor: Sensor) -> None:
        """Anyone who gives the time gets an error: the sensor is as good as gone."""
        late = EPOCH_MS + 60_001
        assert not sensor.add(named("m"), CumulativeSum(), now_ms=late)
        assert not sensor.add_compound(Meter(named("rate"), named("total")), now_ms=late)
        assert not sensor.has_metrics()
        assert sensor.add(named("m"), CumulativeSum(), now_ms=late - 1)
        assert sensor.has_metrics()

    def test_the_sensors_config_is_the_default(self, registry: Registry) -> None:
        """The config of a metric comes before that of its sensor and of the registry: the nearest config counts."""
        sensor = registry.sensor("own", EPOCH_MS, FIVE)
        sensor.add(named("a"), CumulativeSum())
        sensor.add(named("b"), CumulativeSum(), MetricConfig(samples=7))
        sensor.add_compound(Meter(named("c"), named("d")))
        sensor.add_compound(Meter(named("e"), named("f")), MetricConfig(samples=9))
        samples = {metric.name.name: metric.config.samples for metric in sensor.metrics()}
        assert samples == {"a": 2, "b": 7, "d": 2, "c": 2, "f": 9, "e": 9}
        assert sensor.metrics()[0].config is FIVE


class TestExpiry:
    """Inactive sensors."""

    def test_a_refused_value_is_no_activity(self, sensor: Sensor) -> None:
        """Strict use that is refused does not record, so it does not keep the sensor."""
        sensor.add(named("m"), CumulativeSum(6.0), FIVE)
        with pytest.raises(QuotaViolation):
            sensor.record_if_within_quota(1.0, EPOCH_MS + 10_000)
        assert sensor.has_expired(EPOCH_MS + 60_001)

    @pytest.mark.parametrize("seconds", [None, 2**63 - 1])
    def test_never(self, registry: Registry, seconds: int | None) -> None:
        """A sensor without a time to live, or with a huge one, never expires."""
        sensor = registry.sensor("for good", 0, inactive_seconds=seconds)
        assert not sensor.has_expired(2**63 - 1)


class TestLevel:
    """Recording levels."""

    @pytest.mark.parametrize("configured", RecordingLevel)
    @pytest.mark.parametrize("level", RecordingLevel)
    def test_records_at_the_configured_detail(self, level: RecordingLevel, configured: RecordingLevel) -> None:
        """A sensor of too fine a detail ignores values, but its quotas can still be checked."""
        registry = Registry(recording_level=configured)
        sensor = registry.sensor("s", EPOCH_MS, recording_level=level)
        sensor.add(named("m"), CumulativeSum())
        sensor.record(1.0, EPOCH_MS)
        sensor.record_if_within_quota(1.0, EPOCH_MS)
        assert sensor.should_record() is (level <= configured)
        assert value_of(sensor, "m") == (2.0 if level <= configured else 0.0)

    def test_a_sensors_own_config_decides(self) -> None:
        """The recording level is that of the sensor's config, as in Kafka, and not the registry's."""
        registry = Registry(recording_level=RecordingLevel.TRACE)
        sensor = registry.sensor("s", EPOCH_MS, MetricConfig(), recording_level=RecordingLevel.DEBUG)
        assert not sensor.should_record()


class TestHierarchy:
    """Parents."""

    def test_a_violation_keeps_the_value_from_the_parents(self, registry: Registry) -> None:
        """The parents are recorded to after the check; strict use records to them without a check of theirs."""
        parent = registry.sensor("parent", EPOCH_MS, FIVE)
        parent.add(named("above"), CumulativeSum())
        child = registry.sensor("child", EPOCH_MS, FIVE, parents=(parent,))
        child.add(named("below"), CumulativeSum())
        child.record_if_within_quota(5.0, EPOCH_MS)
        with pytest.raises(QuotaViolation):
            child.record(1.0, EPOCH_MS)
        with pytest.raises(QuotaViolation):
            child.record_if_within_quota(1.0, EPOCH_MS)
        assert (value_of(child, "below"), value_of(parent, "above")) == (6.0, 5.0)
        child.record(-6.0, EPOCH_MS, check_quotas=False)
        parent.record(6.0, EPOCH_MS)
        child.record_if_within_quota(5.0, EPOCH_MS)
        assert value_of(parent, "above") == 10.0

    def test_trying_returns_what_recording_raises(self, registry: Registry) -> None:
        """The sensor's own violation comes first and stops the value; without one the parents' is reported."""
        parent = registry.sensor("parent", EPOCH_MS)
        parent.add(named("parents"), CumulativeSum(), MetricConfig(quota=Quota(2.0)))
        child = registry.sensor("child", EPOCH_MS, parents=(parent,))
        child.add(named("own"), CumulativeSum(), FIVE)
        assert child.try_record(2.0, EPOCH_MS) is None
        reported = [child.try_record(value, EPOCH_MS) for value in (3.0, 1.0)]
        assert [(breach.metric.name.name, breach.value, breach.bound) for breach in reported if breach is not None] == [
            ("parents", 5.0, 2.0),
            ("own", 6.0, 5.0),
        ]
        assert child.try_record(1.0, EPOCH_MS, check_quotas=False) is None
        assert value_of(parent, "parents") == 6.0
