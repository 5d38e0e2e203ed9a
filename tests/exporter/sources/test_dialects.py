"""The numbers of each dialect for the same broker, and for hostile names."""

import re
from collections.abc import Callable, Mapping
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.recorded import CAPTURES, joined, numbers, table
from tests.strategies import texts

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.join.placing import meaning_of
from quotascope.exporter.mapping import LOAD_MEANINGS, Bean, BeanColumn, attribute_of
from quotascope.exporter.names import known_as
from quotascope.exporter.sources.dialects import CONFLUENT, JMX_DEFAULT, KAFKA_2_0_0, STRIMZI, TextDialect
from quotascope.exporter.sources.lines import PageLines, Replanned
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.metrics.catalog import REQUEST_QUEUE_SECONDS
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.jmx import quote_tag_value
from quotascope.metrics.kafka.sanitizer import sanitize

Key = tuple[Bean, str]
JOLOKIA = numbers(table("dialects/jolokia2.json"))
MOVING = {"Mean", "Count"}
"""Numbers of requests that the agents' own answers changed."""
RATES = {"byte-rate", "request-time", "mutation-rate", "exempt-request-time"}
"""They fall while nothing happens, and Jolokia was asked first."""
LEAST_LEFT = {"jmx_default_lowercase": 0.0}
"""
The least that is left of a rate, in parts: what this agent was asked so late that rates over 11 s were over; the others
0.75.
"""
MISSING = {
    "kafka_2_0_0": {"queue-size", "exempt-request-time", "connections", "requests", "events"},
    "confluent": {"mutations", "queue-size", "exempt-request-time", "connections", "requests", "events", "id"},
    "jmx_default": set(),
    "jmx_default_lowercase": set(),
    "msk": set(),
    "strimzi": {"requests", "events"},
}  # fmt: skip
"""What Jolokia has and a dialect lacks, as docs/start/dialects.md says."""


def part(key: Key) -> str:
    """Return the part that a dialect may lack to which a number belongs."""
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
    """A dialect has the load figures of Jolokia within the seconds between the answers, except for known gaps."""
    load, jolokia = (
        {
            (bean.get("name"), attribute, bean.get("request")): value
            for (bean, attribute), value in numbers(table(name)).items()
            if (attribute_of_load := attribute_of(BeanColumn(bean, attribute)))
            and attribute_of_load.meaning in LOAD_MEANINGS
        }
        for name in (f"busy/{dialect}.txt", "busy/jolokia2.json")
    )
    lacking = {key for key in jolokia if key[:2] in LOAD_MISSING[dialect]}
    assert len(jolokia) == 17
    assert load.keys() == jolokia.keys() - lacking
    for key, value in load.items():
        assert value == pytest.approx(jolokia[key], rel=0.35, abs=0.01), key
    (node,) = joined([f"busy/{dialect}.txt"], None).nodes
    assert {request for request, _ in node.numbers[REQUEST_QUEUE_SECONDS]} == {"Produce"}


@pytest.mark.parametrize("name", MISSING)
def test_a_dialect_has_what_jolokia_has(name: str) -> None:
    """A dialect has the beans, attributes and numbers of Jolokia, except for those that its agent cannot give."""
    of_load = "AvgIdleRatio"  # this moment's requests of Jolokia did not ask for it
    numbers_of_dialect = {
        key: value for key, value in numbers(table(f"dialects/{name}.txt")).items() if key[0].get("name") != of_load
    }
    lacking = {key for key in JOLOKIA if part(key) in MISSING[name]}
    quiet = {key for key in numbers_of_dialect if part(key) == "requests"}  # had no traffic
    assert numbers_of_dialect.keys() - quiet == JOLOKIA.keys() - lacking - quiet
    for key in numbers_of_dialect.keys() & JOLOKIA.keys():
        number, right = numbers_of_dialect[key], JOLOKIA[key]
        if key[1] in RATES and right > 0:
            least_share = LEAST_LEFT.get(name, 0.75) if key[1] != "mutation-rate" else 0.95
            assert least_share * right <= number <= right, key
        elif key[1] not in MOVING:
            assert number == right or (isnan(number) and isnan(right)), key
    rates = [key for key in numbers_of_dialect if key[1] in RATES and numbers_of_dialect[key] > 0]
    assert len(rates) >= 3, "nothing was compared"


def jmx(_: QuotaType, user: str, client_id: str) -> Mapping[str, str]:
    """Return labels as jmx_exporter makes them of key properties."""
    tags = {"user": sanitize(user), "client_id": client_id}
    return {key: quote_tag_value(value) for key, value in tags.items() if value}


def raw(_: QuotaType, user: str, client_id: str) -> Mapping[str, str]:
    """Return labels as Strimzi's reporter makes them of tags."""
    return {"client_id": client_id, "user": sanitize(user)}


# the three patterns of the example kafka-2_0_0.yml; Java's dot matches no line end, and Kafka quotes none but \n
RULES = (
    (r"type=(.+), user=(.+), client-id=(.+)", ("resource", "user", "clientId")),
    (r"type=(.+), client-id=(.+)", ("resource", "clientId")),
    (r"type=(.+), user=(.+)", ("resource", "user")),
)


