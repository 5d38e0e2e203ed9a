"""The findings of snapshots and of reads of agents, by the entries of the catalog."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import replace
from math import inf
from string import Formatter
from typing import Any

import pytest
from tests.exporter.examples import ALICE, COMPLETE, NOW, health, limits, snapshot, usage
from tests.exporter.nodes import idle
from tests.exporter.recorded import pairs, table

from quotascope.exporter.coverage import Coverage, EntityKind, Unplaced
from quotascope.exporter.diagnosis.catalog import Catalog, Finding, FindingSeverity, worst
from quotascope.exporter.diagnosis.findings import agent_findings, diagnose, quota_findings
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import BeanLayout, BeanTable
from quotascope.exporter.snapshot import (
    Callbacks,
    Columns,
    DiscoveryHealth,
    Folds,
    LimitsHealth,
    NodeUsage,
    PushHealth,
    ReloadHealth,
    Snapshot,
    SourceRead,
)
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

RULE = QuotaRules({ALICE: 1.0})
MUTATIONS = {QuotaType.CONTROLLER_MUTATION: RULE}
NO_RULES = limits(rules={})
QUIET = health("b2", dialect="strimzi", hint="widen the allowlist", node_id="1")
CUSTOM = limits(nodes={"1": NodeSettings(quota_callback_class="org.acme.Quotas")})
PLUGIN = limits(nodes={"1": NodeSettings(quota_callback_class="io.strimzi.kafka.quotas.StaticQuotaCallback")})
THREE = {node: NodeSettings() for node in ("1", "10", "2")}
STATIC = {QuotaType.PRODUCE: 50_000.0, QuotaType.FETCH: inf, QuotaType.REQUEST: 200.0}
BUSY = Columns.of(
    usage(QuotaType.REQUEST, user, client_id, usage=threads, broker=broker)
    for user, client_id, threads, broker in (
        ("alice", "", 0.5, "1"),
        ("bob", "l\nm", 6.5, "1"),
        ("carol", "", 7.5, "2"),
    )
)
TAGGED = NodeUsage(broker="2", quota_callback=True, overruled=True, coverage=COMPLETE)
ODD = Unplaced(count=2, example='kafka_x{env="a"}', labels=("env", "type"), expected=("user", "client_id"))
WAITING = {QuotaType.PRODUCE: 10.0, QuotaType.FETCH: 1.0, QuotaType.REQUEST: 0.0}
TENANTS = Columns.of([usage(QuotaType.FETCH, broker="2", user="", client_id="", tags=())])
"""Entities of a callback, which none of Kafka's own quotas measures."""


