"""What each dialect makes of the same broker, and of hostile names."""

import re
from collections.abc import Callable, Mapping
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.recorded import CAPTURES, joined, numbers, table
from tests.strategies import texts

from quotascope.exporter.join.placing import interpreted
from quotascope.exporter.mapping import LOAD_MEANINGS, Bean, BeanColumn, attribute_of
from quotascope.exporter.sources.dialects import CONFLUENT, JMX_DEFAULT, KAFKA_2_0_0, STRIMZI, TextDialect
from quotascope.exporter.sources.prometheus_text import TextReader
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
"""What Jolokia has and a dialect lacks, as docs/dialects.md says."""


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


HANDLERS = "RequestHandlerAvgIdlePercent"
NO_RATES = {(f"{pool}{HANDLERS}", "OneMinuteRate") for pool in ("", "Broker", "Controller")}
LOAD_MISSING = {
    "kafka_2_0_0": NO_RATES,
    "confluent": NO_RATES - {(HANDLERS, "OneMinuteRate")},
    "strimzi": NO_RATES,
    "jmx_default": set(),
    "quotascope_rules": set(),
}
"""By bean and attribute."""


@pytest.mark.parametrize("dialect", LOAD_MISSING)
def test_a_dialect_has_the_load_of_a_node(dialect: str) -> None:
    """The numbers of Jolokia within the seconds between the answers, but for those that its agent does not give."""
    found, jolokia = (
        {
            (bean.get("name"), attribute, bean.get("request")): value
            for (bean, attribute), value in numbers(table(name)).items()
            if (of := attribute_of(BeanColumn(bean, attribute))) and of.meaning in LOAD_MEANINGS
        }
        for name in (f"busy/{dialect}.txt", "busy/jolokia2.json")
    )
    lacking = {key for key in jolokia if key[:2] in LOAD_MISSING[dialect]}
    assert len(jolokia) == 17
    assert found.keys() == jolokia.keys() - lacking
    for key, value in found.items():
        assert value == pytest.approx(jolokia[key], rel=0.35, abs=0.01), key
    idle = joined([f"busy/{dialect}.txt"], None).nodes[0].load
    assert {request for request, _ in idle.request_queue_seconds} == {"Produce"}


@pytest.mark.parametrize("name", MISSING)
def test_a_dialect_has_what_jolokia_has(name: str) -> None:
    """The same beans and attributes, but for those that its agent does not give, and the same numbers."""
    of_load = "AvgIdleRatio"  # this moment's requests of Jolokia did not ask for it
    found = {
        key: value for key, value in numbers(table(f"dialects/{name}.txt")).items() if key[0].get("name") != of_load
    }
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


def jmx(_: QuotaType, user: str, client_id: str) -> Mapping[str, str]:
    """Labels as jmx_exporter makes them of key properties."""
    tags = {"user": sanitize(user), "client_id": client_id}
    return {key: quote_tag_value(value) for key, value in tags.items() if value}


def raw(_: QuotaType, user: str, client_id: str) -> Mapping[str, str]:
    """Labels as Strimzi's reporter makes them of tags."""
    return {"client_id": client_id, "user": sanitize(user)}


# the three patterns of the example kafka-2_0_0.yml; Java's dot matches no line end, and Kafka quotes none but \n
RULES = (
    (r"type=(.+), user=(.+), client-id=(.+)", ("resource", "user", "clientId")),
    (r"type=(.+), client-id=(.+)", ("resource", "clientId")),
    (r"type=(.+), user=(.+)", ("resource", "user")),
)


def greedy(quota_type: QuotaType, user: str, client_id: str) -> Mapping[str, str]:
    """Labels as the rules of kafka-2_0_0.yml cut them from one of Kafka's beans."""
    tags = (("type", quota_type.group), ("user", sanitize(user)), ("client-id", client_id))
    name = ", ".join(f"{key}={quote_tag_value(value)}" for key, value in tags if value)
    for pattern, names in RULES:
        found = re.fullmatch(pattern, name, re.DOTALL)
        if found:
            return dict(zip(names, found.groups(), strict=True))
    raise AssertionError(name)


users = st.one_of(st.just(""), texts.filter(bool))
TRAPS = ("a, client-id=b", "x, user=y", "x, user=y, client-id=z", '", user="', "><>a: 1", '"', '"quoted"')


@pytest.mark.parametrize(
    ("dialect", "labels"),
    [(CONFLUENT, jmx), (JMX_DEFAULT, jmx), (STRIMZI, raw), (KAFKA_2_0_0, greedy)],
    ids=["confluent", "jmx_default", "strimzi", "kafka_2_0_0"],
)
@given(quota_type=st.sampled_from(QuotaType), user=users, client_id=st.one_of(users, st.sampled_from(TRAPS)))
def test_every_name_comes_back(
    dialect: TextDialect,
    labels: Callable[[QuotaType, str, str], Mapping[str, str]],
    quota_type: QuotaType,
    user: str,
    client_id: str,
) -> None:
    """However hostile users and client ids are."""
    if not user and not client_id:
        return
    kind = "quota" if dialect is KAFKA_2_0_0 else quota_type.group.lower()
    name = f"kafka_server_{kind}_throttle_time"
    column = dialect.column_of(name, labels(quota_type, user, client_id))
    assert column is not None
    found = interpreted(column)
    assert found is not None
    assert found.tags == (quota_type, user, client_id)


