import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.clients.throttling import (
    ClientConnection,
    ClientKind,
    client_waits,
    first_waiting_version,
    has_throttle_time,
    least_loaded,
    throttle_time_sensor,
)
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.jmx import mbean_name
from quotascope.metrics.kafka.numbers import LONG_MAX
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import KafkaRelease

NOW_MS = 1_700_000_000_000


def throttled(ms: int) -> ClientConnection:
    connection = ClientConnection()
    assert connection.received(ApiKey.PRODUCE, 11, ms, NOW_MS)
    return connection


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(-10, 5_000)), min_size=1))
def test_ends_with_the_last_throttle_to_end(reported: list[tuple[int, int]]) -> None:
    """The latest of all ends counts, in any order of throttles."""
    connection = ClientConnection()
    for at_ms, throttle_ms in reported:
        connection.received(ApiKey.PRODUCE, 11, throttle_ms, at_ms)
    ends = [at_ms + throttle_ms for at_ms, throttle_ms in reported if throttle_ms > 0]
    assert connection.throttled_until_ms == max(ends, default=0)


@pytest.mark.parametrize(
    ("api", "version", "throttle_ms"),
    [
        (ApiKey.PRODUCE, 5, 100),
        (ApiKey.DESCRIBE_CLUSTER, 2, 100),
        (ApiKey.PRODUCE, 11, 0),
        (ApiKey.PRODUCE, 11, -7),
    ],
)
def test_does_not_wait_otherwise(api: ApiKey, version: int, throttle_ms: int) -> None:
    """Old versions, APIs that do not heed a throttle, and zero throttles leave the connection ready."""
    connection = ClientConnection(release=KafkaRelease(4, 3))
    assert not connection.received(api, version, throttle_ms, NOW_MS)
    assert connection.ready(NOW_MS)


def test_a_connected_node_is_polled_when_its_throttle_ends() -> None:
    """The wait without a throttle is the one that the caller asks for, by default for any event."""
    connection = throttled(100)
    assert connection.poll_delay_ms(NOW_MS + 40, 7) == 60
    assert connection.poll_delay_ms(NOW_MS + 100, 7) == 7
    assert connection.poll_delay_ms(NOW_MS + 100) == LONG_MAX


def test_a_request_times_out_after_its_timeout_and_the_throttles_meanwhile() -> None:
    """A throttle extends the timeout of requests in flight, except of the one that it came with and of later ones."""
    connection = ClientConnection()
    for _ in range(2):
        connection.sent(1_000, NOW_MS)
    connection.received(ApiKey.PRODUCE, 11, 500, NOW_MS + 200)
    assert [connection.timed_out(NOW_MS + after_ms) for after_ms in (1_500, 1_501)] == [False, True]
    connection.received(ApiKey.PRODUCE, 5, 9_000, NOW_MS + 300)
    connection.sent(1_000, NOW_MS + 600)
    assert connection.in_flight == 1
    assert [connection.timed_out(NOW_MS + after_ms) for after_ms in (1_600, 1_601)] == [False, True]


def test_a_clock_that_went_back_times_nothing_out() -> None:
    """A clock that went back times no request out: time before the request counts as none."""
    connection = ClientConnection()
    connection.sent(0, NOW_MS)
    assert not connection.timed_out(NOW_MS - 1_000)


def test_a_throttle_outlives_its_connection() -> None:
    """A client that connects again finds the throttle, but none of the old requests."""
    connection = throttled(100)
    connection.sent(10, NOW_MS)
    connection.disconnected()
    assert connection.in_flight == 0
    assert not connection.timed_out(NOW_MS + 99)
    assert not connection.ready(NOW_MS + 99)


def test_every_response_is_measured() -> None:
    """Zeros, APIs that are not heeded and old versions count in the average as well; NaN says idle."""
    registry = Registry()
    sensor = throttle_time_sensor(registry, ClientKind.CONSUMER, "c", NOW_MS)
    assert throttle_time_sensor(registry, ClientKind.CONSUMER, "c", NOW_MS) is sensor
    assert all(math.isnan(metric.value(NOW_MS)) for metric in sensor.metrics())
    connection = ClientConnection(sensor)
    connection.received(ApiKey.FETCH, 17, 600, NOW_MS)
    connection.received(ApiKey.FETCH, 7, 200, NOW_MS)
    connection.received(ApiKey.DESCRIBE_CLUSTER, 0, 100, NOW_MS)
    connection.received(ApiKey.SASL_HANDSHAKE, 1, 0, NOW_MS)
    assert [metric.value(NOW_MS) for metric in sensor.metrics()] == [225.0, 600.0]


def test_the_least_loaded_node_is_not_a_throttled_one() -> None:
    """The least loaded node is the one with fewest requests among those that are not throttled."""
    idle, busy, idle_too = throttled(100), ClientConnection(), ClientConnection()
    for connection in (busy, busy, idle_too):
        connection.sent(1_000, NOW_MS)
    nodes = {1: idle, 2: busy, 3: idle_too}
    assert least_loaded(nodes, NOW_MS) == 3
    assert least_loaded(nodes, NOW_MS + 100) == 1
    assert least_loaded({1: idle}, NOW_MS) is None


@pytest.mark.parametrize(
    ("kind", "bean", "attribute", "about"),
    [
        (
            ClientKind.PRODUCER,
            "kafka.producer:type=producer-metrics,client-id=X",
            "produce-throttle-time",
            "time in ms a request was throttled by a broker",
        ),
        (
            ClientKind.CONSUMER,
            "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=X",
            "fetch-throttle-time",
            "throttle time in ms",
        ),
        (
            ClientKind.SHARE_CONSUMER,
            "kafka.consumer:type=consumer-share-fetch-manager-metrics,client-id=X",
            "fetch-throttle-time",
            "throttle time in ms",
        ),
    ],
)
def test_metrics_are_named_as_kafkas(kind: ClientKind, bean: str, attribute: str, about: str) -> None:
    """Bean, attributes and descriptions are those of the Java clients."""
    names = [metric.name for metric in throttle_time_sensor(Registry(), kind, "X", NOW_MS).metrics()]
    prefix = bean.partition(":")[0]
    assert {mbean_name(prefix, name.group, tuple(name.tags.items())) for name in names} == {bean}
    assert [(name.name, name.description) for name in names] == [
        (f"{attribute}-avg", f"The average {about}"),
        (f"{attribute}-max", f"The maximum {about}"),
    ]


def test_only_what_has_the_field_makes_wait() -> None:
    """No client waits for a throttle time that no response can carry."""
    for api in ApiKey:
        assert has_throttle_time(api) or first_waiting_version(api) is None


@pytest.mark.parametrize(("minor", "waits"), [(3, False), (4, True)])
def test_what_says_nothing_makes_wait_since_4_4(minor: int, waits: bool) -> None:  # noqa: FBT001 - a parameter
    """Clients of Kafka 4.4 and later heed a response class without the method, in all versions with the field."""
    release = KafkaRelease(4, minor)
    for api in (ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.SHARE_FETCH):
        assert client_waits(api, 0, release) is waits
    assert first_waiting_version(ApiKey.PRODUCE, release) == 6
    assert not client_waits(ApiKey.SASL_HANDSHAKE, 1, release)


def test_a_renamed_request_has_both_names() -> None:
    """Both names of the request behave alike since Kafka 4.1."""
    assert ApiKey["LIST_CLIENT_METRICS_RESOURCES"] is ApiKey.LIST_CONFIG_RESOURCES
