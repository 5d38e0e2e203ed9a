"""What snapshots and reads of agents lead to, by the entries of the catalog."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import replace
from math import inf
from string import Formatter
from typing import Any

import pytest
from tests.exporter.examples import ALICE, NOW, health, limits, snapshot, usage
from tests.exporter.recorded import pairs, table

from quotascope.exporter.diagnosis import Catalog, Finding, FindingSeverity, diagnose
from quotascope.exporter.diagnosis.catalog import worst
from quotascope.exporter.diagnosis.findings import agent_findings, quota_findings
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import BeanLayout, BeanTable
from quotascope.exporter.snapshot import (
    Callbacks,
    Columns,
    DiscoveryHealth,
    Folds,
    LimitsHealth,
    NodeLoad,
    NodeUsage,
    ReloadHealth,
    Snapshot,
    SourceRead,
)
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType

RULE = QuotaRules({ALICE: 1.0})
MUTATIONS = {QuotaType.CONTROLLER_MUTATION: RULE}
NO_RULES = limits(rules={})
QUIET = health("b2", dialect="strimzi", hint="widen the allowlist")
CUSTOM = limits(nodes={"1": NodeSettings(quota_callback_class="org.acme.Quotas")})
PLUGIN = limits(nodes={"1": NodeSettings(quota_callback_class="io.strimzi.kafka.quotas.StaticQuotaCallback")})
STATIC = {QuotaType.PRODUCE: 50_000.0, QuotaType.FETCH: inf, QuotaType.REQUEST: 200.0}
BUSY = Columns.of(
    usage(QuotaType.REQUEST, user, client_id, usage=threads, broker=broker)
    for user, client_id, threads, broker in (
        ("alice", "", 0.5, "1"),
        ("bob", "l\nm", 6.5, "1"),
        ("carol", "", 7.5, "2"),
    )
)
TAGGED = NodeUsage(broker="2", quota_callback=True)
TENANTS = Columns.of([usage(QuotaType.FETCH, broker="2", user="", client_id="", tags=())])
"""Entities of a callback, which none of Kafka's own quotas measures."""


