"""Labels made by jmx_exporter's rules, back to names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.recorded import numbers, table
from tests.strategies import texts

from quotascope.exporter.beans import Bean, Column
from quotascope.exporter.join.placing import interpreted
from quotascope.exporter.sources.prometheus_text.kafka_2_0_0 import column_of
from quotascope.metrics import QuotaType, quote_tag_value, sanitize

# The three patterns of the example kafka-2_0_0.yml. Java's dot matches no line end, and Kafka quotes none but \n.
RULES = (
    (r"type=(.+), user=(.+), client-id=(.+)", ("resource", "user", "clientId")),
    (r"type=(.+), client-id=(.+)", ("resource", "clientId")),
    (r"type=(.+), user=(.+)", ("resource", "user")),
)
users = st.one_of(st.just(""), texts.filter(bool))
TRAPS = (
    "a, client-id=b",
    "x, user=y",
    "x, user=y, client-id=z",
    '", user="',
    "><>a: 1",
)
clients = st.one_of(users, st.sampled_from(TRAPS))


def labels(quota_type: QuotaType, user: str, client_id: str) -> dict[str, str]:
    """What jmx_exporter makes of one of Kafka's beans."""
    tags = (
        ("type", quota_type.group),
        ("user", sanitize(user)),
        ("client-id", client_id),
    )
    name = ", ".join(f"{key}={quote_tag_value(value)}" for key, value in tags if value)
    for pattern, names in RULES:
        found = re.fullmatch(pattern, name, re.DOTALL)
        if found:
            return dict(zip(names, found.groups(), strict=True))
    raise AssertionError(name)


@given(st.sampled_from(QuotaType), users, clients)
def test_every_name_comes_back(
    quota_type: QuotaType, user: str, client_id: str
) -> None:
    """However hostile a client id is, the greedy rules lose nothing of it."""
    if not user and not client_id:
        return
    made = labels(quota_type, user, client_id)
    column = column_of("kafka_server_quota_throttle_time", made)
    assert column is not None
    found = interpreted(column)
    assert found is not None
    assert found.tags == (quota_type, user, client_id)


def test_a_real_broker_cut_these_names_in_the_wrong_place() -> None:
    """Recorded: the rules took client ids apart that look like a part of a name."""
    found = {
        (bean.get("type"), bean.get("user"), bean.get("client-id"))
        for bean, _ in numbers(table("split/idle.1.jmx_exporter.txt"))
    }
    for trap in (
        "a, client-id=b",
        "x, user=y",
        "x, user=y, client-id=z",
        "line\nbreak",
    ):
        assert ("Produce", "carol", trap) in found
        assert ("Request", None, trap) in found


@pytest.mark.parametrize(
    ("name", "given_labels"),
    [
        ("kafka_server_quota_commit_id", {"resource": "app-info"}),
        ("kafka_server_quota_byte_rate", {"resource": "Request", "user": "a"}),
        ("kafka_server_quota_byte_rate", {"resource": "Replication", "user": "a"}),
        ("kafka_server_quota_byte_rate", {"resource": "Produce", "user": 'a"b'}),
        ("kafka_server_quota_byte_rate", {"resource": "Produce", "clientId": '"a'}),
        ("kafka_server_quota_byte_rate", {"resource": "Produce", "clientId": '"a\\z"'}),
        ("kafka_server_quota_byte_rate", {}),
        ("kafka_server_quota_start_time_ms", {"resource": "other", "clientId": "1"}),
        (
            "kafka_network_requestmetrics_errors_total",
            {"error": "NONE", "request": "Fetch"},
        ),
    ],
)
def test_what_is_of_no_use_is_left_out(name: str, given_labels: dict[str, str]) -> None:
    """The greedy rules also make quota metrics of beans that are none."""
    assert column_of(name, given_labels) is None


def test_the_node_is_told_apart_from_its_entities() -> None:
    """Leadership, refusals and the node id come from other rules of the same file."""
    active = column_of("kafka_controller_kafkacontroller_activecontrollercount", {})
    refused = column_of(
        "kafka_network_requestmetrics_errors_total",
        {"error": "THROTTLING_QUOTA_EXCEEDED", "request": "CreateTopics"},
    )
    started = column_of(
        "kafka_server_quota_start_time_ms", {"clientId": "7", "resource": "app-info"}
    )
    assert active == Column(
        Bean.of(
            "kafka.controller",
            {"type": "KafkaController", "name": "ActiveControllerCount"},
        ),
        "Value",
    )
    assert refused is not None
    assert refused.bean.get("request") == "CreateTopics"
    assert started is not None
    assert started.bean.get("id") == "7"
