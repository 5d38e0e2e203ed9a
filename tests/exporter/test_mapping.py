"""The attributes that a source reads, with meaning and unit."""

import pytest

from quotascope.exporter.mapping import (
    ATTRIBUTES,
    LOAD_MEANINGS,
    PERCENTILES,
    Attribute,
    Bean,
    BeanColumn,
    Meaning,
    attribute_of,
    wanted,
)
from quotascope.exporter.rules import NAMES
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.kafka.entities import QuotaType

CLIENT_QUOTAS = {
    "Produce": {"byte-rate": "bytes/s", "quota-utilization": "percent"},
    "Fetch": {"byte-rate": "bytes/s", "quota-utilization": "percent"},
    "Request": {"request-time": "percent", "quota-utilization": "percent", "exempt-request-time": "percent"},
    "ControllerMutation": {"mutation-rate": "mutations/s", "tokens": "mutations"},
}  # fmt: skip
EVERY_QUOTA = {"throttle-time": "ms", "queue-size": "count"}
OTHERS = {
    "RequestMetrics": {
        "ThrottleTimeMs Mean": "ms",
        "ThrottleTimeMs Count": "count",
        "ErrorsPerSec Count": "count",
        **{f"RequestQueueTimeMs {percentile}thPercentile": "ms" for percentile in (50, 95, 99)},
    },
    "KafkaRequestHandlerPool": {
        f"{pool}RequestHandlerAvgIdlePercent {name}": unit
        for pool in ("", "Broker", "Controller")
        for name, unit in (("OneMinuteRate", "ratio"), ("Count", "ns"))
    },
    "SocketServer": {"NetworkProcessorAvgIdlePercent Value": "ratio"},
    "RequestChannel": {"RequestQueueSize Value": "count"},
    "KafkaController": {"ActiveControllerCount Value": "count"},
    "ControllerEventManager": {
        "EventQueueTimeMs Mean": "ms",
        "EventQueueTimeMs Count": "count",
        "AvgIdleRatio Value": "ratio",
    },
    "app-info": {"StartTimeMs": "ms"},
    "socket-server-metrics": {
        "broker-connection-accept-rate": "connections/s",
        "connection-accept-rate": "connections/s",
        "connection-accept-throttle-time": "ms",
        "ip-connection-accept-throttle-time": "ms",
    },
    "StaticQuotaCallback": {"Value": "the quota's"},
    "ThrottleFactor": {"ThrottleFactor Value": "ratio"},
    "RemoteLogManager": {"remote-copy-throttle-time-avg": "ms", "remote-fetch-throttle-time-avg": "ms"},
    **{
        kind: {"byte-rate": "bytes/s"}
        for kind in ("LeaderReplication", "FollowerReplication", "AlterLogDirsReplication", "RLMCopy", "RLMFetch")
    },
}  # fmt: skip
DOCUMENTED = {
    (kind, name): unit
    for kind, units in (*((kind, {**units, **EVERY_QUOTA}) for kind, units in CLIENT_QUOTAS.items()), *OTHERS.items())
    for name, unit in units.items()
}
"""
Kafka's units, by the type of the bean and its attribute: its documentation (Operations, Monitoring), KIP-13, 124, 599,
612, 656, 956, 1190 and 1207; of Strimzi's quotas plugin its README.
"""
PARTS = {"ns": 1e9, "ms": 1000.0, "percent": 100.0}
"""Number of Kafka's units in one of the base unit: seconds, threads, a ratio."""
LATER = {"ThrottleTimeMs Mean", "EventQueueTimeMs Mean"}
"""Milliseconds until the join has made a sum of them."""


