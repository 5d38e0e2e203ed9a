"""
Pages of one broker in any spelling of its metrics.

Consistent ones give the same entities, contradictory ones are refused.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import texts

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.join.placing import meaning_of
from quotascope.exporter.mapping import BeanColumn, Meaning
from quotascope.exporter.names import known_as
from quotascope.exporter.sources.prometheus_text import TextPage, TextReader
from quotascope.exporter.sources.source import NodeId
from quotascope.exporter.sources.spellings import QuotaName, quota_name
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.jmx import quote_tag_value
from quotascope.metrics.kafka.sanitizer import sanitize

PAGES = Path(__file__).parent / "pages"
Entity = tuple[str, str, str]
"""Quota type, user and client-id."""


def entities(text: str, meaning: Meaning = Meaning.USAGE) -> dict[Entity, float]:
    """Return the numbers of entities on a page, in Kafka's units."""
    page = TextReader().read(text.encode())
    meanings = ((meaning_of(column), value) for column, value in zip(page.layout.columns, page.values, strict=True))
    return {
        (key.tags[0].label, *key.tags[1:]): value
        for key, value in meanings
        if key and key.tags and key.attribute.meaning is meaning
    }


@pytest.mark.parametrize("case", sorted(PAGES.glob("*.right.json")), ids=lambda case: case.name.partition(".")[0])
def test_a_published_page_is_read_or_refused(case: Path) -> None:
    right = json.loads(case.read_text())
    text = (PAGES / right["page"]).read_text()
    if not right["entities"]:
        with pytest.raises(SourceUnreadable, match=right["must"]):
            TextReader().read(text.encode())
        return
    assert entities(text) == {(kind, user, client_id): usage for kind, user, client_id, usage, _ in right["entities"]}
    throttles = {key: value for key, value in entities(text, Meaning.THROTTLE_TIME).items() if value > 0}
    assert throttles == {
        (kind, user, client_id): pytest.approx(seconds * 1000)
        for kind, user, client_id, _, seconds in right["entities"]
        if seconds
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kafka_server_quota_byte_rate", QuotaName("", "byte-rate", 1, certain=True)),
        ("cp_kafka_server_Produce_throttle_time_total", QuotaName("Produce", "throttle-time", 1, certain=True)),
        ("kafka_server_quota_controller_mutation_tokens", QuotaName("ControllerMutation", "tokens", 1, certain=True)),
        ("kafka_quota_request_time", QuotaName("Request", "request-time", 1, certain=True)),
        ("kafka_server_fetch_throttle_time_seconds", QuotaName("Fetch", "throttle-time", 1000, certain=True)),
        ("kafka_server_byte_rate", QuotaName("", "byte-rate", 1, certain=False)),
        ("kafka_server_produce_byte_rate_bytes_per_second", QuotaName("Produce", "byte-rate", 1, certain=True)),
        ("kafka_server_fetch_throttle_time_max", QuotaName("Fetch", "throttle-time", 1, certain=False, ending="max")),
        ("kafka_server_request_time_ratio", QuotaName("Request", "", 1, certain=False, ending="time_ratio")),
        ("kafka_server_fetch_bytes_rate", QuotaName("Fetch", "byte-rate", 1, certain=True)),
        ("kafka_server_Fetch_kilobytes", QuotaName("Fetch", "", 1, certain=False, ending="kilobytes")),
        ("kafka_server_metrics", QuotaName("", "", 1, certain=False)),
        ("kafka_server_fetchsessioncache_value", None),
        ("kafka_server_fetcherlagmetrics_consumerlag", None),
        ("kafka_server_produce_byte_rate_created", None),  # the time of a counter in OpenMetrics
        ("kafka_consumer_fetch_manager_fetch_throttle_time_avg", None),
        ("kafka_network_requestmetrics_throttletimems_mean", None),
        ("kafka_quota_throttle_time_seconds", None),  # quotascope's own
        ("kafka_server_leaderreplication_byte_rate", None),
        ("kafka_server_socket_server_metrics_incoming_byte_rate", None),
        ("kafka_server_produce_user_alice_byte_rate", None),
        ("kafka_network_requestchannel_requestqueuesize", None),
        ("kafka_producer_byte_rate", None),
        ("kafka_server_" + "produce_" * 100 + "byte_rate", None),
    ],
)
def test_the_name_of_a_metric_says_type_and_attribute(name: str, expected: QuotaName | None) -> None:
    assert quota_name(name) == expected