def greedy(quota_type: QuotaType, user: str, client_id: str) -> Mapping[str, str]:
    """Return labels as the rules of kafka-2_0_0.yml cut them from one of Kafka's beans."""
    tags = (("type", quota_type.group), ("user", sanitize(user)), ("client-id", client_id))
    name = ", ".join(f"{key}={quote_tag_value(value)}" for key, value in tags if value)
    for pattern, names in RULES:
        match = re.fullmatch(pattern, name, re.DOTALL)
        if match:
            return dict(zip(names, match.groups(), strict=True))
    raise AssertionError(name)


def column_of(dialect: TextDialect, name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column of a line alone."""
    return PageLines(dialect).column(name, labels)


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
    """Users and client-ids are read back, however hostile they are."""
    if not user and not client_id:
        return
    kind = "quota" if dialect is KAFKA_2_0_0 else quota_type.group.lower()
    name = f"kafka_server_{kind}_throttle_time"
    column = column_of(dialect, name, labels(quota_type, user, client_id))
    assert column is not None
    meaning = meaning_of(column)
    assert meaning is not None
    assert meaning.tags == (quota_type, known_as(user), known_as(client_id))


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
    assert column_of(dialect, name, labels) is None


def test_names_that_were_cut_in_the_wrong_place_come_back() -> None:
    """A client-id that greedy rules cut apart is joined again from the labels."""
    labels = {"user": 'carol, client-id="a', "client_id": 'b"'}
    column = column_of(CONFLUENT, "kafka_server_produce_byte_rate", labels)
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
    """Tags of a custom callback are read unchanged from dialects that show any tag."""
    labels = {"tenant": label, "user": "x"}
    name = "kafka_server_Produce_byte_rate"
    for spelled in {name.lower(), name if dialect is JMX_DEFAULT else name.lower()}:
        lines = PageLines(dialect)
        lines.column(spelled, {"user": "y"})
        with pytest.raises(Replanned):  # no label of the page, as there is a client without it
            lines.column(spelled, labels)
        column = lines.column(spelled, labels)
        assert column is not None
        meaning = meaning_of(column)
        assert meaning is not None
        assert meaning.callback == (QuotaType.PRODUCE, (("tenant", "a:b*"), ("user", "x")))
    page = "".join(f'jmx_x 1\n{name.lower()}{{tenant="{tenant}",user="x"}} 1\n' for tenant in "ab")
    with pytest.raises(SourceUnreadable, match="label tenant tells series apart"):
        TextReader(CONFLUENT).read(page.encode())
    cut = {"resource": "Produce", "user": "x, tenant=y", "clientId": "z"}
    assert column_of(KAFKA_2_0_0, "kafka_server_quota_byte_rate", cut) is None


def test_refusals_have_a_name_in_each_dialect() -> None:
    """Refusals have the same column in each dialect."""
    refused = {"error": "THROTTLING_QUOTA_EXCEEDED", "request": "CreateTopics"}
    named = {"name": "ErrorsPerSec", **refused}
    errors = "kafka_network_requestmetrics_errors"
    assert {
        column_of(CONFLUENT, f"{errors}persec", refused),
        column_of(STRIMZI, f"{errors}persec_total", refused),
        column_of(KAFKA_2_0_0, f"{errors}_total", refused),
        column_of(JMX_DEFAULT, "kafka_network_RequestMetrics_Count", named),
    } == {BeanColumn(Bean.of("kafka.network", {"type": "RequestMetrics", **named}), "Count")}  # fmt: skip


CHANGED = {"byte-rate", "request-time", "mutation-rate", "exempt-request-time", "Mean", "Count", "queue-size"} | {
    "broker-connection-accept-rate", "connection-accept-rate", "tokens"
}  # fmt: skip
"""What changed between the two answers."""


def test_it_has_all_that_jolokia_has() -> None:
    """The dialect of our rules has the beans, attributes and numbers of Jolokia, in Kafka's units."""
    jolokia = numbers(table("rules/throttled.jolokia2.json"))
    page = table("rules/throttled.txt")
    assert page.node_id == "1"
    own_numbers = numbers(page)
    assert own_numbers.keys() == jolokia.keys()
    settled = {key for key in own_numbers if key[1] not in CHANGED}
    throttles = {key for key in settled if own_numbers[key] > 0 and "throttle" in key[1]}
    assert len(throttles) >= 3
    for key in settled:
        both_nan = isnan(own_numbers[key]) and isnan(jolokia[key])
        assert both_nan or own_numbers[key] == pytest.approx(jolokia[key], rel=1e-12), key


def test_our_own_exporter_is_no_agent() -> None:
    """A page of our own exporter is refused as a source, although it has the same families."""
    golden = CAPTURES.parent / "exposition" / "golden" / "split_throttled.txt"
    with pytest.raises(SourceUnreadable, match="page of a quotascope exporter"):
        TextReader().read(golden.read_bytes())