def column(domain: str, attribute: str, **properties: str) -> BeanColumn:
    """Return a column of a bean; an underscore in a key stands for a hyphen."""
    named = {key.replace("_", "-"): value for key, value in properties.items()}
    return BeanColumn(Bean.of(domain, named), attribute)


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
        column("kafka.network", "Count", type="RequestMetrics", name="ErrorsPerSec", request="Fetch", error="NONE"),
        column("kafka.network", "Count", type="RequestMetrics", name="ThrottleTimeMs"),
    ]
)  # fmt: skip
def test_what_only_looks_similar_means_nothing(useless: BeanColumn) -> None:
    """Beans with further key properties have no meaning."""
    assert attribute_of(useless) is None
    assert wanted(useless) is None


@pytest.mark.parametrize("quota_type", QuotaType, ids=lambda kind: kind.label)
def test_further_tags_are_those_of_a_custom_callback(quota_type: QuotaType) -> None:
    """Usage and throttle of each quota type by Kafka's names, with or without a user or client id beside the tags."""

    def found(attribute: str, **tags: str) -> Attribute:
        attribute_of_column = attribute_of(column("kafka.server", attribute, type=quota_type.group, **tags))
        assert attribute_of_column is not None
        return attribute_of_column

    for attribute in (quota_type.attribute, "throttle-time"):
        tagged = found(attribute, tier="gold")
        assert tagged.open
        assert tagged is found(attribute, tier="gold", user="u")
        assert not found(attribute, user="u").open
        assert not found(attribute, client_id="c").open
    throttle = found("throttle-time")
    assert (throttle.meaning, throttle.quota_type) == (Meaning.THROTTLE_TIME, quota_type)


def test_every_family_is_in_the_catalog_and_used_for_one_meaning() -> None:
    """The table and the catalog cannot drift apart."""
    family_ids = set(map(id, catalog.families()))
    meanings: dict[str, set[Meaning | Family]] = {}
    for attribute in ATTRIBUTES:
        if attribute.family is not None:
            assert id(attribute.family) in family_ids
            meanings.setdefault(attribute.family.name, set()).add(attribute.meaning)
    meanings.pop(catalog.REQUEST_THROTTLED_SECONDS.name)  # mean and count make one
    assert all(len(family_meanings) == 1 for family_meanings in meanings.values())


def place(attribute: Attribute) -> tuple[str, str]:
    """Return the bean's type, and the attribute with the bean's name where there is one."""
    return attribute.type, " ".join(filter(None, (attribute.fixed.get("name"), attribute.name)))


def test_every_attribute_is_read_in_the_unit_that_kafka_documents() -> None:
    """Every attribute is read in the unit that Kafka's documentation has for it."""
    assert set(map(place, ATTRIBUTES)) == DOCUMENTED.keys()
    for attribute in ATTRIBUTES:
        kind, name = place(attribute)
        parts = PARTS.get(DOCUMENTED[kind, name], 1.0)
        expected = 1.0 if name in LATER else parts
        assert attribute.divisor == expected, (kind, name)
    for quota_type in QuotaType:
        unit = DOCUMENTED[quota_type.group, quota_type.attribute]
        assert quota_type.unit.divisor == PARTS.get(unit, 1.0)


def test_an_agent_with_our_rules_shows_base_units() -> None:
    """Numbers of an agent with our rules are Kafka's in base units, means of milliseconds as well."""
    for name in NAMES:
        unit = DOCUMENTED[place(name.attribute)]
        assert name.divisor == PARTS.get(unit, 1.0), name.attribute.name
        if unit == "ms":
            assert "_seconds" in name.family.name


def test_an_agent_may_forbid_what_only_the_load_needs() -> None:
    """Attributes that only the load needs are optional, except for the count of throttles."""
    assert {attribute.meaning for attribute in ATTRIBUTES if attribute.optional} >= LOAD_MEANINGS - {
        Meaning.REQUEST_THROTTLE_COUNT
    }
    assert all(
        attribute.optional
        for attribute in ATTRIBUTES
        if attribute.meaning in LOAD_MEANINGS and attribute.part in PERCENTILES
    )