ATTRIBUTES = {
    QuotaType.PRODUCE: "byte-rate",
    QuotaType.FETCH: "byte-rate",
    QuotaType.REQUEST: "request-time",
    QuotaType.CONTROLLER_MUTATION: "mutation-rate",
}
USERS = ("user", "User", "username", "principal", "kafka_user")
CLIENTS = ("clientId", "clientid", "client_id", "client", "clientID", "ClientId")
TYPES = ("resource", "type", "quota_type", "quotaType", "kind")
PLACES: Mapping[str, str] = {
    "env": "prod",
    "instance": "broker-1:9404",
    "job": "kafka",
    "team": "a b",
    "pod": "kafka-0",
}


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """The names and labels that rules use for Kafka's metrics."""

    prefix: str
    stem: str
    type_in_name: bool
    upper: bool
    ending: str
    user: str
    client_id: str
    type: str
    places: tuple[str, ...]
    gap: str
    comma: str
    suffix: str

    def line(self, quota_type: QuotaType, user: str, client_id: str, value: float, **further_labels: str) -> str:
        group = quota_type.group
        middle = f"{group}_" if self.type_in_name else ""
        name = f"{self.prefix}{self.stem}{middle}{ATTRIBUTES[quota_type].replace('-', '_')}{self.ending}"
        labels = {self.user: sanitize(user), self.client_id: client_id}
        labels_with_text = {label: quote_tag_value(text) for label, text in labels.items() if text}
        if not self.type_in_name:
            labels_with_text[self.type] = group
        labels_with_text.update({label: PLACES[label] for label in self.places}, **further_labels)
        inner = ",".join(f'{label}="{escaped(text)}"' for label, text in labels_with_text.items())
        spelled = name.upper() if self.upper else name
        return f"{spelled}{self.gap}{{{inner}{self.comma}}} {value}{self.suffix}\n"

    def page(self, values: Mapping[tuple[QuotaType, str, str], float]) -> str:
        lines = "".join(self.line(*key, value) for key, value in values.items())
        names = sorted({line.partition("{")[0].strip() for line in lines.split("\n") if line})
        types = "".join(f"# TYPE {name} gauge\n" for name in names)
        return f"jmx_scrape_error 0.0\n{types}{lines}"


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


spellings = st.builds(
    Spelling,
    prefix=st.sampled_from(("", "", "cp_", "acme_prod_")),
    stem=st.sampled_from(("kafka_server_quota_", "kafka_server_", "kafka_quota_", "kafka_server_client_quota_")),
    type_in_name=st.booleans(),
    upper=st.booleans(),
    ending=st.sampled_from(("", "", "_total")),
    user=st.sampled_from(USERS),
    client_id=st.sampled_from(CLIENTS),
    type=st.sampled_from(TYPES),
    places=st.lists(st.sampled_from(sorted(PLACES)), unique=True, max_size=3).map(tuple),
    gap=st.sampled_from(("", "", " ")),
    comma=st.sampled_from(("", ",")),
    suffix=st.sampled_from(("", " 1700000000000")),
)
names = st.one_of(st.sampled_from(("", "alice", "svc:team a", 'a, client-id="b"', '"q"', "x, user=y", "a*b\\")), texts)
found_on_broker = st.dictionaries(
    st.tuples(st.sampled_from(QuotaType), names, names).filter(lambda key: any(key[1:])),
    st.integers(1, 10**6).map(float),
    min_size=1,
    max_size=6,
)


def plain(values: Mapping[tuple[QuotaType, str, str], float]) -> dict[Entity, float]:
    return {
        (kind.label, known_as(user), known_as(client_id)): value for (kind, user, client_id), value in values.items()
    }


@given(spelling=spellings, values=found_on_broker)
def test_any_consistent_spelling_gives_the_same_entities(
    spelling: Spelling, values: Mapping[tuple[QuotaType, str, str], float]
) -> None:
    """Any names, prefix, page labels, upper case, blanks, commas and timestamps give the same entities."""
    assert entities(spelling.page(values)) == plain(values)


