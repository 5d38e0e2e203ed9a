import math

import pytest

from quotascope.clients.throttling import ClientKind, throttle_time_sensor
from quotascope.metrics import Registry, mbean_name

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("kind", "prefix", "average", "about"),
    [
        (
            ClientKind.PRODUCER,
            "kafka.producer",
            "kafka.producer:type=producer-metrics,client-id=X produce-throttle-time-avg",
            "The average time in ms a request was throttled by a broker",
        ),
        (
            ClientKind.CONSUMER,
            "kafka.consumer",
            "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=X fetch-throttle-time-avg",
            "The average throttle time in ms",
        ),
        (
            ClientKind.SHARE_CONSUMER,
            "kafka.consumer",
            "kafka.consumer:type=consumer-share-fetch-manager-metrics,client-id=X fetch-throttle-time-avg",
            "The average throttle time in ms",
        ),
    ],
)
def test_metrics_are_named_as_kafkas(
    kind: ClientKind, prefix: str, average: str, about: str
) -> None:
    """Bean, attribute and description are those of the Java clients."""
    sensor = throttle_time_sensor(Registry(), kind, "X", NOW_MS)
    first, second = (metric.name for metric in sensor.metrics())
    bean = mbean_name(prefix, first.group, tuple(first.tags.items()))
    assert f"{bean} {first.name}" == average
    assert first.description == about
    assert second.name == first.name.replace("-avg", "-max")
    assert second.description == about.replace("average", "maximum")
    assert second.tags == first.tags


def test_a_sensor_is_made_once() -> None:
    """Asking again gives the same sensor with the same two metrics."""
    registry = Registry()
    sensor = throttle_time_sensor(registry, ClientKind.PRODUCER, "X", NOW_MS)
    assert throttle_time_sensor(registry, ClientKind.PRODUCER, "X", NOW_MS) is sensor
    assert len(sensor.metrics()) == 2


def test_an_active_client_without_throttles_reads_zero() -> None:
    """Zero says unthrottled, NaN says idle."""
    sensor = throttle_time_sensor(Registry(), ClientKind.PRODUCER, "X", NOW_MS)
    assert all(math.isnan(metric.value(NOW_MS)) for metric in sensor.metrics())
    sensor.record(0.0, NOW_MS)
    assert [metric.value(NOW_MS) for metric in sensor.metrics()] == [0.0, 0.0]
    later_ms = NOW_MS + 60_000
    assert all(math.isnan(metric.value(later_ms)) for metric in sensor.metrics())
