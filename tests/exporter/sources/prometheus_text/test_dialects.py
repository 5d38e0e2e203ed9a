"""What each dialect makes of the same broker, and of hostile names."""

from collections.abc import Callable, Mapping
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.recorded import numbers, table
from tests.strategies import texts

from quotascope.exporter.beans import Bean, Column
from quotascope.exporter.join.placing import interpreted
from quotascope.exporter.sources.prometheus_text.confluent import CONFLUENT
from quotascope.exporter.sources.prometheus_text.dialect import TextDialect
from quotascope.exporter.sources.prometheus_text.jmx_default import JMX_DEFAULT
from quotascope.exporter.sources.prometheus_text.kafka_2_0_0 import KAFKA_2_0_0
from quotascope.exporter.sources.prometheus_text.strimzi import STRIMZI
from quotascope.metrics import QuotaType, quote_tag_value, sanitize

Key = tuple[Bean, str]
JOLOKIA = numbers(table("dialects/jolokia2.json"))
MOVING = {"Mean", "Count"}
"""Numbers of requests that the agents' own answers changed."""
RATES = {"byte-rate", "request-time", "mutation-rate", "exempt-request-time"}
"""They fall while nothing happens, and Jolokia was asked first."""
LEAST_LEFT = {"jmx_default_lowercase": 0.0}
"""The least that is left of a rate, in parts: what this agent was asked so late that rates over 11 s were over; the others 0.75."""
MISSING = {
    "kafka_2_0_0": {"queue-size", "exempt-request-time", "connections", "requests", "events"},
    "confluent": {"mutations", "queue-size", "exempt-request-time", "connections", "requests", "events", "id"},
    "jmx_default": set(),
    "jmx_default_lowercase": set(),
    "msk": set(),
    "strimzi": {"requests", "events"},
}  # fmt: skip
"""What Jolokia tells and a dialect does not, as docs/dialects.md has it."""


def part(key: Key) -> str:
    """Which of the things that a dialect may lack a number is."""
    bean, attribute = key
    if attribute in {"queue-size", "exempt-request-time"}:
        return attribute
    kinds = {
        "ControllerMutation": "mutations",
        "socket-server-metrics": "connections",
        "ControllerEventManager": "events",
        "app-info": "id",
        "RequestMetrics": "requests",
    }
    return kinds.get(bean.get("type") or "", "")


@pytest.mark.parametrize("name", MISSING)
def test_a_dialect_tells_what_jolokia_tells(name: str) -> None:
    """The same beans and attributes, but for those that its agent does not give, and the same numbers."""
    found = numbers(table(f"dialects/{name}.txt"))
    lacking = {key for key in JOLOKIA if part(key) in MISSING[name]}
    quiet = {key for key in found if part(key) == "requests"}  # had no traffic
    assert found.keys() - quiet == JOLOKIA.keys() - lacking - quiet
    for key in found.keys() & JOLOKIA.keys():
        left, right = found[key], JOLOKIA[key]
        if key[1] in RATES and right > 0:
            least = LEAST_LEFT.get(name, 0.75) if key[1] != "mutation-rate" else 0.95
            assert least * right <= left <= right, key
        elif key[1] not in MOVING:
            assert left == right or (isnan(left) and isnan(right)), key
    rates = [key for key in found if key[1] in RATES and found[key] > 0]
    assert len(rates) >= 3, "nothing was compared"


def jmx(user: str, client_id: str) -> Mapping[str, str]:
    """Labels as jmx_exporter makes them of key properties."""
    tags = {"user": sanitize(user), "client_id": client_id}
    return {key: quote_tag_value(value) for key, value in tags.items() if value}


def raw(user: str, client_id: str) -> Mapping[str, str]:
    """Labels as Strimzi's reporter makes them of tags."""
    return {"client_id": client_id, "user": sanitize(user)}


users = st.one_of(st.just(""), texts.filter(bool))
TRAPS = ("a, client-id=b", "x, user=y", "x, user=y, client-id=z", '"', '"quoted"')