@given(spelling=spellings, other_spelling=spellings, values=found_on_broker)
def test_a_page_in_two_spellings_is_read(
    spelling: Spelling, other_spelling: Spelling, values: Mapping[tuple[QuotaType, str, str], float]
) -> None:
    """A page whose lines come from two rules with different spellings is read."""
    if (
        spelling.prefix != other_spelling.prefix
        or spelling.gap != other_spelling.gap
        or {*spelling.places} != {*other_spelling.places}
    ):
        other_spelling = Spelling(
            **{**vars(other_spelling), "prefix": spelling.prefix, "gap": spelling.gap, "places": spelling.places}
        )
    keys = list(values)
    first_half, second = ({key: values[key] for key in half} for half in (keys[::2], keys[1::2]))
    assert entities(spelling.page(first_half) + other_spelling.page(second)) == plain(values)


Contradict = Callable[[Spelling, tuple[QuotaType, str, str], float], str]
CONTRADICTIONS: Mapping[str, Contradict] = {
    "one series with two values": lambda spelling, key, value: spelling.line(*key, value + 1),
    "two brokers": lambda spelling, key, value: (
        spelling.line(*key, value, exported_instance="a:1") + spelling.line(*key, value, exported_instance="b:1")
    ),
    "a label of another name": lambda spelling, key, value: (
        spelling.line(*key, value, tenant="a") + spelling.line(*key, value, tenant="b")
    ),
    "two node ids": lambda *_: (
        'kafka_server_app_info_start_time_ms{client_id="1"} 5\n'
        'kafka_server_app_info_start_time_ms{client_id="2"} 5\n'
    ),
}  # fmt: skip


RULES_FOR_CLIENT_IDS = Spelling(
    prefix="", stem="kafka_server_", type_in_name=True, upper=False, ending="_total", user="user", client_id="clientId",
    type="type", places=(), gap="", comma="", suffix="",
)  # fmt: skip


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
@example(
    chosen=random.Random(1),  # noqa: S311 - an order
    spelling=RULES_FOR_CLIENT_IDS,
    values={(QuotaType.PRODUCE, "", "alice"): 1.0},
)
@given(chosen=st.randoms(), spelling=spellings, values=found_on_broker)
def test_no_contradictory_page_is_read(
    contradiction: str,
    chosen: random.Random,
    spelling: Spelling,
    values: Mapping[tuple[QuotaType, str, str], float],
) -> None:
    """A page that contradicts itself is refused, wherever the second line stands."""
    if contradiction == "two node ids" and (
        spelling.prefix or spelling.gap or not spelling.stem.startswith("kafka_server")
    ):
        return
    key = chosen.choice(list(values))
    lines = (spelling.page(values) + CONTRADICTIONS[contradiction](spelling, key, values[key])).split("\n")[:-1]
    chosen.shuffle(lines)
    with pytest.raises(SourceUnreadable, match=r"two values|several|tells series apart"):
        NodeId("1").of(TextReader().read("\n".join((*lines, "")).encode()).layout)


@pytest.mark.parametrize(
    "page_before", ["jmx_scrape_error 0.0\n", "# TYPE kafka_server_Produce_byte_rate_total gauge\n"]
)
@pytest.mark.parametrize(
    "spelled", ['kafka_server_Produce_byte_rate_total{client_id="c"', 'kafka_server_Produce_byte_rate{clientId="c"']
)
def test_beside_names_that_rules_made_no_label_is_a_tag_of_a_callback(page_before: str, spelled: str) -> None:
    """
    On a page of rules no label is a tag of a callback.

    Only without rules, where jmx_exporter shows `client_id` and no ending, are labels all key properties of a bean.
    """
    lines = [f"{spelled}{further_labels}}} 1\n" for further_labels in ("", ',tenant="a"', ',tenant="b"')]
    for order in permutations(lines):
        with pytest.raises(SourceUnreadable, match="label tenant tells series apart"):
            TextReader().read(f"{page_before}{''.join(order)}".encode())
        usual = "".join(order).replace("_total", "").replace("clientId", "client_id")
        page = TextReader().read(f"jmx_scrape_error 0.0\n{usual}".encode())
        assert (len(page.layout.columns), page.coverage.tagged) == (3, True)


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ('kafka_server_request_request_time_ratio{user="a",client_id="b"} 0.03', "ratio"),
        ('kafka_server_produce_byte_rate_kilobytes{client_id="b",user="a"} 12', "kilobytes"),
        ('kafka_quota_throttle_time_p99{quotaType="Fetch",user="a"} 12', "p99"),
    ],
)
def test_a_quota_metric_in_another_unit_or_a_statistic_of_it_is_refused_by_its_end(line: str, ending: str) -> None:
    with pytest.raises(SourceUnreadable, match=f"{ending} at the end of its name is no unit"):
        TextReader().read(f"{line}\n".encode())