def codes(findings: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def check(findings: Iterable[Finding], expected: str) -> None:
    """Compare with lines of a code and the evidence that its text has, each on one line."""
    found = list(findings)
    lines = [line.split(" ", 1) for line in expected.splitlines()]
    assert codes(found) == [code for code, *_ in lines]
    for finding, (_, *evidence) in zip(found, lines, strict=True):
        assert "\n" not in finding.text
        for text in evidence:
            assert text in finding.text


def node(**given: Any) -> tuple[NodeUsage, ...]:
    return (NodeUsage(broker="1", **given),)


def reloaded(**given: Any) -> dict[str, Any]:
    return {"reload": ReloadHealth(succeeded_at=NOW, **given)}


def kafka(**given: Any) -> dict[str, Any]:
    return {"limits": None, "limits_health": LimitsHealth(**given)}


CROWDED = Folds(crowded={QuotaType.PRODUCE: 17}, max_entities=10)
CROWDED_CALLBACK = Callbacks(crowded={QuotaType.FETCH: 12})
OLD_LIMITS = LimitsHealth(read_at=NOW - 90, error="timeout")
LATE = health("b2", late=True, read_at=NOW - 7)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"sources": ()}, "no_source"),
        ({"sources": (), "discoveries": (DiscoveryHealth(name="kafka", error="no"),)}, "no_source_found\ndiscovery_failed Discovery (kafka): no"),
        ({"sources": (health(up=False, error="refused"),)}, "source_unreadable Source 'broker-1' (jolokia) cannot be read: refused"),
        ({"sources": (LATE,)}, "source_late Source 'b2' (jolokia) has not answered yet: its values are 7 s old."),
        ({"sources": (health("b2", remark="move"),)}, "source_incomplete Source 'b2' (jolokia) gives less"),
        ({"sources": (QUIET,)}, ""),
        ({"restarts": {"discovery": 0, "limits": 1}}, "task_restarted task 'limits' failed and was restarted once since"),
        ({"restarts": {"samples": 3}}, "task_restarted restarted 3 times since"),
        (kafka(error="needs DESCRIBE", denied=True), "limits_denied may not be read: needs DESCRIBE"),
        (kafka(configured=False), "no_admin_api"),
        ({"limits_health": OLD_LIMITS}, "limits_unreachable timeout (the limits shown are 90 s old)"),
        ({"limits": limits(missing={"the leader": "needs it"})}, "limits_incomplete Unknown: the leader: needs it"),
        ({"limits": limits(rules=MUTATIONS, active_controller="100")}, "controller_not_read Node 100,"),
        ({"limits": limits(rules=MUTATIONS, active_controller="1")}, ""),
        ({"limits": limits(rules=MUTATIONS, active_controller=None)}, ""),
        ({"limits": limits(active_controller="100")}, ""),
        ({"limits": CUSTOM}, "callback_decides Node 1 leaves quotas to org.acme.Quotas:"),
        ({"limits": NO_RULES, "nodes": (TAGGED,)}, "callback_decides Node 2 leaves quotas to a custom callback:"),
        ({"limits": PLUGIN, "nodes": node(static_limits=STATIC, throttle_factor=1.0)}, "static_limits Node 1 leaves quotas to Strimzi's quotas plugin, and the configured rules do nothing: its clients share 50.0 kB/s of produce, 2.00 thr of request ("),
        ({"limits": PLUGIN, "nodes": node(static_limits={QuotaType.FETCH: inf})}, "static_limits share no limit ("),
        ({"nodes": node(throttle_factor=0.0)}, "storage_throttled leaves 0% of the produce limit on node 1"),
        ({"callbacks": Callbacks(left_out=("k", "l\nm"))}, "callback_tags_left_out not shown: k, l m."),
        ({"nodes": node(utilization_disagreements=2)}, "utilization_differs Node 1 reports another utilization (quota-utilization) for 2 entities"),
        ({"nodes": node(utilization_disagreements=0)}, ""),
        ({"nodes": node(load=NodeLoad(pools_idle={"broker": 0.04, "controller": 1.0})), "shown": BUSY}, 'node_saturated node 1 were idle for 4% of the last minute, so that all requests wait. Most request time: bob / "l\\nm" 6.50 thr, user alice 0.50 thr.'),
        ({"nodes": node(load=NodeLoad(handlers_idle=0.04))}, "node_saturated idle for 4% of the last minute, so that all requests wait. Most request time: unknown, since no request quota lets Kafka measure it."),
        ({"nodes": node(load=NodeLoad(handlers_idle=0.1))}, ""),
        ({"nodes": node(load=NodeLoad(handlers_idle=0.04, handlers_idle_seconds=14.9))}, ""),
        ({"nodes": node(load=NodeLoad(handlers_idle=0.04, handlers_idle_seconds=15.0))}, "node_saturated idle for 4%"),
        ({"folds": CROWDED}, "entities_folded 17 of produce. The 10 most urgent ones are shown, the others together as __overflow__."),
        ({"folds": Folds(max_entities=10), "callbacks": CROWDED_CALLBACK}, "callback_entities_folded 12 of fetch. The 10 most urgent ones"),
        (reloaded(error="q.yaml: line 3"), "reload_failed the previous one stays in force: q.yaml: line 3"),
        (reloaded(needs_restart=("server.port",)), "restart_needed only after a restart: server.port."),
    ]
)  # fmt: skip
def test_problems_of_a_snapshot_with_an_entity(changes: dict[str, Any], expected: str) -> None:
    """Only those, with the evidence in the text."""
    check(diagnose(snapshot(usage(), **changes)), expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "no_traffic under a quota (configured for clients: 3 rules)."),
        ({"limits": NO_RULES}, "no_quota until there is one."),
        (kafka(error="cannot reach a:1"), "limits_unreachable be reached: cannot reach a:1\nno_traffic under a quota."),
        ({"nodes": node(stale_entities={QuotaType.PRODUCE: 3})}, "only_stale_beans All 3 quota beans"),
        ({"sources": (QUIET,)}, "no_traffic\nsource_without_entities Source 'b2' (strimzi) reports no client"),
        ({"sources": (QUIET,), "limits": NO_RULES}, "no_quota"),
        ({"sources": (health(), replace(QUIET, up=False))}, "source_unreadable\nno_traffic"),
        ({"limits": NO_RULES, "nodes": (TAGGED,)}, "no_traffic under a quota.\ncallback_decides"),
        ({"shown": TENANTS, "nodes": (TAGGED,)}, "callback_decides"),
        ({"left_out": (usage(), usage(user="b")), "folds": Folds(excluded=1, idle=1)}, "entities_left_out All 2 quota entities are left out of the metrics: 1 by name, 1 as idle."),
    ]
)  # fmt: skip
def test_why_no_entity_is_shown(changes: dict[str, Any], expected: str) -> None:
    """Each reason for an empty page is another finding."""
    check(diagnose(snapshot(**changes)), expected)