def codes(findings: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def check(findings: Iterable[Finding], expected: str) -> None:
    """Require findings that match lines with a code and its evidence."""
    all_findings = list(findings)
    lines = [line.split(" ", 1) for line in expected.splitlines()]
    assert codes(all_findings) == [code for code, *_ in lines]
    for finding, (_, *evidence) in zip(all_findings, lines, strict=True):
        assert "\n" not in finding.text
        for text in evidence:
            assert text in finding.text


def node(**fields: Any) -> tuple[NodeUsage, ...]:
    return (NodeUsage(broker="1", **{"coverage": COMPLETE, **fields}),)


def reloaded(**fields: Any) -> dict[str, Any]:
    return {"reload": ReloadHealth(succeeded_at=NOW, **fields)}


def kafka(**fields: Any) -> dict[str, Any]:
    return {"limits": None, "limits_health": LimitsHealth(**fields)}


CROWDED = Folds(crowded={QuotaType.PRODUCE: 17}, max_entities=10)
CROWDED_CALLBACK = Callbacks(crowded={QuotaType.FETCH: 12})
OLD_LIMITS = LimitsHealth(read_at=NOW - 90, error="timeout")
LATE = health("b2", late=True, read_at=NOW - 7)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"sources": ()}, "no_source"),
        (
            {"sources": (), "discoveries": (DiscoveryHealth(name="kafka", error="no"),)},
            "no_source_found\ndiscovery_failed Discovery (kafka): no",
        ),
        (
            {"sources": (health(up=False, error="refused"),)},
            "source_unreadable Source 'broker-1' (jolokia) cannot be read: refused",
        ),
        ({"sources": (LATE,)}, "source_late Source 'b2' (jolokia) has not answered yet: its values are 7 s old."),
        ({"sources": (health("b2", remark="move"),)}, "source_incomplete Source 'b2' (jolokia) gives less"),
        ({"sources": (QUIET,)}, ""),
        (
            {"restarts": {"discovery": 0, "limits": 1}},
            "task_restarted task 'limits' failed and was restarted once since",
        ),
        ({"restarts": {"samples": 3}}, "task_restarted restarted 3 times since"),
        (kafka(error="needs DESCRIBE", denied=True), "limits_denied may not be read: needs DESCRIBE"),
        (kafka(configured=False), "no_admin_api"),
        ({"limits_health": OLD_LIMITS}, "limits_unreachable timeout (the limits shown are 90 s old)"),
        ({"limits": limits(missing={"the leader": "needs it"})}, "limits_incomplete Unknown: the leader: needs it"),
        ({"limits": limits(rules=MUTATIONS, active_controller="100")}, "controller_not_read Node 100,"),
        ({"limits": limits(rules=MUTATIONS, active_controller="1")}, ""),
        (
            {
                "limits": limits(rules=MUTATIONS, active_controller="100"),
                "sources": (health(), health("c", up=False, error="refused")),
            },
            "source_unreadable Source 'c'",
        ),
        (
            {"limits": limits(nodes=THREE)},
            "brokers_not_read No source reads 2 brokers of the cluster (2, 10): clients are not shown there",
        ),
        ({"limits": limits(nodes=THREE, rules=MUTATIONS, active_controller="10")}, "brokers_not_read (2, 10)"),
        ({"limits": limits(missing={"settings of broker 3": "denied"})}, "brokers_not_read (3)\nlimits_incomplete"),
        (
            {"limits": limits(nodes=THREE), "sources": (health(), health("b2", up=False, error="refused"))},
            "source_unreadable Source 'b2'",
        ),
        ({"limits": limits(rules=MUTATIONS, active_controller=None)}, ""),
        ({"limits": limits(active_controller="100")}, ""),
        ({"limits": CUSTOM}, "callback_decides Node 1 leaves quotas to org.acme.Quotas:"),
        (
            {"limits": limits(rules={}, nodes={}), "nodes": (TAGGED,)},
            "callback_decides Node 2 leaves quotas to a custom callback:",
        ),
        (
            {
                "limits": PLUGIN,
                "nodes": node(static_limits=STATIC, numbers={catalog.CALLBACK_THROTTLE_FACTOR: {(): 1.0}}),
            },
            (
                "static_limits Node 1 leaves quotas to Strimzi's quotas plugin, and the configured rules do nothing: "
                "its clients share 50.0 kB/s of produce, 200 % of request ("
            ),
        ),
        ({"limits": PLUGIN, "nodes": node(static_limits={QuotaType.FETCH: inf})}, "static_limits share no limit ("),
        (
            {"nodes": node(numbers={catalog.CALLBACK_THROTTLE_FACTOR: {(): 0.0}})},
            "storage_throttled leaves 0% of the produce limit on node 1",
        ),
        ({"callbacks": Callbacks(left_out=("k", "l\nm"))}, "callback_tags_left_out not shown: k, l m."),
        (
            {"nodes": node(numbers={catalog.UTILIZATION_DISAGREEMENTS: {(): 2}})},
            "utilization_differs Node 1 reports another utilization (quota-utilization) for 2 entities",
        ),
        ({"nodes": node(numbers={catalog.UTILIZATION_DISAGREEMENTS: {(): 0}})}, ""),
        (
            {"nodes": node(numbers=idle(broker=0.04, controller=1.0)), "columns": BUSY},
            (
                "node_saturated node 1 were idle for 4% of the last minute, so that all requests wait. Most request "
                'time: bob / "l\\nm" 650 %, user alice 50.0 %.'
            ),
        ),
        (
            {"nodes": node(numbers=idle(0.04))},
            (
                "node_saturated idle for 4% of the last minute, so that all requests wait. Most request time: "
                "unknown, since no request quota lets Kafka measure it."
            ),
        ),
        ({"nodes": node(numbers=idle(0.1))}, ""),
        ({"nodes": node(numbers=idle(0.04, seconds=14.9))}, ""),
        ({"nodes": node(numbers=idle(0.04, seconds=15.0))}, "node_saturated idle for 4%"),
        (
            {"folds": CROWDED},
            "entities_folded 17 of produce. The 10 most urgent ones are shown, the others together as __overflow__.",
        ),
        (
            {"folds": Folds(max_entities=10), "callbacks": CROWDED_CALLBACK},
            "callback_entities_folded 12 of fetch. The 10 most urgent ones",
        ),
        (reloaded(error="q.yaml: line 3"), "reload_failed the previous one stays in force: q.yaml: line 3"),
        (
            reloaded(files_error="ca.pem cannot be read"),
            "files_refused what it held before stays in use: ca.pem cannot",
        ),
        ({"push": PushHealth(error="HTTP 401")}, "push_fails did not arrive as a whole: HTTP 401"),
        (reloaded(needs_restart=("server.port",)), "restart_needed only after a restart: server.port."),
    ]
)  # fmt: skip
def test_problems_of_a_snapshot_with_an_entity(changes: dict[str, Any], expected: str) -> None:
    """A snapshot gives the findings of its problems and no others, with the evidence in their texts."""
    check(diagnose(snapshot(usage(), **changes)), expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "no_traffic under a quota (configured for clients: 3 rules)."),
        ({"limits": NO_RULES}, "no_quota until there is one."),
        (
            kafka(error="cannot reach a:1"),
            (
                "limits_unreachable be reached: cannot reach a:1\n"
                "nothing_measured no quota is configured, or no client has sent requests"
            ),
        ),
        ({"nodes": node(stale_entities={QuotaType.PRODUCE: 3})}, "only_stale_beans All 3 quota beans"),
        ({"sources": (QUIET,)}, "no_traffic"),
        (
            {"sources": (QUIET,), "nodes": node(coverage=Coverage())},
            (
                "no_client_shown No client is shown (configured for clients: 3 rules): either none has sent requests, "
                "or agents leave clients out ('b2' (strimzi)).\n"
                "source_without_entities Source 'b2' (strimzi) reports no client"
            ),
        ),
        ({"nodes": node(coverage=None)}, "no_client_shown"),
        (
            {"nodes": node(coverage=Coverage(unplaced=ODD))},
            (
                "series_unplaced Source 'broker-1' (jolokia): 2 lines are named like quota metrics, but cannot be "
                'read, such as kafka_x{env="a"} (its labels are env, type; expected are user, client_id). Clients '
                "in them are not shown."
            ),
        ),
        ({"nodes": node(coverage=replace(COMPLETE, unplaced=ODD))}, "series_unplaced"),
        (
            {"nodes": node(delay_queue_size=WAITING, coverage=Coverage())},
            (
                "clients_not_shown Clients are throttled on node 1 now: produce 10, fetch 1 connections wait in its "
                "delay queues. But source 'broker-1' (jolokia) shows no client: its policy leaves them out."
            ),
        ),
        ({"nodes": node(delay_queue_size=WAITING)}, "clients_not_shown"),
        ({"nodes": node(delay_queue_size={QuotaType.FETCH: 0.0}, coverage=Coverage())}, "no_client_shown"),
        (
            {"nodes": node(numbers={catalog.REQUEST_THROTTLED_SECONDS: {("Produce",): 3.0, ("Fetch",): 0.0}})},
            "clients_were_throttled although node 1 throttled some since it was started (Produce 3.00 s)",
        ),
        (
            {"nodes": node(numbers={catalog.THROTTLING_ERRORS: {("CreateTopics",): 2.0}})},
            "clients_were_throttled (CreateTopics refused 2 times)",
        ),
        (
            {"nodes": node(foreign_labels=("tenant", "l\nm"), overruled=True), "limits": None},
            "callback_suspected Quota metrics of node 1 have labels that Kafka's own quotas do not have (tenant, l m)",
        ),
        ({"sources": (QUIET,), "limits": NO_RULES}, "no_quota"),
        (
            {
                "nodes": node(
                    delay_queue_size=WAITING,
                    coverage=Coverage(kinds={QuotaType.REQUEST: frozenset({EntityKind.PAIR})}),
                ),
            },
            "clients_not_shown shows no client of these quotas: its policy",
        ),
        ({"sources": (replace(QUIET, up=False, error="gone"),), "nodes": ()}, "source_unreadable"),
        ({"sources": (health(), replace(QUIET, up=False))}, "source_unreadable\nno_traffic"),
        ({"limits": limits(rules={}, nodes={}), "nodes": (TAGGED,)}, "no_traffic under a quota.\ncallback_decides"),
        ({"limits": limits(nodes={}), "columns": TENANTS, "nodes": (TAGGED,)}, "callback_decides"),
        (
            {"left_out": (usage(), usage(user="b")), "folds": Folds(excluded=1, idle=1)},
            "entities_left_out All 2 quota entities are left out of the metrics: 1 by name, 1 as idle.",
        ),
    ]
)  # fmt: skip
def test_why_no_entity_is_shown(changes: dict[str, Any], expected: str) -> None:
    """Each reason for an empty page is a finding of its own."""
    check(diagnose(snapshot(**changes)), expected)


