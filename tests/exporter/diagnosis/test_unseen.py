"""Nothing is said not to happen that the agents could not have shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.exporter.examples import ALICE, COMPLETE, NOW, health, limits, snapshot, usage

from quotascope.cli.doctor_view import as_table
from quotascope.exporter.coverage import Coverage, EntityKind, Unplaced
from quotascope.exporter.diagnosis.catalog import UNCERTAIN, FindingSeverity
from quotascope.exporter.diagnosis.explain import explain, sentence
from quotascope.exporter.diagnosis.findings import diagnose, quota_findings
from quotascope.exporter.diagnosis.rule_usage import rule_usage
from quotascope.exporter.diagnosis.units import replication_throttles, unseen_clients
from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.exposition.rows import Exposed
from quotascope.exporter.join.join import Join
from quotascope.exporter.limits import Limits, LimitsHealth, NodeSettings
from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.snapshot import NodeUsage, Snapshot, SourceRead
from quotascope.exporter.snapshot.visibility import Visibility
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.metrics.catalog import REQUEST_THROTTLED_SECONDS, THROTTLING_ERRORS
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

USER, CLIENT_ID, PAIR = EntityKind
PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
CALM = re.compile(r"No traffic|no broker has measured|Everything works|misspelled|none of them throttled")
UNPLACED = Unplaced(count=1, example="x", labels=("env",))
FOR_ALL = {
    quota_type: QuotaRules(
        {QuotaEntity(DEFAULT): 9.0, QuotaEntity(DEFAULT, DEFAULT): 9.0, QuotaEntity(None, DEFAULT): 9.0}
    )
    for quota_type in QuotaType
}


def shows(*kinds: EntityKind, quota_type: QuotaType = PRODUCE, **changes: Any) -> Coverage:
    of_type = frozenset({quota_type}) if kinds else frozenset[QuotaType]()
    parts: dict[str, Any] = {"kinds": {quota_type: frozenset(kinds)}, "usages": of_type, "throttle_times": of_type}
    return Coverage(**(parts if kinds else {}), **changes)


def nodes(*coverages: Coverage | None, **changes: Any) -> dict[str, Any]:
    """Return nodes 1, 2 and so on with these coverages, and their sources."""
    numbered = [(str(number), coverage) for number, coverage in enumerate(coverages, 1)]
    return {
        "nodes": tuple(NodeUsage(broker=node, coverage=coverage, **changes) for node, coverage in numbered),
        "sources": tuple(health(f"broker-{node}", dialect="kafka_2_0_0", node_id=node) for node, _ in numbered),
        "limits": limits(nodes={node: NodeSettings() for node, _ in numbered}),
    }


def codes(snapshot: Snapshot) -> list[str]:
    return [finding.code for finding in diagnose(snapshot)]


def test_a_node_that_shows_no_client_beside_one_that_does_leaves_its_part_out() -> None:
    state = snapshot(usage(), **nodes(shows(USER), Coverage()))
    (finding,) = diagnose(state)
    assert finding.code == "source_shows_no_client"
    assert finding.text == (
        "Source 'broker-2' (kafka_2_0_0) shows no client of node 2, while others show 1 quota entity: figures of "
        "clients are "
        "those of the other nodes alone, unless none uses this node."
    )
    assert "kafka.server:type=Produce,user=*" in finding.advice
    assert "kafka_quota_produce_bytes_per_second" in finding.advice
    assert finding.advice.startswith("If such clients send requests: the agent lacks a rule for")


@pytest.mark.parametrize(
    ("dialect", "changes", "severity"),
    [
        ("kafka_2_0_0", {}, FindingSeverity.NOTE),
        ("confluent", {}, FindingSeverity.WARNING),
        ("prometheus", {}, FindingSeverity.WARNING),
        ("kafka_2_0_0", {"numbers": {REQUEST_THROTTLED_SECONDS: {("Produce",): 3.0}}}, FindingSeverity.WARNING),
        ("kafka_2_0_0", {"numbers": {THROTTLING_ERRORS: {("CreateTopics",): 1.0}}}, FindingSeverity.WARNING),
    ],
)
@pytest.mark.parametrize("coverages", [(shows(USER, PAIR), shows(PAIR)), (shows(USER), Coverage())])
def test_a_quiet_broker_is_no_fault_where_its_rules_show_clients_elsewhere(
    coverages: Sequence[Coverage], dialect: str, changes: Any, severity: FindingSeverity
) -> None:
    """A quiet broker is no fault where its rules show clients elsewhere, but doubtful after throttles."""
    parts = nodes(*coverages)
    first_node, second = parts["nodes"]
    parts["nodes"] = first_node, replace(second, **changes)
    parts["sources"] = parts["sources"][0], replace(parts["sources"][1], dialect=dialect)
    (finding,) = diagnose(snapshot(usage(), **parts))
    assert (finding.code in UNCERTAIN, finding.severity) == (True, severity)


@pytest.mark.parametrize(
    ("dialect", "severity"), [("kafka_2_0_0", FindingSeverity.NOTE), ("prometheus", FindingSeverity.WARNING)]
)
def test_a_quiet_cluster_is_no_fault_where_agents_name_quota_metrics(dialect: str, severity: FindingSeverity) -> None:
    parts = nodes(Coverage())
    parts["sources"] = tuple(replace(source, dialect=dialect, hint="check it") for source in parts["sources"])
    findings = diagnose(snapshot(**parts | {"limits": replace(RULES, nodes=parts["limits"].nodes)}))
    assert [finding.code for finding in findings] == ["no_client_shown", "source_without_entities"]
    assert {finding.severity for finding in findings} == {severity}


def test_a_label_that_was_left_out_is_named_while_it_may_be_a_tag() -> None:
    """The Admin API decides; a note keeps nothing from working."""
    for callback, count in ((None, 1), (True, 1), (False, 0)):
        parts = nodes(replace(COMPLETE, labels_of_page=("tier", "l\nm")), quota_callback=callback)
        findings = [
            finding for finding in quota_findings(snapshot(usage(), **parts)) if finding.code == "label_left_out"
        ]
        assert len(findings) == count
        assert all("(tier, l m)" in finding.text and finding.severity is FindingSeverity.NOTE for finding in findings)
        assert "label_left_out" not in codes(snapshot(usage(), **parts))


@pytest.mark.parametrize("seconds", [0.38, 29.9, 380.0])
def test_throttle_times_whose_unit_only_a_name_says_are_named(seconds: float) -> None:
    """A note, or a problem where clients would have given up by then."""
    parts = nodes(replace(COMPLETE, in_seconds="throttle_seconds"))
    state = snapshot(usage(throttle_time_seconds=seconds), **parts)
    (finding,) = [finding for finding in quota_findings(state) if finding.code == "unit_by_name"]
    is_long = seconds > 30
    assert ("(throttle_seconds), up to 380 s" if is_long else "(throttle_seconds);") in finding.text
    assert finding.severity is (FindingSeverity.WARNING if is_long else FindingSeverity.NOTE)
    assert ("unit_by_name" in codes(state)) is is_long
    assert "unit_by_name" not in [finding.code for finding in quota_findings(snapshot(usage(), **nodes(COMPLETE)))]


def test_a_kind_of_clients_that_one_node_lacks_is_named_with_the_rule() -> None:
    (finding,) = diagnose(snapshot(usage(), **nodes(shows(USER, PAIR), shows(PAIR))))
    assert finding.code == "kinds_partly_shown"
    assert "shows no users alone (produce), while others do" in finding.text
    assert "unless none of them uses node 2" in finding.text


@pytest.mark.parametrize(
    "coverages", [(shows(USER), shows(USER)), (shows(USER), COMPLETE), (shows(USER, PAIR), shows(PAIR, alike=True))]
)
def test_nothing_is_missing_where_all_nodes_would_show_it(coverages: Sequence[Coverage]) -> None:
    assert codes(snapshot(usage(), **nodes(*coverages))) == []


def test_a_node_that_is_only_a_controller_has_no_clients_to_show() -> None:
    configured = limits(nodes={"1": NodeSettings()})
    assert codes(snapshot(usage(), **nodes(shows(USER), Coverage()) | {"limits": configured})) == []


ALL = ("user alice", "client-id app", "bob / app")
RULES = limits(
    rules={PRODUCE: QuotaRules({ALICE: 1.0, QuotaEntity(None, "app"): 2.0, QuotaEntity("bob", "app"): 3.0})},
    connection_limits={},
)


@pytest.mark.parametrize(
    ("coverages", "hidden"),
    [
        ([COMPLETE], {}),
        ([shows(USER, CLIENT_ID, PAIR)], {}),
        ([shows(PAIR)], {"user alice": ["1"], "client-id app": ["1"]}),
        ([shows(PAIR, alike=True)], {}),
        ([shows(USER, CLIENT_ID, PAIR), shows(USER, PAIR)], {"client-id app": ["2"]}),
        ([shows(USER, CLIENT_ID, PAIR, unplaced=UNPLACED)], {name: ["1"] for name in ALL}),
        ([None], {name: ["1"] for name in ALL}),
    ],
)  # fmt: skip
def test_an_idle_rule_is_not_visible_where_an_agent_may_hide_its_clients(
    coverages: Sequence[Coverage | None], hidden: Mapping[str, Sequence[str]]
) -> None:
    """Where an agent may hide clients, hits of a rule are unknown and no name is called misspelled."""
    parts = nodes(*coverages)
    configured = replace(RULES, nodes=parts["limits"].nodes)
    state = snapshot(usage(user="carol"), **parts | {"limits": configured})
    rules = {str(rule.entity): rule for rule in rule_usage(configured, state)}
    assert {name: list(rule.hidden_on) for name, rule in rules.items() if rule.hidden_on} == hidden
    assert {name for name, rule in rules.items() if rule.hits is None} == hidden.keys()
    findings = {finding.code: finding for finding in quota_findings(state)}
    assert ("limits_not_visible" in findings) is bool(hidden)
    assert ("limits_unused" in findings) is (len(hidden) < len(rules))
    if hidden:
        assert findings["limits_not_visible"].text.startswith(
            f"It is not visible here whether clients are measured under {len(hidden)} of 3 limits: "
            "producer_byte_rate of "
        )


def test_an_explanation_names_the_nodes_that_may_not_show_the_client() -> None:
    read_nodes = nodes(shows(PAIR), COMPLETE)["nodes"]
    produce = explain(RULES, "alice", None, read_nodes)[0]
    assert produce.hidden_on == ("1",)
    assert sentence(produce, "alice", None).endswith(
        "; not visible here on node 1: it is not read, or its agent does not show it"
    )
    assert explain(RULES, "bob", "app", read_nodes)[0].hidden_on == ()
    assert explain(RULES, "alice", None)[0].hidden_on == ()


def test_rules_of_addresses_are_not_idle_where_no_agent_shows_connections() -> None:
    configured = limits(rules={}, connection_limits={"10.0.0.1": 5.0})
    for coverage, hits in ((COMPLETE, ()), (replace(COMPLETE, connections=False), None)):
        (rule,) = rule_usage(configured, snapshot(usage(), **nodes(coverage) | {"limits": configured}))
        assert rule.hits == hits
    findings = [
        finding
        for finding in quota_findings(snapshot(usage(), **nodes(shows(USER)) | {"limits": configured}))
        if finding.code == "limits_not_visible"
    ]
    assert ["socket-server-metrics" in finding.advice for finding in findings] == [True]


def test_mutations_are_not_visible_while_the_active_controller_is_not_read() -> None:
    configured = limits(rules={MUTATION: QuotaRules({ALICE: 1.0})}, active_controller="100")
    visibility = Visibility.of(snapshot(**nodes(COMPLETE) | {"limits": configured}))
    assert (visibility.hidden_on(MUTATION, USER), visibility.hidden_on(PRODUCE, USER)) == (("100",), ())


@pytest.mark.parametrize(
    ("changes", "text", "value"),
    [
        (nodes(COMPLETE), "", True),
        (nodes(Coverage()), "clients of node 1 not shown", False),
        ({**nodes(Coverage()), "limits": None}, "clients may not be shown", None),
        ({**nodes(Coverage()), "limits": limits(nodes={"2": NodeSettings()})}, "", None),
        (nodes(COMPLETE, delay_queue_size={FETCH: 2.0}), "clients of node 1 not shown", False),
        (nodes(replace(COMPLETE, unplaced=UNPLACED)), "clients of node 1 not shown", False),
        ({**nodes(Coverage()), "limits": limits(rules={})}, "", None),
    ],
)
def test_counts_of_entities_say_whose_clients_they_leave_out(changes: dict[str, Any], text: str, value: object) -> None:
    state = snapshot(**changes)
    assert unseen_clients(state) == text
    rows = Exposed(state, NOW).rows["quotascope_source_shows_clients"]
    assert rows == [(("broker-1",), value)]


def test_replication_throttles_name_brokers_direction_limit_and_where_it_is_set() -> None:
    """Replication throttles are named by broker, direction, limit and the place where each is set."""
    default = {"leader": 1e6, "follower": 1e6}
    settings = {
        "1": NodeSettings(replication_limits=default, replication_origins=dict.fromkeys(default, "all brokers")),
        "2": NodeSettings(
            replication_limits={"leader": 1e6, "follower": 10.0},
            replication_origins={"leader": "all brokers", "follower": "broker"},
        ),
        "3": NodeSettings(),
        "10": NodeSettings(replication_limits={"alter_log_dirs": 5e5}),
    }
    assert replication_throttles(settings) == [
        "leader 1.00 MB/s on brokers 1, 2 (default of all brokers)",
        "follower 1.00 MB/s on broker 1 (default of all brokers)",
        "follower 10.0 B/s on broker 2 (its own)",
        "alter log dirs 500 kB/s on broker 10",
    ]
    assert replication_throttles({"3": NodeSettings()}) == []


# pages without an entity: whatever else is on them, they prove nothing

PLACED = (
    "kafka_server_produce_queue_size {queue}",
    "kafka_server_fetch_queue_size 0.0",
    "kafka_controller_kafkacontroller_activecontrollercount_value 1.0",
    'kafka_server_quota_start_time_ms{{resource="app-info",clientId="1"}} 1.7e12',
    'kafka_network_requestmetrics_errors_total{{request="Produce",error="NONE"}} 4.0',
)
STRANGE = (
    'kafka_server_quota_byte_rate{{kind="Produce",who="a{odd}"}} 5.0',
    (
        'kafka_server_produce_byte_rate{{zone="z{odd}",user="u"}} '
        '5.0\nkafka_server_produce_byte_rate{{zone="y",user="u"}} 6.0'
    ),
    'kafka_server_Fetch_throttle_time{{consumer="c{odd}"}} 7.0',
    'kafka_server_quota_request_time{{resource="Requests",principal="p{odd}"}} 8.0',
)


def read_page(page: str) -> SourceRead:
    reader = TextReader()
    text_page = reader.read(page.encode())
    table = BeanTable(
        node_id="1",
        layout=text_page.layout,
        values=text_page.values,
        remark=text_page.remark,
        hint=text_page.hint,
        coverage=text_page.coverage,
    )
    state = health("broker-1", dialect=reader.dialect, hint=text_page.hint, remark=text_page.remark, node_id="1")
    return SourceRead(health=state, table=table)


def findings_of(source_read: SourceRead, configured: Limits | None) -> Iterator[str]:
    state = Join().snapshot([source_read], configured, LimitsHealth(read_at=NOW), NOW)
    for finding in (*diagnose(state), *quota_findings(state)):
        yield f"{finding.text} {finding.advice}"
    console = Console(file=StringIO(), width=200)
    console.print(as_table([*diagnose(state), *quota_findings(state)]))
    yield cast("StringIO", console.file).getvalue()


@given(
    placed=st.sets(st.sampled_from(PLACED)),
    strange=st.lists(st.sampled_from(STRANGE), max_size=3, unique=True),
    order=st.randoms(),
    queue=st.sampled_from([0.0, 1.0, 12.0]),
    odd=st.text("ab1", max_size=3),
    configured=st.sampled_from([None, RULES, limits(rules=FOR_ALL)]),
)
def test_no_page_without_entities_is_called_calm(
    placed: set[str], strange: list[str], order: Any, queue: float, odd: str, configured: Limits | None
) -> None:
    """A page without entities is never called calm, whatever its dialect, or whether it was refused by a name."""
    lines = [template.format(queue=queue, odd=odd) for template in (*sorted(placed), *strange)]
    order.shuffle(lines)
    try:
        source_read = read_page("\n".join(["kafka_server_brokertopicmetrics_count 1", *lines, ""]))
    except SourceUnreadable:
        return
    if source_read.table is not None and source_read.table.coverage.has_entities:
        return
    texts = list(findings_of(source_read, configured))
    assert texts
    assert not any(CALM.search(text) for text in texts), texts
