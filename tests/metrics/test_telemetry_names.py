"""What a client's metrics are called when it pushes them."""

import pytest

from quotascope.metrics import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Gauge,
    MalformedName,
    Max,
    Measurable,
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
        (
            "producer-metrics",
            "produce-throttle-time-max",
            "producer.produce.throttle.time.max",
        ),
        (
            "consumer-fetch-manager-metrics",
            "fetch-throttle-time-avg",
            "consumer.fetch.manager.fetch.throttle.time.avg",
        ),
        ("group-metrics-metrics", "name-metrics", "group.name.metrics"),
        ("metrics", "metrics", "metrics.metrics"),
        ("grouP_&", "Name-1.$", "group_&.name.1.$"),
        ("", "", "."),
    ],
)
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


@pytest.mark.parametrize("stat", [CumulativeSum(), CumulativeCount(), WindowedCount()])
def test_sums(stat: Measurable) -> None:
    """What counts or adds up for good, and windowed counts as well."""
    assert telemetry_kind(stat) is TelemetryKind.SUM


@pytest.mark.parametrize(
    "provider",
    [Avg(), Max(), Rate(), WindowedSum(), Value(), Gauge(lambda _config, _now: 1)],
)
def test_gauges(provider: Measurable | Gauge) -> None:
    """Everything else."""
    assert telemetry_kind(provider) is TelemetryKind.GAUGE