def test_recorded_nodes(combined_without_quotas: Snapshot, split_removed: Snapshot, split_throttled: Snapshot) -> None:
    """Real nodes have these findings: no rule yet, all rules removed, all well."""
    assert codes(diagnose(combined_without_quotas)) == ["no_quota"]
    assert codes(diagnose(split_removed)) == ["no_quota"]
    assert diagnose(split_throttled) == []
    assert diagnose(replace(split_throttled, columns=Columns.of())) != []


WHOLE = table("combined/throttled.jolokia2.json")
NARROW = [
    (column, value)
    for column, value in pairs(WHOLE)
    if (column.bean.get("type"), column.attribute) != ("Fetch", "queue-size")
]
NARROW_TABLE = BeanTable(
    node_id="1",
    layout=BeanLayout(tuple(column for column, _ in NARROW)),
    values=array("d", [value for _, value in NARROW]),
)


def agent(name: str | BeanTable | None, **fields: Any) -> list[SourceRead]:
    answer = table(name) if isinstance(name, str) else name
    return [SourceRead(health=health("a", **fields), table=answer)]


@pytest.mark.parametrize(
    ("reads", "configured", "expected"),
    [
        ([], None, "no_source"),
        (agent(WHOLE), None, "source_read Source 'a': node 1 speaks jolokia, 12 values in 0.250 s."),
        (agent(None, up=False, error="no way"), None, "source_unreadable no way"),
        (agent(None, stand_by_of="1"), None, "source_stands_by Source 'a' stands by for node 1,"),
        (agent(WHOLE, dialect="kafka_2_0_0"), None, "source_read"),  # of rules from two places
        (
            agent(NARROW_TABLE, dialect="confluent"),
            None,
            "source_read\nsource_without_queues no delay queue of fetch, which",
        ),
        (agent(NARROW_TABLE), None, "source_read\nsource_without_queues no delay queue of fetch, which"),
        (agent(replace(WHOLE, remark="move")), None, "source_read\nsource_incomplete"),
        (agent("dialects/jolokia2.json"), None, "source_read"),
        (agent("dialects/jmx_default.txt", dialect="jmx_default"), None, "source_read"),
        (agent("dialects/strimzi.txt", dialect="strimzi"), None, "source_read"),
        (agent("rules/throttled.txt", dialect="quotascope_rules"), None, "source_read"),
        (
            agent("dialects/confluent.txt", dialect="confluent"),
            NO_RULES,
            "source_read\ndialect_gaps no controller mutation quotas, delay queues",
        ),
        (
            agent("dialects/confluent.txt", dialect="confluent"),
            limits(rules=MUTATIONS),
            "source_read\ndialect_gaps_matter though 1 controller mutation quotas",
        ),
        (
            agent("dialects/kafka_2_0_0.txt", dialect="kafka_2_0_0"),
            limits(rules=MUTATIONS),
            "source_read\ndialect_gaps no delay queues",
        ),
    ]
)  # fmt: skip
def test_what_an_agent_leaves_out(reads: list[SourceRead], configured: Limits | None, expected: str) -> None:
    """
    The recorded answer and the dialect decide.

    A gap matters when a quota is configured that the dialect cannot show.
    """
    check(agent_findings(reads, snapshot(usage(), limits=configured)), expected)


