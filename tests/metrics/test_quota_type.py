"""Each quota type is described in one row."""

import pytest

from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import QuotaType


@pytest.mark.parametrize("quota_type", QuotaType, ids=lambda quota_type: quota_type.label)
def test_families_of_a_type_have_its_unit(quota_type: QuotaType) -> None:
    """Usage, limits and rules of a type are shown in one unit, which the names of usages end with."""
    unit = quota_type.unit
    for by_type in (catalog.USAGE, catalog.LIMIT, catalog.RULE_LIMIT, catalog.CALLBACK_USAGE):
        assert by_type[quota_type].unit == unit.documented
    assert catalog.USAGE[quota_type].name.endswith(f"_{unit.name}")
    assert catalog.CALLBACK_USAGE[quota_type].name == catalog.USAGE[quota_type].name.replace(
        "_quota_", "_quota_callback_"
    )
    assert catalog.LIMIT[quota_type].name == f"kafka_quota_{quota_type.label}_limit_{unit.in_limit_names}"
    assert catalog.RULE_LIMIT[quota_type].name == catalog.LIMIT[quota_type].name.replace("_quota_", "_quota_rule_")


def test_request_time_alone_has_another_unit_than_in_kafka() -> None:
    """Kafka's 250 percent are 2.5 threads and back, bytes and mutations stay as they are."""
    assert [quota_type.in_base_unit(250.0) for quota_type in QuotaType] == [250.0, 250.0, 2.5, 250.0]
    assert [quota_type.in_kafka_unit(2.5) for quota_type in QuotaType] == [2.5, 2.5, 250.0, 2.5]


def test_a_type_is_found_by_its_names() -> None:
    """Kafka's group and Kafka's key each name one type; a key of another quota names none."""
    assert [QuotaType(quota_type.group) for quota_type in QuotaType] == list(QuotaType)
    assert [QuotaType.of_quota_key(quota_type.quota_key) for quota_type in QuotaType] == list(QuotaType)
    assert QuotaType.of_quota_key("connection_creation_rate") is None
