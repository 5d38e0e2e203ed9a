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
        column("kafka.server", "tokens", type="ControllerMutation", topic="t"),
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
    """Beans with further key properties are something else."""
    assert attribute_of(useless) is None
    assert wanted(useless) is None


@pytest.mark.parametrize("quota_type", QuotaType, ids=lambda kind: kind.label)
def test_further_tags_are_those_of_a_custom_callback(quota_type: QuotaType) -> None:
    """Usage and throttle of each quota type, with or without a user or client id beside them."""
    for attribute in (USAGE[quota_type].attribute, "throttle-time"):
        group = quota_type.group
        own = attribute_of(column("kafka.server", attribute, type=group, user="u"))
        tagged = [
            attribute_of(column("kafka.server", attribute, type=group, tier="gold")),
            attribute_of(
                column("kafka.server", attribute, type=group, tier="gold", user="u")
            ),
        ]
        assert own is not None
        assert not own.open
        assert all(found is not None and found.open for found in tagged)
        assert tagged[0] is tagged[1]


def test_a_broker_may_tell_utilisation_itself() -> None:
    """KIP-1373 leaves controller mutations out."""
    told = {
        quota_type
        for quota_type in QuotaType
        if attribute_of(
            column("kafka.server", "quota-utilization", type=quota_type.group, user="u")
        )
    }
    assert told == {QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST}


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