def test_recorded_nodes(combined_without_quotas: Snapshot, split_removed: Snapshot, split_throttled: Snapshot) -> None:
    """What real nodes lead to: no rule yet, all rules removed, all well."""
    assert codes(diagnose(combined_without_quotas)) == ["no_quota"]
    assert codes(diagnose(split_removed)) == ["no_quota"]
    assert diagnose(split_throttled) == []
    assert diagnose(replace(split_throttled, shown=Columns.of())) != []


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


def agent(name: str | BeanTable | None, **given: Any) -> list[SourceRead]:
    answer = table(name) if isinstance(name, str) else name
    return [SourceRead(health=health("a", **given), table=answer)]


@pytest.mark.parametrize(
    ("reads", "known", "expected"),
    [
        ([], None, "no_source"),
        (agent(WHOLE), None, "source_read Source 'a': node 1 speaks jolokia, 12 values in 0.250 s."),
        (agent(None, up=False, error="no way"), None, "source_unreadable no way"),
        (agent(None, stand_by_of="1"), None, "source_stands_by Source 'a' stands by for node 1,"),
        (agent(NARROW_TABLE), None, "source_read\nsource_without_queues no delay queue of fetch, which"),
        (agent(replace(WHOLE, remark="move")), None, "source_read\nsource_incomplete"),
        (agent("dialects/jolokia2.json"), None, "source_read"),
        (agent("dialects/jmx_default.txt", dialect="jmx_default"), None, "source_read"),
        (agent("dialects/strimzi.txt", dialect="strimzi"), None, "source_read"),
        (agent("rules/throttled.txt", dialect="quotascope_rules"), None, "source_read"),
        (agent("dialects/confluent.txt", dialect="confluent"), NO_RULES, "source_read\ndialect_gaps no controller mutation quotas, delay queues"),
        (agent("dialects/confluent.txt", dialect="confluent"), limits(rules=MUTATIONS), "source_read\ndialect_gaps_matter though 1 controller mutation quotas"),
        (agent("dialects/kafka_2_0_0.txt", dialect="kafka_2_0_0"), limits(rules=MUTATIONS), "source_read\ndialect_gaps no delay queues"),
    ]
)  # fmt: skip
def test_what_an_agent_leaves_out(reads: list[SourceRead], known: Limits | None, expected: str) -> None:
    """By its recorded answer and its dialect; a gap matters when a quota is configured that the dialect cannot show."""
    check(agent_findings(reads, known), expected)