def test_a_line_in_another_unit_is_counted_beside_those_that_are_read() -> None:
    good_line = 'kafka_server_produce_throttle_time{user="a",client_id="b"} 12\n'
    page = TextReader().read(f'{good_line}kafka_server_produce_byte_rate_mib{{user="a",client_id="b"}} 3\n'.encode())
    assert page.coverage.unplaced is not None
    assert page.coverage.unplaced.count == 1


@pytest.mark.parametrize("scopes", [("jmx", "jmx"), ("jmx", "kafka")])
def test_the_scopes_of_a_collector_are_no_tags_of_a_callback(scopes: tuple[str, str]) -> None:
    labels = [f'otel_scope_name="{scope}",otel_scope_version="1",user="a",client_id="b"' for scope in scopes]
    page = (
        f"kafka_server_produce_byte_rate{{{labels[0]}}} 5\nkafka_server_request_request_time_percent{{{labels[1]}}} 3\n"
    )
    assert entities(page) == {("produce", "a", "b"): 5, ("request", "a", "b"): 3}


@pytest.mark.parametrize("label", ["quantile", "statistic"])
def test_statistics_of_a_number_are_refused_by_their_label(label: str) -> None:
    lines = [f'kafka_server_produce_byte_rate{{user="a",client_id="b",{label}="{value}"}} 5\n' for value in (1, 2)]
    with pytest.raises(SourceUnreadable, match=f"the label {label} tells series apart"):
        TextReader().read("".join(lines).encode())


@pytest.mark.parametrize("beginning", ["", "# HELP x Numbers.\n"])
def test_names_in_quotes_are_not_taken_for_json(beginning: str) -> None:
    page = f'{beginning}{{"kafka.server.produce.byte-rate","client-id"="b"}} 5\n'
    with pytest.raises(SourceUnreadable, match="stand in quotes"):
        TextReader().read(page.encode())


def test_a_node_id_in_a_spelling_of_another_dialect_is_read() -> None:
    page = (
        'jmx_scrape_error 0.0\nkafka_server_Produce_byte_rate{clientId="alice"} '
        '1\nkafka_server_app_info_start_time_ms{client_id="7"} 5\n'
    )
    assert NodeId(None).of(TextReader().read(page.encode()).layout) == "7"


@pytest.mark.parametrize("prefix", ["cp_", "io_strimzi_"])
def test_the_prefix_of_names_is_that_of_each_page(prefix: str) -> None:
    """The prefix of names is learned from each page, and not kept from a former or a refused one."""
    client = 'kafka_server_Produce_byte_rate{client_id="a",user="b"} 5\n'
    plugin = 'io_strimzi_kafka_quotas_StaticQuotaCallback_Value{name="Request"} 200\n'
    node = 'kafka_controller_KafkaController_Value{name="ActiveControllerCount"} 1\n'
    malformed = f'{prefix}kafka_server_Produce_byte_rate{{client_id="a",b"}} 5\n'
    for pages in (
        (prefix + client, client + plugin),
        (node + prefix + client, node + client + plugin),
        (malformed, client + plugin),
        (prefix + client, node, node + prefix + client),
        (client + plugin, prefix + client, client + plugin, node, prefix + client),
        (node, node + client.replace("Produce", "quota_Produce")),
        (client, client + client.replace("Produce", "quota_Produce").replace('"a"', '"x"')),
    ):
        reader, outcomes = TextReader(), []
        for page in pages:
            for _ in range(3):
                try:
                    outcomes.append(columns(reader.read(page.encode())))
                except SourceUnreadable:
                    outcomes.append({})
                assert outcomes[-1] == alone(page), pages