PRODUCE = {QuotaType.PRODUCE: QuotaRules({ALICE: 1000.0})}
DEFAULTS = {QuotaEntity(DEFAULT): 5.0, QuotaEntity(DEFAULT, DEFAULT): 7.0}
USED = limits(rules=PRODUCE, connection_limits={})
NONE = limits(rules={}, connection_limits={})
OVERRULED = limits(rules={QuotaType.PRODUCE: QuotaRules(DEFAULTS)}, connection_limits={})
MANY = limits(rules={QuotaType.FETCH: QuotaRules({QuotaEntity(f"u{number}"): 1.0 for number in range(5)})})
"""Of so many unused limits a few are named."""
OWN_RULES = "rules_decide"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            snapshot(usage(configured=USED, limit=1000.0), limits=USED),
            f"quotas_measured 1 entities are measured; limits: 1 of producer_byte_rate.\n{OWN_RULES}",
        ),
        (
            snapshot(usage(configured=limits())),
            (
                "quotas_measured 2 of producer_byte_rate, 1 of request_percentage, 1 of connection_creation_rate.\n"
                f"{OWN_RULES}\nlimits_unused 3 of 4 limits now: producer_byte_rate of 6 user <default>"
            ),
        ),
        (snapshot(usage(), limits=MANY), f"quotas_measured\n{OWN_RULES}\nlimits_unused ; …."),
        (snapshot(usage(), limits=None), "quotas_measured 1 entities are measured; the limits are unknown."),
        (snapshot(usage(), limits=NONE), f"quotas_measured no limit is configured.\n{OWN_RULES}"),
        (snapshot(limits=NONE), f"no_quota\n{OWN_RULES}"),
        (snapshot(usage(), limits=replace(CUSTOM, rules={}, connection_limits={})), "callback_decides"),
        (
            snapshot(limits=OVERRULED),
            (
                f"no_traffic\n{OWN_RULES}\nlimits_overruled 1 of 2 limits have no effect on clients that send a "
                "client-id: producer_byte_rate of 6 user <default>, overruled by 5 <default> / <default>."
            ),
        ),
        (snapshot(sources=(health(up=False),)), ""),
    ]
)  # fmt: skip
def test_whether_quotas_are_used(state: Snapshot, expected: str) -> None:
    """The findings count entities and limits that are in order; limits without effect are named."""
    check(quota_findings(state), expected)


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        (
            {"proxy": 9e7, "bob": 1e6, "carol": 1e6},
            ["User proxy has 98% of the measured traffic of 3 users: a proxy, or clients that do not log in."],
        ),
        ({"proxy": 9e7, "bob": 1e6}, []),
        ({"proxy": 9e7, "bob": 1e6, "idle": 0.0}, []),
        ({"proxy": 9e6, "bob": 1e5, "carol": 1e5}, []),
        ({"alice": 4e7, "bob": 3e7, "carol": 3e7}, []),
        ({"": 9e7, "bob": 1e6, "carol": 1e6}, []),
        ({"": 1e6, "proxy": 9e7, "bob": 1e6}, []),
        (
            {"a\nb": 9e7, "bob": 1e6, "carol": 1e6},
            ["User a b has 98% of the measured traffic of 3 users: a proxy, or clients that do not log in."],
        ),
    ]
)  # fmt: skip
def test_a_user_with_most_of_the_traffic_is_named(traffic: dict[str, float], expected: list[str]) -> None:
    """
    A user with most of the traffic is named, if there is much of it, of three users or more.

    Half of it is fetched, and request time is no traffic.
    """
    halves = [
        usage(kind, user, usage=bytes_a_second / 2)
        for user, bytes_a_second in traffic.items()
        for kind in (QuotaType.PRODUCE, QuotaType.FETCH)
    ]
    threads = usage(QuotaType.REQUEST, "busy", usage=9e9)
    all_findings = quota_findings(snapshot(*halves, threads))
    assert [finding.text for finding in all_findings if finding.code == "one_user_has_traffic"] == expected