PRODUCE = {QuotaType.PRODUCE: QuotaRules({ALICE: 1000.0})}
DEFAULTS = {QuotaEntity(DEFAULT): 5.0, QuotaEntity(DEFAULT, DEFAULT): 7.0}
USED = limits(rules=PRODUCE, connection_limits={})
NONE = limits(rules={}, connection_limits={})
OVERRULED = limits(rules={QuotaType.PRODUCE: QuotaRules(DEFAULTS)}, connection_limits={})
MANY = limits(rules={QuotaType.FETCH: QuotaRules({QuotaEntity(f"u{number}"): 1.0 for number in range(5)})})
"""Of so many unused limits a few are named."""
OWN_RULES = "rules_decide"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (snapshot(usage(of=USED, limit=1000.0), limits=USED), f"quotas_measured 1 entities are measured; limits: 1 of producer_byte_rate.\n{OWN_RULES}"),
        (snapshot(usage(of=limits())), f"quotas_measured 2 of producer_byte_rate, 1 of request_percentage, 1 of connection_creation_rate.\n{OWN_RULES}\nlimits_unused 3 of 4 limits now: producer_byte_rate of 6 user <default>"),
        (snapshot(usage(), limits=MANY), f"quotas_measured\n{OWN_RULES}\nlimits_unused ; …."),
        (snapshot(usage(), limits=None), "quotas_measured 1 entities are measured; the limits are unknown."),
        (snapshot(usage(), limits=NONE), f"quotas_measured no limit is configured.\n{OWN_RULES}"),
        (snapshot(limits=NONE), f"no_quota\n{OWN_RULES}"),
        (snapshot(usage(), limits=replace(CUSTOM, rules={}, connection_limits={})), "callback_decides"),
        (snapshot(limits=OVERRULED), f"no_traffic\n{OWN_RULES}\nlimits_overruled 1 of 2 limits have no effect on clients that send a client-id: producer_byte_rate of 6 user <default>, overruled by 5 <default> / <default>."),
        (snapshot(sources=(health(up=False),)), ""),
    ]
)  # fmt: skip
def test_whether_quotas_are_used(shown: Snapshot, expected: str) -> None:
    """What is in order counts entities and limits; limits without effect are named."""
    check(quota_findings(shown), expected)


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        ({"proxy": 9e7, "bob": 1e6, "carol": 1e6}, ["User proxy has 98% of the measured traffic of 3 users: a proxy, or clients that do not log in."]),
        ({"proxy": 9e7, "bob": 1e6}, []),
        ({"proxy": 9e7, "bob": 1e6, "idle": 0.0}, []),
        ({"proxy": 9e6, "bob": 1e5, "carol": 1e5}, []),
        ({"alice": 4e7, "bob": 3e7, "carol": 3e7}, []),
        ({"": 9e7, "bob": 1e6, "carol": 1e6}, []),
        ({"": 1e6, "proxy": 9e7, "bob": 1e6}, []),
        ({"a\nb": 9e7, "bob": 1e6, "carol": 1e6}, ["User a b has 98% of the measured traffic of 3 users: a proxy, or clients that do not log in."]),
    ]
)  # fmt: skip
def test_a_user_with_most_of_the_traffic_is_named(traffic: dict[str, float], expected: list[str]) -> None:
    """Where there is much traffic, and three users or more have some; half of it is fetched, and request time is no traffic."""
    halves = [
        usage(kind, user, usage=bytes_a_second / 2)
        for user, bytes_a_second in traffic.items()
        for kind in (QuotaType.PRODUCE, QuotaType.FETCH)
    ]
    threads = usage(QuotaType.REQUEST, "busy", usage=9e9)
    found = quota_findings(snapshot(*halves, threads))
    assert [each.text for each in found if each.code == "one_user_has_traffic"] == expected


def test_the_worst_counts() -> None:
    """One error makes the whole an error; nothing at all is fine."""
    entries = Catalog.DIALECT_GAPS, Catalog.CHECK_FAILED, Catalog.NO_QUOTA
    found = [replace(Catalog.RULES_DECIDE.found(), severity=entry.severity) for entry in entries]
    assert worst(found) is FindingSeverity.ERROR
    assert worst(found[:1]) is FindingSeverity.NOTE
    assert worst([]) is FindingSeverity.OK


@pytest.mark.parametrize("entry", list(Catalog))
def test_every_entry_can_be_shown_and_helps(entry: Catalog) -> None:
    """With all its evidence, also when that is hostile; a problem without advice has its reason in the text."""
    templates = f"{entry.text}{entry.advice}"
    parsed = [part for part in Formatter().parse(templates) if part[1]]
    evidence: dict[str, object] = {str(name): 1.0 if spec else "{x}" for _, name, spec, _ in parsed}
    subject = evidence.pop("subject", "")
    found = entry.found(subject, **{"check": "any", **evidence})  # type: ignore[arg-type]
    assert found.check
    shown = f"{found.text}{found.advice}"
    assert shown.count("{x}") == sum(not spec for _, _, spec, _ in parsed)
    if entry.severity in {FindingSeverity.WARNING, FindingSeverity.ERROR}:
        assert entry.advice or {"error", "reason"} & evidence.keys()