def columns(page: TextPage) -> dict[BeanColumn, float]:
    return dict(zip(page.layout.columns, page.values, strict=True))


def alone(text: str) -> dict[BeanColumn, float]:
    """Return the result of a reader that has read nothing before."""
    try:
        return columns(TextReader().read(text.encode()))
    except SourceUnreadable:
        return {}


@pytest.mark.parametrize("name", ["kafka_server_metrics", "kafka_metrics", "acme_kafka_server_metrics"])
@pytest.mark.parametrize(
    "beginning", ["", 'kafka_server_Produce_byte_rate{user="x"} 1\n', "kafka_server_request_handler_idle 1\n"]
)
def test_type_and_attribute_may_both_be_labels(name: str, beginning: str) -> None:
    """Type and attribute may both be labels, and the attribute may name a unit; series of other MBeans are ignored."""
    line = f'{name}{{type="%s",attribute="%s",user="a",client_id="b"}} %g\n'
    lines = (("Produce", "byte-rate", 5), ("Fetch", "throttle-time-seconds", 2), ("producer-metrics", "byte-rate", 7))
    text = f"{beginning}{''.join(line % quota_type for quota_type in lines)}"
    assert TextReader().read(text.encode()).coverage.unplaced is None
    assert entities(text)["produce", "a", "b"] == 5
    assert entities(text, Meaning.THROTTLE_TIME) == {("fetch", "a", "b"): 2000}
    assert ("produce", "x", "") in entities(text) or "user" not in beginning


@pytest.mark.parametrize(
    "name", ["kafka_server_fetch_kilobytes", "kafka_server_Request_time_ratio", "kafka_quota_produce_rate5m"]
)
def test_an_attribute_that_kafka_has_not_is_counted(name: str) -> None:
    """An unknown attribute beside known ones is counted if it has a client, and otherwise ignored."""
    good_line = 'kafka_server_produce_throttle_time{user="a",client_id="b"} 12\n'
    for labels, count in (('{user="a",client_id="b"}', 1), ("", 0), ('{topic="t"}', 0)):
        unplaced = TextReader().read(f"{good_line}{name}{labels} 3\n".encode()).coverage.unplaced
        assert (unplaced.count if unplaced else 0) == count


@pytest.mark.parametrize("ending", ["", 'kafka_controller_kafkacontroller_value{name="ActiveControllerCount"} 1\n'])
def test_lower_case_without_comments_is_not_taken_for_the_reporter_of_strimzi(ending: str) -> None:
    """Jmx_exporter's page behind a proxy that strips comments, or with the names of quotas alone."""
    page = (
        f'{ending}kafka_server_app_info_starttimems{{id="1"}} 5\nkafka_server_produce_byte_rate{{client_id="\\"a '
        f'b\\""}} 5\n'
    )
    reader = TextReader()
    assert {bean.bean.get("client-id") for bean in reader.read(page.encode()).layout.columns} >= {"a b"}
    assert reader.dialect == ("jmx_default" if ending else "jmx_rules")


@pytest.mark.parametrize(
    ("lines", "client_ids", "dialect"),
    [
        ([r'client_id="\"a b@c\"",user="x"', 'client_id="d"'], {"a b@c", "d"}, "jmx_rules"),
        ([r'client_id="\"a\\nb\\\"c\"",user="x"'], {'a\nb"c'}, "jmx_rules"),
        ([r'client_id="\"a b@c\"",user="x"', 'client_id="d@e",user="x"'], {'"a b@c"', "d@e"}, "strimzi"),
        ([r'client_id="\"a b@c\"",user="x"', 'client_id="",user="y"'], {'"a b@c"', None}, "strimzi"),
        ([r'client_id="\"ab\"",user="x"'], {'"ab"'}, "strimzi"),
        (['client_id="ab",user="x"'], {"ab"}, "strimzi"),
    ],
)
def test_names_show_whether_a_bare_page_has_the_quotes_of_beans(
    lines: list[str], client_ids: set[str | None], dialect: str
) -> None:
    """Quotes belong to the names where Java would have quoted a bare one, or none of them."""
    for order in permutations(lines):
        reader = TextReader()
        page = reader.read("".join(f"kafka_server_produce_byte_rate{{{labels}}} 5\n" for labels in order).encode())
        assert {column.bean.get("client-id") for column in page.layout.columns} == client_ids
        assert reader.dialect == dialect
    typed = f"# TYPE kafka_server_produce_byte_rate gauge\nkafka_server_produce_byte_rate{{{lines[0]}}} 5\n"
    reader = TextReader()
    assert reader.read(typed.encode()).layout.columns
    assert reader.dialect == "strimzi"