def test_the_worst_counts() -> None:
    """The severity of findings is that of the worst one, and fine without any."""
    entries = Catalog.DIALECT_GAPS, Catalog.CHECK_FAILED, Catalog.NO_QUOTA
    findings_of_entries = [replace(Catalog.RULES_DECIDE.found(), severity=entry.severity) for entry in entries]
    assert worst(findings_of_entries) is FindingSeverity.ERROR
    assert worst(findings_of_entries[:1]) is FindingSeverity.NOTE
    assert worst([]) is FindingSeverity.OK


@pytest.mark.parametrize("entry", list(Catalog))
def test_every_entry_can_be_shown_and_helps(entry: Catalog) -> None:
    """Each finding of the catalog is shown with hostile evidence, and has advice or its reason in the text."""
    templates = f"{entry.text}{entry.advice}"
    parsed = [part for part in Formatter().parse(templates) if part[1]]
    evidence: dict[str, object] = {str(name): 1.0 if spec else "{x}" for _, name, spec, _ in parsed}
    subject = evidence.pop("subject", "")
    finding = entry.found(subject, **{"check": "any", **evidence})  # type: ignore[arg-type]
    assert finding.check
    words = f"{finding.text}{finding.advice}"
    assert words.count("{x}") == sum(not spec for _, _, spec, _ in parsed)
    if entry.severity in {FindingSeverity.WARNING, FindingSeverity.ERROR}:
        assert entry.advice or {"error", "reason"} & evidence.keys()