ERROR = {"error": "NONE", "request": "Fetch"}
EVERY = (CONFLUENT, JMX_DEFAULT, STRIMZI)
USELESS = [
    (dialect, name, labels)
    for dialect in EVERY
    for name, labels in (
        ("kafka_server_produce_request_time", {"user": "a"}),
        ("kafka_server_request_metrics", {}),
        ("kafka_network_requestmetrics_errorspersec_total", ERROR),
        ("kafka_network_requestmetrics_count", {"name": "TotalTimeMs", "request": "Fetch"}),
        ("kafka_server_app_info_start_time_ms", {}),
    )
] + [
    (KAFKA_2_0_0, name, labels)
    for name, labels in (
        ("kafka_server_quota_commit_id", {"resource": "app-info"}),
        ("kafka_server_quota_byte_rate", {"resource": "Request", "user": "a"}),
        ("kafka_server_quota_byte_rate", {"resource": "Replication", "user": "a"}),
        ("kafka_server_quota_byte_rate", {"resource": "Produce", "user": 'a"b'}),
        ("kafka_server_quota_byte_rate", {"resource": "Produce", "clientId": '"a'}),
        ("kafka_server_quota_byte_rate", {"resource": "Produce", "clientId": '"a\\z"'}),
        ("kafka_server_quota_byte_rate", {}),
        ("kafka_server_quota_start_time_ms", {"resource": "other", "clientId": "1"}),
        ("kafka_network_requestmetrics_errors_total", ERROR),
    )
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "name", "labels"), USELESS)
def test_what_is_not_used_is_left_out(dialect: TextDialect, name: str, labels: Mapping[str, str]) -> None:
    """The prefixes of interest admit more lines than are wanted, and greedy rules make quota metrics of other beans."""
    assert dialect.column_of(name, labels) is None


def test_names_that_were_cut_in_the_wrong_place_come_back() -> None:
    """Greedy rules take client ids apart that look like a part of a name; joined again, the labels are the name as it was."""
    labels = {"user": 'carol, client-id="a', "client_id": 'b"'}
    column = CONFLUENT.column_of("kafka_server_produce_byte_rate", labels)
    assert column is not None
    assert column.bean.get("client-id") == "a, client-id=b"
    recorded = {
        (bean.get("type"), bean.get("user"), bean.get("client-id"))
        for bean, _ in numbers(table("split/idle.1.jmx_exporter.txt"))
    }
    for trap in (*TRAPS[:3], "line\nbreak"):
        assert ("Produce", "carol", trap) in recorded
        assert ("Request", None, trap) in recorded


@pytest.mark.parametrize(("dialect", "label"), [(JMX_DEFAULT, r'"a:b\*"'), (STRIMZI, "a:b*")])
def test_tags_of_a_custom_callback_come_as_they_are(dialect: TextDialect, label: str) -> None:
    """Where whole beans are given, any tag is; the rules of others know no tag but user and client-id."""
    labels = {"tenant": label, "user": "x"}
    name = "kafka_server_Produce_byte_rate"
    for spelled in {name.lower(), name if dialect is JMX_DEFAULT else name.lower()}:
        column = dialect.column_of(spelled, labels)
        assert column is not None
        found = interpreted(column)
        assert found is not None
        assert found.callback == (QuotaType.PRODUCE, (("tenant", "a:b*"), ("user", "x")))
    assert CONFLUENT.column_of(name.lower(), labels) is None
    cut = {"resource": "Produce", "user": "x, tenant=y", "clientId": "z"}
    assert KAFKA_2_0_0.column_of("kafka_server_quota_byte_rate", cut) is None


def test_refusals_have_a_name_in_each_dialect() -> None:
    """The same column, so that nothing behind the sources knows the difference."""
    refused = {"error": "THROTTLING_QUOTA_EXCEEDED", "request": "CreateTopics"}
    named = {"name": "ErrorsPerSec", **refused}
    errors = "kafka_network_requestmetrics_errors"
    assert {
        CONFLUENT.column_of(f"{errors}persec", refused),
        STRIMZI.column_of(f"{errors}persec_total", refused),
        KAFKA_2_0_0.column_of(f"{errors}_total", refused),
        JMX_DEFAULT.column_of("kafka_network_RequestMetrics_Count", named),
    } == {BeanColumn(Bean.of("kafka.network", {"type": "RequestMetrics", **named}), "Count")}  # fmt: skip


CHANGED = {"byte-rate", "request-time", "mutation-rate", "exempt-request-time", "Mean", "Count", "queue-size"} | {
    "broker-connection-accept-rate", "connection-accept-rate", "tokens"
}  # fmt: skip
"""What changed between the two answers."""


def test_it_has_all_that_jolokia_has() -> None:
    """The same beans and attributes, and in Kafka's units the same numbers."""
    jolokia = numbers(table("rules/throttled.jolokia2.json"))
    page = table("rules/throttled.txt")
    assert page.node_id == "1"
    own = numbers(page)
    assert own.keys() == jolokia.keys()
    settled = {key for key in own if key[1] not in CHANGED}
    throttles = {key for key in settled if own[key] > 0 and "throttle" in key[1]}
    assert len(throttles) >= 3
    for key in settled:
        same = isnan(own[key]) and isnan(jolokia[key])
        assert same or own[key] == pytest.approx(jolokia[key], rel=1e-12), key


def test_our_own_exporter_is_no_agent() -> None:
    """Its page has the same families, but nothing in it is a broker's own word."""
    golden = CAPTURES.parent / "exposition" / "golden" / "split_throttled.txt"
    reader = TextReader()
    reader.read(golden.read_bytes())
    assert reader.dialect == "prometheus"