@pytest.mark.parametrize(
    ("dialect", "labels"),
    [(CONFLUENT, jmx), (JMX_DEFAULT, jmx), (STRIMZI, raw)],
    ids=["confluent", "jmx_default", "strimzi"],
)
@given(
    quota_type=st.sampled_from(QuotaType),
    user=users,
    client_id=st.one_of(users, st.sampled_from(TRAPS)),
)
def test_every_name_comes_back(
    dialect: TextDialect,
    labels: Callable[[str, str], Mapping[str, str]],
    quota_type: QuotaType,
    user: str,
    client_id: str,
) -> None:
    """However hostile users and client ids are."""
    if not user and not client_id:
        return
    name = f"kafka_server_{quota_type.group.lower()}_throttle_time"
    column = dialect.column_of(name, labels(user, client_id))
    assert column is not None
    found = interpreted(column)
    assert found is not None
    assert found.tags == (quota_type, user, client_id)


@pytest.mark.parametrize("dialect", [CONFLUENT, JMX_DEFAULT, STRIMZI])
@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("kafka_server_produce_request_time", {"user": "a"}),
        ("kafka_server_request_metrics", {}),
        (
            "kafka_network_requestmetrics_errorspersec_total",
            {"error": "NONE", "request": "Fetch"},
        ),
        (
            "kafka_network_requestmetrics_count",
            {"name": "TotalTimeMs", "request": "Fetch"},
        ),
        ("kafka_server_app_info_start_time_ms", {}),
    ],
)
def test_what_is_of_no_use_is_left_out(
    dialect: TextDialect, name: str, labels: Mapping[str, str]
) -> None:
    """The prefixes of interest let more lines through than are wanted."""
    assert dialect.column_of(name, labels) is None


def test_names_that_were_cut_in_the_wrong_place_come_back() -> None:
    """Confluent's rules are greedy, too: joined again, the labels are the name as it was."""
    labels = {"user": 'carol, client-id="a', "client_id": 'b"'}
    column = CONFLUENT.column_of("kafka_server_produce_byte_rate", labels)
    assert column is not None
    assert column.bean.get("client-id") == "a, client-id=b"


@pytest.mark.parametrize(
    ("dialect", "label"),
    [(JMX_DEFAULT, r'"a:b\*"'), (STRIMZI, "a:b*")],
)
def test_tags_of_a_custom_callback_come_as_they_are(
    dialect: TextDialect, label: str
) -> None:
    """Where whole beans are given, any tag is; the rules of others know no tag but user and client-id."""
    labels = {"tenant": label, "user": "x"}
    name = "kafka_server_Produce_byte_rate"
    for spelled in {name.lower(), name if dialect is JMX_DEFAULT else name.lower()}:
        column = dialect.column_of(spelled, labels)
        assert column is not None
        found = interpreted(column)
        assert found is not None
        assert found.callback == (
            QuotaType.PRODUCE,
            (("tenant", "a:b*"), ("user", "x")),
        )
    assert CONFLUENT.column_of(name.lower(), labels) is None
    cut = {"resource": "Produce", "user": "x, tenant=y", "clientId": "z"}
    assert KAFKA_2_0_0.column_of("kafka_server_quota_byte_rate", cut) is None


def test_refusals_and_leadership_have_a_name_in_each_dialect() -> None:
    """The same column, so that nothing behind the sources knows the difference."""
    refused = {"error": "THROTTLING_QUOTA_EXCEEDED", "request": "CreateTopics"}
    named = {"name": "ErrorsPerSec", **refused}
    told = {
        CONFLUENT.column_of("kafka_network_requestmetrics_errorspersec", refused),
        STRIMZI.column_of("kafka_network_requestmetrics_errorspersec_total", refused),
        JMX_DEFAULT.column_of("kafka_network_RequestMetrics_Count", named),
    }
    assert len(told) == 1
    leads = "kafka_controller_kafkacontroller_activecontrollercount"
    told |= {
        CONFLUENT.column_of(leads, {}),
        STRIMZI.column_of(leads, {}),
        JMX_DEFAULT.column_of(
            "kafka_controller_KafkaController_Value", {"name": "ActiveControllerCount"}
        ),
    }
    assert len(told) == 2
    assert all(isinstance(column, Column) for column in told)
