"""Sensors and metrics by name."""

import logging
import threading
from collections.abc import Mapping, Sequence

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.errors import DuplicateMetric, NotMeasurable
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName, MetricNameTemplate
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.reporter import MetricsReporter
from quotascope.metrics.engine.stat import Gauge, Measured
from quotascope.metrics.kafka.errors import InvalidConfig

NAME = MetricName("m", "g", {"user": "a"})
COUNT = MetricName("count", "kafka-metrics-count")
SEVEN = Measured(lambda _config, _now_ms: 7.0)


class Recorder(MetricsReporter):
    def __init__(self) -> None:
        self.events: list[str] = []

    def context_change(self, context: Mapping[str, str]) -> None:
        self.events.append(f"context {dict(context)}")

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        self.events.append(f"init {[metric.name.name for metric in metrics]}")

    def metric_change(self, metric: KafkaMetric) -> None:
        self.events.append(f"change {metric.name.name}")

    def metric_removal(self, metric: KafkaMetric) -> None:
        self.events.append(f"removal {metric.name.name}")

    def close(self) -> None:
        self.events.append("close")


class Broken(MetricsReporter):
    def metric_change(self, metric: KafkaMetric) -> None:
        raise OSError(metric.name.name)

    def metric_removal(self, metric: KafkaMetric) -> None:
        raise OSError(metric.name.name)

    def close(self) -> None:
        raise OSError("close")


class TestNames:
    """Metric names of a registry."""

    def test_the_registrys_tags_come_first(self) -> None:
        """Given tags are added, or override in place."""
        registry = Registry(MetricConfig(tags={"a": "1", "b": "2"}), tags={"c": "3"})
        name = registry.metric_name("n", "g", {"d": "4", "b": "5"}, "what it is")
        assert list(name.tags.items()) == [("a", "1"), ("b", "5"), ("c", "3"), ("d", "4")]
        assert name.description == "what it is"

    def test_a_template_wants_its_tags_exactly(self) -> None:
        """Missing and surplus keys are errors; the registry's count as given."""
        registry = Registry(tags={"client-id": "c"})
        template = MetricNameTemplate("n", "g", ("client-id", "topic"), "what it is")
        name = registry.metric_instance(template, {"topic": "t"})
        assert name == MetricName("n", "g", {"client-id": "c", "topic": "t"})
        assert name.description == "what it is"
        for tags in ({}, {"topic": "t", "x": "y"}):
            with pytest.raises(InvalidConfig, match="client-id"):
                registry.metric_instance(template, tags)


class TestMetrics:
    """Metrics that no sensor feeds, and their values."""

    def test_a_taken_name_is_an_error(self, registry: Registry) -> None:
        """A name in use is an error; the first metric stays, and returned mappings do not change."""
        names = registry.metrics()
        metric = registry.add_metric(NAME, SEVEN)
        with pytest.raises(DuplicateMetric):
            registry.add_metric(NAME, SEVEN)
        assert registry.metric(NAME) is metric
        assert NAME not in names

    def test_if_absent(self, registry: Registry) -> None:
        """A second program with the same name gets the first one's metric."""
        metric = registry.add_metric_if_absent(NAME, SEVEN, MetricConfig(samples=5))
        assert registry.add_metric_if_absent(NAME, Gauge(lambda *_: "x")) is metric
        assert (metric.config.samples, metric.value(EPOCH_MS)) == (5, 7.0)

    def test_remove(self, registry: Registry) -> None:
        """A removed metric is given back; there is nothing to give the second time."""
        metric = registry.add_metric(NAME, SEVEN)
        assert [registry.remove_metric(NAME) for _ in range(2)] == [metric, None]
        assert registry.metric(NAME) is None

    def test_reads_its_statistic(self, registry: Registry) -> None:
        """A metric's value is measured with its current config; without a quota there is no violation."""
        stat = CumulativeSum(3.0)
        metric = registry.add_metric(NAME, stat)
        assert metric.measurable is stat
        assert metric.value(EPOCH_MS) == metric.read(EPOCH_MS) == metric.peek(EPOCH_MS) == 3.0
        assert metric.violation(EPOCH_MS) is None

    def test_a_gauge_is_any_object(self, registry: Registry) -> None:
        """A gauge of any object can be read, but not as a number, and is not compared with bounds."""
        config = MetricConfig(samples=3, quota=Quota(2.0))
        metric = registry.add_metric(NAME, Gauge(lambda config, now_ms: (config.samples, now_ms)), config)
        assert metric.read(7) == (3, 7)
        assert metric.violation(EPOCH_MS) is None
        for number in (metric.value, metric.peek):
            with pytest.raises(NotMeasurable) as caught:
                number(7)
            assert caught.value.metric_name is NAME


