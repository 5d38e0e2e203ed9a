import pytest

from quotascope.clients.throttling import (
    ApiKey,
    client_waits,
    first_waiting_version,
    has_throttle_time,
)


@pytest.mark.parametrize("api", ApiKey)
def test_waits_from_its_first_version_on(api: ApiKey) -> None:
    """A response that makes the client wait does so in all later versions, too; another one never does."""
    first = first_waiting_version(api)
    waits = [client_waits(api, version) for version in range(20)]
    assert waits == [first is not None and version >= first for version in range(20)]


def test_only_what_has_the_field_makes_wait() -> None:
    """No client waits for a throttle time that it cannot be told."""
    for api in ApiKey:
        assert has_throttle_time(api) or first_waiting_version(api) is None


def test_newer_requests_are_not_heeded_unless_they_say_so() -> None:
    """Every API since KIP-219 has the field, but only some of their clients look at it."""
    ignored = {
        api
        for api in ApiKey
        if has_throttle_time(api) and first_waiting_version(api) is None
    }
    assert ApiKey.DESCRIBE_CLIENT_QUOTAS in ignored
    assert ApiKey.SHARE_FETCH in ignored
    assert ApiKey.DESCRIBE_TOPIC_PARTITIONS not in ignored
    assert len(ignored) == 30


def test_a_renamed_request_has_both_names() -> None:
    """What lists client metrics resources is what lists any since Kafka 4.1."""
    assert ApiKey["LIST_CLIENT_METRICS_RESOURCES"] is ApiKey.LIST_CONFIG_RESOURCES
