"""MBeans, as a broker would show them, and which are shown."""

import math

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.extras.jmx_reporter import JmxFilter, JmxReporter
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.stat import Gauge
from quotascope.metrics.engine.windowed import Avg
from quotascope.metrics.kafka.errors import InvalidConfig, MalformedName

PRODUCE = "kafka.server:type=Produce,user=alice"


@pytest.mark.parametrize(
    ("include", "exclude", "allowed"),
    [
        (".*", "", True),
        ("kafka\\.server:.*", "", True),
        ("kafka", "", False),
        ("type=Produce", "", False),
        (".*", ".*user=.*", False),
        (".*", "user=alice", True),
        (".*type=(Fetch|Produce).*", ".*type=Fetch.*", True),
        (".*[.]server.*", "", True),
        ("kafka.server[^.]+", "", True),
        ("kafka.server[]:.]type.*", "", True),
        ("(?s).*", "", True),
    ],
)
def test_the_whole_name_must_match(include: str, exclude: str, allowed: bool) -> None:  # noqa: FBT001 - expected
    """A filter must match the whole name, to show or to hide it."""
    assert JmxFilter(include, exclude).allows(PRODUCE) is allowed


@pytest.mark.parametrize("end", ["\r", "\u0085", "\u2028", "\u2029"])
def test_a_dot_matches_no_line_end(end: str) -> None:
    """Java's dot matches no line end, so the default filter hides such an MBean; the flag s shows it."""
    name = f'kafka.server:type=Produce,client-id="a{end}b"'
    assert not JmxFilter().allows(name)
    assert JmxFilter("(?s).*").allows(name)
    assert [JmxFilter("\\w").allows(letter) for letter in "aé"] == [True, False]


@pytest.mark.parametrize("expression", ["(", "[a[b]]", "[a-z&&[^b]]", "*", "\\p{Alpha}", "(?<name>a)"])
def test_refuses_what_it_does_not_understand(expression: str) -> None:
    """An expression of Java's that means something else here is an error, not another filter."""
    with pytest.raises(InvalidConfig):
        JmxFilter(exclude=expression)


TAGS = {"user": "", "client-id": "a:b*"}
MBEAN = 'kafka.server:type=Produce,client-id="a:b\\*"'
COUNT = "kafka.server:type=kafka-metrics-count"


@pytest.fixture
def reporter() -> JmxReporter:
    return JmxReporter()


@pytest.fixture
def registry(reporter: JmxReporter) -> Registry:
    return Registry(reporters=[reporter], namespace="kafka.server")


def test_metrics_of_the_same_group_and_tags_are_one_mbean(registry: Registry, reporter: JmxReporter) -> None:
    """Metrics of the same group and tags are attributes of one MBean, NaN without a value."""
    sensor = registry.sensor("s", EPOCH_MS)
    sensor.add(MetricName("byte-total", "Produce", TAGS), CumulativeSum(3.0))
    sensor.add(MetricName("throttle-time", "Produce", TAGS), Avg())
    assert set(reporter.mbeans()) == {MBEAN, COUNT}
    attributes = reporter.mbeans()[MBEAN].attributes(EPOCH_MS)
    assert list(attributes) == ["byte-total", "throttle-time"]
    assert attributes["byte-total"] == reporter.mbeans()[MBEAN].attribute("byte-total", EPOCH_MS) == 3.0
    assert math.isnan(float(str(attributes["throttle-time"])))


def test_an_mbean_goes_with_its_last_attribute(registry: Registry, reporter: JmxReporter) -> None:
    """An MBean stays while it has a metric."""
    names = [MetricName(name, "Produce", TAGS) for name in ("a", "b")]
    for name in names:
        registry.add_metric(name, Gauge(lambda *_: 1))
    registry.remove_metric(names[0])
    assert list(reporter.mbeans()[MBEAN].attributes(EPOCH_MS)) == ["b"]
    registry.remove_metric(names[1])
    assert not reporter.contains(MBEAN)


def test_the_filter_hides_and_shows(registry: Registry, reporter: JmxReporter) -> None:
    """A hidden MBean is known all the same and comes back with another filter."""
    registry.add_metric(MetricName("a", "Produce", TAGS), Gauge(lambda *_: 1))
    reporter.reconfigure(JmxFilter(exclude=".*Produce.*"))
    assert set(reporter.mbeans()) == {COUNT}
    assert reporter.contains(MBEAN)
    reporter.reconfigure(JmxFilter(include=".*Produce.*"))
    assert set(reporter.mbeans()) == {MBEAN}


def test_an_attribute_that_fails_is_left_out(
    registry: Registry, reporter: JmxReporter, caplog: pytest.LogCaptureFixture
) -> None:
    """An attribute that fails is left out and logged, and the others are read; an unknown one raises ``KeyError``."""
    registry.add_metric(MetricName("good", "Produce", TAGS), Gauge(lambda *_: "x"))
    registry.add_metric(MetricName("bad\n", "Produce", TAGS), Gauge(lambda *_: 1 // 0))
    assert reporter.mbeans()[MBEAN].attributes(EPOCH_MS) == {"good": "x"}
    with pytest.raises(KeyError):
        reporter.mbeans()[MBEAN].attribute("unknown", EPOCH_MS)
    assert [record.getMessage() for record in caplog.records] == ["a JMX attribute cannot be read: 'bad\\n'"]


def test_a_group_that_jmx_would_not_take_is_refused(
    registry: Registry, reporter: JmxReporter, caplog: pytest.LogCaptureFixture
) -> None:
    """A group that JMX would refuse is logged by the registry, and its metric has no MBean."""
    name = MetricName("a", "not:a=group")
    registry.add_metric(name, Gauge(lambda *_: 1))
    assert registry.remove_metric(name) is not None
    assert set(reporter.mbeans()) == {COUNT}
    failed = caplog.records[0].exc_info
    assert failed is not None
    assert failed[0] is MalformedName


def test_a_late_reporter_shows_what_exists() -> None:
    """A reporter that is added late shows existing metrics, with an empty prefix unless it has a context."""
    registry, reporter = Registry(), JmxReporter()
    registry.add_reporter(reporter)
    assert set(reporter.mbeans()) == {":type=kafka-metrics-count"}
    registry.close()
    assert reporter.mbeans() == {}


def test_the_prefix_is_settled_by_the_first_mbean(registry: Registry, reporter: JmxReporter) -> None:
    """The first MBean fixes the prefix; before it, an empty prefix changes nothing."""
    assert registry.metrics()
    with pytest.raises(InvalidConfig):
        reporter.context_change({"_namespace": "kafka.client"})
    fresh = JmxReporter()
    fresh.context_change({"_namespace": "kafka.server"})
    fresh.context_change({"_namespace": ""})
    Registry().add_reporter(fresh)
    assert set(fresh.mbeans()) == {COUNT}
