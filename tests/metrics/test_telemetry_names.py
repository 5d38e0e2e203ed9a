"""What a client's metrics are called when it pushes them."""

import pytest

from quotascope.metrics import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Gauge,
    MalformedName,
    Max,
    MetricName,
    Rate,
    TelemetryKind,
    Value,
    WindowedCount,
    WindowedSum,
    telemetry_kind,
    telemetry_labels,
    telemetry_name,
)


@pytest.mark.parametrize(
    ("group", "name", "expected"),
    [
        ("producer-metrics", "produce-throttle-time-max", "producer.produce.throttle.time.max"),
        (
            "consumer-fetch-manager-metrics",
            "fetch-throttle-time-avg",
            "consumer.fetch.manager.fetch.throttle.time.avg",
        ),
        ("group-metrics-metrics", "name-metrics", "group.name.metrics"),
        ("metrics", "metrics", "metrics.metrics"),
        ("grouP_&", "Name-1.$", "group_&.name.1.$"),
        ("", "", "."),
    ]
)  # fmt: skip
def test_names(group: str, name: str, expected: str) -> None:
    """Lower case with dots, behind a prefix."""
    assert telemetry_name(MetricName(name, group)) == f"org.apache.kafka.{expected}"
    assert telemetry_name(MetricName(name, group), "p") == f"p.{expected}"


def test_labels() -> None:
    """Keys become words with underscores, values stay; the client-id is left out."""
    tags = {"client-id": "X", "Topic-Name": "A-b"}
    assert telemetry_labels(tags) == {"topic_name": "A-b"}
    with pytest.raises(MalformedName, match="same label"):
        telemetry_labels({"a-b": "1", "a_b": "2"})


def test_kinds() -> None:
    """What counts or adds up for good, and windowed counts as well, are sums; everything else is a gauge."""
    sums = (CumulativeSum(), CumulativeCount(), WindowedCount())
    gauge = Gauge(lambda _config, _now: 1)
    gauges = (Avg(), Max(), Rate(), WindowedSum(), Value(), gauge)
    assert {telemetry_kind(each) for each in sums} == {TelemetryKind.SUM}
    assert {telemetry_kind(each) for each in gauges} == {TelemetryKind.GAUGE}