@pytest.mark.parametrize("client", ["rdkafka", "kafka_server_produce", "my_kafka_quota_fetch", "KafkaConsumer"])
def test_a_client_in_a_name_is_no_prefix(client: str) -> None:
    """The refusal says that rules put clients into names, whatever the clients are called."""
    names = [
        f"kafka_server_produce_{entity}_{client}_byte_rate" for entity in ("client_id", "user_anonymous_client_id")
    ]
    with pytest.raises(SourceUnreadable, match="from which they cannot be recovered"):
        TextReader().read("".join(["# HELP a\n", *(f"{name} 5\n" for name in names)]).encode())


@pytest.mark.parametrize(
    ("name", "other_name"),
    [
        ("b1_kafka_server_Produce_byte_rate", "b2_kafka_server_Produce_byte_rate"),
        ("kafka1_kafka_server_quota_byte_rate", "kafka2_kafka_server_quota_byte_rate"),
        ("east_kafka_quota_produce_byte_rate", "west_kafka_quota_produce_byte_rate"),
    ],
)
def test_names_that_differ_in_their_prefix_alone_are_of_several_brokers(name: str, other_name: str) -> None:
    """
    Names that differ only in their prefix are refused as several brokers', even without a common client.

    Rules from two places may have prefixes of their own.
    """
    lines = [f'{name}{{type="Produce",user="a"}} 5\n', f'{other_name}{{type="Produce",user="b"}} 5\n']
    for order in permutations(lines):
        with pytest.raises(
            SourceUnreadable, match=rf"several brokers: the names {name} and {other_name} differ in their prefix"
        ):
            TextReader().read("".join(order).encode())
    mixed = f'{lines[0]}{other_name.replace("byte_rate", "throttle_time")}{{type="Produce",user="b"}} 5\n'
    assert len(TextReader().read(mixed.encode()).layout.columns) == 2


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            'kafka_server_quota_throttle_time_seconds{resource="Produce",user="a"}',
            "kafka_server_quota_throttle_time_seconds",
        ),
        ('acme_kafka_server_Fetch_throttleTimeSeconds{user="a"}', "acme_kafka_server_Fetch_throttleTimeSeconds"),
        ('kafka_metrics{type="Produce",attribute="throttle-time-seconds",user="a"}', "kafka_metrics"),
        ('kafka_server_quota_throttle_time_ms{resource="Produce",user="a"}', ""),
        ('kafka_quota_throttle_time_seconds{quota_type="produce",user="a"}', ""),  # by rules of ours
    ],
)
def test_a_unit_that_only_a_name_says_is_kept_with_what_is_read(line: str, name: str) -> None:
    other_line = 'kafka_server_quota_byte_rate{resource="Fetch",user="z"} 5\n'
    reader = TextReader()
    assert reader.read(f"{line} 0.5\n{other_line}".encode()).coverage.in_seconds == name
    assert reader.read(other_line.encode()).coverage.in_seconds == ""


@pytest.mark.parametrize("value", [0.38, 380])
def test_one_throttle_time_in_two_units_is_refused(value: float) -> None:
    """A throttle time in two units is refused, even with equal numbers; another client's may be in another unit."""
    names = "kafka_server_quota_throttle_time", "kafka_server_quota_throttle_time_seconds"
    series, other_series = (f'{name}{{resource="Produce",user="a"}}' for name in names)
    for order in permutations((f"{series} 380\n", f"{other_series} {value}\n")):
        reader = TextReader()
        for _ in range(2):
            with pytest.raises(SourceUnreadable, match="one number in two units"):
                reader.read("".join(order).encode())
        assert len(reader.read(order[0].encode()).layout.columns) == 1
    times = entities(f"{series} 380\n{other_series.replace('user', 'clientId')} 0.4\n", Meaning.THROTTLE_TIME)
    assert times == {("produce", "a", ""): 380, ("produce", "", "a"): 400}
