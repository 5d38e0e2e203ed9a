"""The four quota types and their names."""

import pytest

from quotascope.metrics import QuotaType


@pytest.mark.parametrize(
    ("quota_type", "group", "label", "key"),
    [
        (QuotaType.PRODUCE, "Produce", "produce", "producer_byte_rate"),
        (QuotaType.FETCH, "Fetch", "fetch", "consumer_byte_rate"),
        (QuotaType.REQUEST, "Request", "request", "request_percentage"),
        (QuotaType.CONTROLLER_MUTATION, "ControllerMutation", "controller_mutation", "controller_mutation_rate"),
    ],
)  # fmt: skip
def test_names(quota_type: QuotaType, group: str, label: str, key: str) -> None:
    """Each type is known by a metric group, a label and a configuration key."""
    assert (quota_type.group, quota_type.label, quota_type.quota_key) == (
        group,
        label,
        key,
    )
    assert QuotaType.of_quota_key(key) is quota_type


def test_a_key_of_another_quota() -> None:
    """The connection rate is no client quota."""
    assert QuotaType.of_quota_key("connection_creation_rate") is None
