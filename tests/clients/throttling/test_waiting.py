import pytest

from quotascope.clients.throttling import client_waits, first_waiting_version, has_throttle_time
from quotascope.metrics import KafkaRelease
from quotascope.metrics.protocol import ApiKey


def test_only_what_has_the_field_makes_wait() -> None:
    """No client waits for a throttle time that no response can carry."""
    for api in ApiKey:
        assert has_throttle_time(api) or first_waiting_version(api) is None


@pytest.mark.parametrize(("minor", "waits"), [(3, False), (4, True)])
def test_what_says_nothing_makes_wait_since_4_4(minor: int, waits: bool) -> None:  # noqa: FBT001 - a parameter
    """A response class that says nothing is heeded by clients of Kafka 4.4 and later, in all versions that have the field."""
    release = KafkaRelease(4, minor)
    for api in (ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.SHARE_FETCH):
        assert client_waits(api, 0, release) is waits
    assert first_waiting_version(ApiKey.PRODUCE, release) == 6
    assert not client_waits(ApiKey.SASL_HANDSHAKE, 1, release)


def test_a_renamed_request_has_both_names() -> None:
    """What lists client metrics resources is what lists any since Kafka 4.1."""
    assert ApiKey["LIST_CLIENT_METRICS_RESOURCES"] is ApiKey.LIST_CONFIG_RESOURCES