class TestSensors:
    """Sensors by name."""

    def test_an_existing_sensor_is_returned_as_it_is(self, registry: Registry) -> None:
        """An existing sensor is returned unchanged, and the other arguments are ignored."""
        sensor = registry.sensor("s", EPOCH_MS, inactive_seconds=1)
        again = registry.sensor("s", EPOCH_MS + 5_000, MetricConfig(), 100, parents=(sensor,))
        assert again is sensor
        assert again.parents == ()
        assert again.has_expired(EPOCH_MS + 1_001)

    def test_removal_takes_metrics_and_children(self, registry: Registry) -> None:
        """The tree is Kafka's own (`MetricsTest.testRemoveSensor`): the other parent stays."""
        one, two = registry.sensor("one", EPOCH_MS), registry.sensor("two", EPOCH_MS)
        child = registry.sensor("child", EPOCH_MS, parents=(one, two))
        registry.sensor("grandchild", EPOCH_MS, parents=(child,)).add(NAME, CumulativeSum())
        registry.remove_sensor("one")
        assert set(registry.sensors()) == {"two"}
        assert set(registry.metrics()) == {COUNT}
        registry.remove_sensor("two")
        registry.remove_sensor("two")
        assert registry.sensors() == {}

    def test_a_removed_child_is_forgotten_by_its_parent(self, registry: Registry) -> None:
        """A new sensor of the child's name does not go when the parent goes."""
        parent = registry.sensor("parent", EPOCH_MS)
        registry.sensor("child", EPOCH_MS, parents=(parent,))
        registry.remove_sensor("child")
        orphan = registry.sensor("child", EPOCH_MS)
        registry.remove_sensor("parent")
        assert registry.get_sensor("child") is orphan

    def test_a_value_in_time_saves_the_sensor(self, registry: Registry) -> None:
        """A sensor that records in time stays, as expiry looks again once it has the sensor's lock."""
        sensor = registry.sensor("s", EPOCH_MS, inactive_seconds=1)
        now_ms = EPOCH_MS + 1_001
        with sensor.lock:
            expiring = threading.Thread(target=registry.expire_sensors, args=(now_ms,))
            expiring.start()
            sensor._last_record_ms = now_ms
        expiring.join(60)
        assert registry.get_sensor("s") is sensor

    def test_expires_in_a_thread_if_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A registry expires sensors in a thread on request, as brokers do, until it is closed."""
        removed = threading.Event()

        class Waiting(MetricsReporter):
            def metric_removal(self, metric: KafkaMetric) -> None:
                assert metric.name == NAME
                removed.set()

        monkeypatch.setattr("quotascope.metrics.engine.expiry.PERIOD_S", 0.0)
        registry = Registry(reporters=[Waiting()], expiration=True, clock=lambda: EPOCH_MS + 1_001)
        registry.sensor("s", EPOCH_MS, inactive_seconds=1).add(NAME, CumulativeSum())
        assert removed.wait(60)
        registry.close()
        assert registry.get_sensor("s") is None


class TestReporters:
    """Notifications of reporters."""

    def test_hears_everything_in_order(self) -> None:
        """A reporter gets the context first, then existing metrics, then additions and removals."""
        reporter = Recorder()
        registry = Registry(reporters=[reporter], namespace="kafka.server")
        registry.sensor("s", EPOCH_MS).add(NAME, CumulativeSum())
        registry.remove_sensor("s")
        registry.close()
        assert reporter.events == [
            "context {'_namespace': 'kafka.server'}",
            "init []",
            "change count",
            "change m",
            "removal m",
            "close",
        ]

    def test_a_late_reporter_starts_with_what_exists(self, registry: Registry) -> None:
        """An added reporter gets no context, as in Kafka, and nothing after its removal."""
        reporter = Recorder()
        registry.add_reporter(reporter)
        registry.add_metric(NAME, SEVEN)
        registry.remove_reporter(reporter)
        registry.remove_reporter(reporter)
        registry.remove_metric(NAME)
        assert reporter.events == ["init ['count']", "change m", "close"]

    def test_its_errors_are_logged_and_forgotten(self, caplog: pytest.LogCaptureFixture) -> None:
        """A broken reporter keeps neither the metrics nor the other reporters from working; every event is optional."""
        second_reporter = Recorder()
        registry = Registry(reporters=[MetricsReporter(), Broken(), second_reporter])
        registry.add_metric(NAME, SEVEN)
        registry.remove_metric(NAME)
        registry.close()
        assert second_reporter.events[2:] == ["change count", "change m", "removal m", "close"]
        assert {record.levelno for record in caplog.records} == {logging.ERROR}
        assert {record.getMessage() for record in caplog.records} == {"a metrics reporter failed: Broken"}

    def test_may_call_back(self, registry: Registry) -> None:
        """A reporter may read, and even register, while it is being notified."""

        class Nosy(MetricsReporter):
            def metric_change(self, metric: KafkaMetric) -> None:
                metric.value(EPOCH_MS)
                registry.add_metric_if_absent(MetricName("own", "g"), SEVEN)

        registry.add_reporter(Nosy())
        registry.sensor("s", EPOCH_MS).add(NAME, CumulativeSum())
        assert len(registry.metrics()) == 3

    def test_with_a_lock_of_its_own_it_cannot_deadlock(self, registry: Registry) -> None:
        """A reporter may read all metrics under its lock while a registration waits for that lock."""
        lock = threading.Lock()
        registering = threading.Event()

        class Synchronized(MetricsReporter):
            def metric_change(self, metric: KafkaMetric) -> None:
                registering.set()
                with lock:
                    assert metric.name == NAME

        registry.sensor("other", EPOCH_MS).add(MetricName("other", "g"), CumulativeSum(3.0))
        registry.add_reporter(Synchronized())
        sensor = registry.sensor("s", EPOCH_MS)
        with lock:
            adding = threading.Thread(target=sensor.add, args=(NAME, CumulativeSum()))
            adding.start()
            assert registering.wait(60)
            values = {name.name: metric.value(EPOCH_MS) for name, metric in registry.metrics().items()}
        adding.join(60)
        assert values == {"count": 3.0, "other": 3.0, "m": 0.0}
