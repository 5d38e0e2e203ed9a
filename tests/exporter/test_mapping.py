"""Which attribute means what."""

import pytest

from quotascope.exporter.beans import Bean, Column
from quotascope.exporter.mapping import (
    ATTRIBUTES,
    USAGE,
    Meaning,
    attribute_of,
    wanted,
)
from quotascope.metrics import QuotaType, catalog


def column(domain: str, attribute: str, **properties: str) -> Column:
    """A column of a bean; an underscore in a key stands for a hyphen."""
    named = {key.replace("_", "-"): value for key, value in properties.items()}
    return Column(Bean.of(domain, named), attribute)


@pytest.mark.parametrize(
    "useless",
    [
        column("kafka.server", "byte-rate", type="Request"),
        column("kafka.server", "byte-rate", type="Produce", topic="t"),
        column("kafka.server", "queue-size", type="Produce", user="a"),
        column("kafka.client", "byte-rate", type="Produce", user="a"),
        column("kafka.server", "tokens", type="Fetch", user="a"),
        column("kafka.server", "StartTimeMs", type="app-info"),
        column("kafka.server", "byte-rate"),
        column(
            "kafka.network",
            "Count",
            type="RequestMetrics",
            name="ErrorsPerSec",
            request="Fetch",
            error="NONE",
        ),
        column("kafka.network", "Count", type="RequestMetrics", name="ThrottleTimeMs"),
    ],
)
def test_what_only_looks_similar_means_nothing(useless: Column) -> None:
    """Beans with further key properties, such as a custom callback's tags, are something else."""
    assert attribute_of(useless) is None
    assert wanted(useless) is None


def test_every_quota_type_has_its_usage_and_throttle() -> None:
    """All four types, by Kafka's names."""
    for quota_type in QuotaType:
        usage = column(
            "kafka.server",
            USAGE[quota_type].attribute,
            type=quota_type.group,
            client_id="c",
        )
        assert attribute_of(usage) is not None
        throttle = column("kafka.server", "throttle-time", type=quota_type.group)
        found = attribute_of(throttle)
        assert found is not None
        assert (found.meaning, found.quota_type) == (Meaning.THROTTLE_TIME, quota_type)


def test_every_family_is_in_the_catalogue_and_used_for_one_meaning() -> None:
    """The table and the catalogue cannot drift apart."""
    known = set(map(id, catalog.families()))
    meanings: dict[str, set[Meaning]] = {}
    for attribute in ATTRIBUTES:
        if attribute.family is not None:
            assert id(attribute.family) in known
            meanings.setdefault(attribute.family.name, set()).add(attribute.meaning)
    meanings.pop(catalog.REQUEST_THROTTLED_SECONDS.name)  # mean and count make one
    assert all(len(found) == 1 for found in meanings.values())
