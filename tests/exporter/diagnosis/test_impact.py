"""The entities that a change of quotas affects, and the entities that each rule applies to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import COMPLETE, health, limits, snapshot, usage
from tests.exporter.nodes import by_ip

from quotascope.exporter.diagnosis import units
from quotascope.exporter.diagnosis.impact import Impact, IpImpact, connection_rules, impacts, ip_impacts, reaching
from quotascope.exporter.diagnosis.rule_usage import IpUsage, RuleUsage, rule_usage
from quotascope.exporter.snapshot import Columns, EntityUsage, NodeUsage, ThrottleCause
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.quotas import UNREACHED, Entity, IpEntity, QuotaSet, difference, measure_only

PRODUCE, REQUEST = "producer_byte_rate", "request_percentage"
ALICE = QuotaEntity("alice")


def produce(rules: Mapping[QuotaEntity, float]) -> QuotaSet:
    return QuotaSet({entity: {PRODUCE: value} for entity, value in rules.items()})


def names(all_impacts: list[Impact]) -> list[tuple[str, str, float | None, float | None, bool]]:
    """Return entity, old and new limit of each impact, and whether it is measured from scratch."""
    bounds = [[rule.bound if rule else None for rule in (impact.old_rule, impact.new_rule)] for impact in all_impacts]
    return [
        (impact.user, impact.client_id, old_bound, new_bound, impact.window_restarts)
        for impact, (old_bound, new_bound) in zip(all_impacts, bounds, strict=True)
    ]


BOB = usage(QuotaType.REQUEST, user="bob", usage=0.1)
APP = usage(user="", client_id="app", usage=50.0)
ALICE_APP = usage(QuotaType.REQUEST, client_id="app", usage=0.1)
FOR_ALL, FOR_CLIENTS = QuotaEntity(DEFAULT), QuotaEntity(None, DEFAULT)


@pytest.mark.parametrize(
    ("kind", "numbers", "held_back"),
    [
        (QuotaType.PRODUCE, {"throttle_time_seconds": 0.5}, True),
        (QuotaType.PRODUCE, {}, False),
        (QuotaType.PRODUCE, {"throttle_time_seconds": None}, True),
        (QuotaType.PRODUCE, {"throttle_time_seconds": None, "usage": 999.0}, False),
        (QuotaType.REQUEST, {"throttle_time_seconds": 0.5, "cause": ThrottleCause.CONTROLLER_MUTATION}, False),
        (QuotaType.REQUEST, {"throttle_time_seconds": 0.5, "cause": ThrottleCause.UNKNOWN}, True),
        (QuotaType.CONTROLLER_MUTATION, {"throttle_time_seconds": None, "tokens": -1.0}, True),
        (QuotaType.CONTROLLER_MUTATION, {"throttle_time_seconds": None, "tokens": 1.0}, False),
    ],
)
def test_a_throttled_client_uses_at_least_what_is_seen(
    kind: QuotaType, numbers: dict[str, Any], *, held_back: bool
) -> None:
    """
    A client that is throttled below its new limit is affected on any broker.

    A controller's delay does not hold its request time back.
    """
    old, new = (QuotaSet({ALICE: {kind.quota_key: bound}}) for bound in (1000.0, 2500.0))
    free = usage(kind, limit=1000.0, usage=900.0, throttle_time_seconds=0.0, tokens=5.0)
    rows = [free, usage(kind, broker="2", limit=1000.0, **{"usage": 1000.0, **numbers})]
    (impact,) = impacts(old, new, rows)
    assert impact.held_back == held_back
    assert (
        [row.held_back for row in Columns.of(rows).usages] == Columns.of(rows).held_back.tolist() == [False, held_back]
    )


def test_no_limit_holds_no_client_back() -> None:
    """Neither an infinite nor an unknown limit holds a client back, whatever is measured."""
    for limit in (None, inf):
        row = usage(limit=limit, usage=5.0, throttle_time_seconds=0.5)
        assert not row.held_back
        assert not Columns.of([row]).held_back.any()


@pytest.mark.parametrize(
    ("old", "new", "measured", "expected"),
    [
        # a new value affects those under the rule, and no other client
        (
            {ALICE: 1000.0, FOR_ALL: 500.0},
            {ALICE: 400.0, FOR_ALL: 500.0},
            [usage(usage=100.0), usage(usage=800.0, broker="2"), usage(user="bob", usage=9.0)],
            [("alice", "", 1000.0, 400.0, False)],
        ),
        # a removed rule leaves the next one, or none at all
        ({ALICE: 1000.0, FOR_ALL: 500.0}, {FOR_ALL: 500.0}, [usage(usage=1.0)], [("alice", "", 1000.0, 500.0, False)]),
        ({ALICE: 1000.0}, {}, [usage(usage=1.0)], [("alice", "", 1000.0, None, True)]),
        # a pair that gets a rule begins an empty window: its share of the user's usage is unknown
        (
            {ALICE: 1000.0},
            {ALICE: 1000.0, QuotaEntity("alice", "app"): 300.0},
            [usage(usage=900.0), ALICE_APP],
            [("alice", "app", 1000.0, 300.0, True)],
        ),
        # also a pair that brokers measure only as a part of its user, but no pair of a user that they do not measure
        (
            {ALICE: 1000.0},
            {ALICE: 1000.0, QuotaEntity("alice", "app"): 300.0, QuotaEntity("zoe", "app"): 300.0},
            [usage(usage=900.0)],
            [("alice", "app", 1000.0, 300.0, True)],
        ),
        # a user without a limit who is measured by pair from now on is still without, unless there is a rule for a part
        # of it
        (
            {ALICE: 1000.0},
            {ALICE: 1000.0, QuotaEntity("alice", "web"): 300.0},
            [usage(user="bob", usage=1.0)],
            [],
        ),
        (
            {ALICE: 1000.0},
            {ALICE: 1000.0, QuotaEntity(DEFAULT, "web"): 300.0},
            [usage(user="bob", usage=1.0)],
            [("bob", "", None, None, True)],
        ),
        # a sum is listed once as the user, not again as each of the user's clients; other users are listed as well
        (
            {ALICE: 1000.0, QuotaEntity("bob"): 1000.0},
            {ALICE: 10.0, QuotaEntity("bob"): 10.0},
            [usage(usage=2.0), ALICE_APP, usage(user="bob", usage=1.0)],
            [("alice", "", 1000.0, 10.0, False), ("bob", "", 1000.0, 10.0, False)],
        ),
        # the first rule of a type affects who is known from others
        ({}, {FOR_ALL: 5.0}, [BOB], [("bob", "", None, 5.0, True)]),
        # by client and then by user: a client's share of its users' limits is unknown, as what its clients were allowed
        (
            {FOR_CLIENTS: 1000.0},
            {FOR_CLIENTS: 1000.0, FOR_ALL: 10.0},
            [APP, BOB],
            [("bob", "", None, 10.0, True), ("", "app", 1000.0, None, True)],
        ),
        (
            {FOR_CLIENTS: 1000.0},
            {FOR_CLIENTS: 1000.0, FOR_ALL: 10.0},
            [APP, BOB, usage(QuotaType.FETCH, user="bob", client_id="app", usage=1.0)],
            [("bob", "app", 1000.0, 10.0, True), ("", "app", 1000.0, None, True)],
        ),
    ],
)
def test_who_is_affected(
    old: dict[QuotaEntity, float],
    new: dict[QuotaEntity, float],
    measured: list[EntityUsage],
    expected: list[tuple[str, str, float | None, float | None, bool]],
) -> None:
    """A client is listed with the old and the new limit, and as new where another entity is measured than before."""
    assert names(impacts(produce(old), produce(new), measured)) == expected


def test_usage_is_held_against_the_new_limit() -> None:
    """The usage is today's, the greatest of all brokers, the fullest first; 200 percent are two threads."""
    old = QuotaSet({ALICE: {PRODUCE: 1000.0, REQUEST: 100.0}})
    new = QuotaSet({ALICE: {PRODUCE: 400.0, REQUEST: 200.0}})
    measured = [usage(QuotaType.REQUEST, usage=1.0), usage(usage=100.0), usage(usage=800.0, broker="2")]
    assert [impact.utilization_after for impact in impacts(old, new, measured)] == [2.0, 0.5]
    (endless,) = impacts(QuotaSet({ALICE: {REQUEST: 100.0}}), QuotaSet({ALICE: {REQUEST: inf}}), measured[:1])
    assert endless.utilization_after is None
    (removed,) = impacts(produce({ALICE: 1000.0}), QuotaSet(), [usage(usage=1.0)])
    assert (removed.new_rule, removed.utilization_after) == (NO_RULE, None)
    pair = produce({ALICE: 1000.0, QuotaEntity("alice", "app"): 300.0})
    (restarted,) = impacts(produce({ALICE: 1000.0}), pair, [usage(usage=900.0), ALICE_APP])
    assert restarted.usage is None
    users = [usage(user=name, usage=value) for name, value in (("a", 1.0), ("b", 600.0), ("c", 50.0))]
    all_impacts = impacts(produce({FOR_ALL: 1000.0}), produce({FOR_ALL: 500.0}), users)
    assert [impact.user for impact in all_impacts] == ["b", "c", "a"]


users = st.sampled_from(["alice", "bob", DEFAULT])
clients = st.sampled_from(["app", "web", DEFAULT])
entities = (
    st.builds(QuotaEntity, users) | st.builds(QuotaEntity, st.none(), clients) | st.builds(QuotaEntity, users, clients)
)
rules = st.dictionaries(entities, st.sampled_from([1.0, 2.0, 3.0]), max_size=4)


@given(rules, rules)
def test_every_known_client_is_reported_if_and_only_if_something_changes(
    old: dict[QuotaEntity, float], new: dict[QuotaEntity, float]
) -> None:
    """A pair that is measured under all its names is missed by nothing that Kafka's precedence decides otherwise."""
    pairs = [(user, client) for user in ("alice", "bob") for client in ("app", "web")]
    measured = [usage(QuotaType.REQUEST, user=user, client_id=client, usage=0.1) for user, client in pairs]
    old_table, new_table = (produce(rules).tables()[QuotaType.PRODUCE] for rules in (old, new))
    changed = {
        pair
        for pair in pairs
        if old_table.decide(*pair) != new_table.decide(*pair)
        or (old_table.metric_tags(*pair) != new_table.metric_tags(*pair) and old_table.decide(*pair) != NO_RULE)
    }
    all_impacts = impacts(produce(old), produce(new), measured)
    assert {(impact.user, impact.client_id) for impact in all_impacts} == changed


@pytest.mark.parametrize(
    ("kind", "used", "reached"),
    [
        (QuotaType.PRODUCE, 1e10, False),
        (QuotaType.PRODUCE, 1.01e10, True),
        (QuotaType.REQUEST, 100.0, False),
        (QuotaType.REQUEST, 101.0, True),
        (QuotaType.CONTROLLER_MUTATION, 1e7, False),
        (QuotaType.CONTROLLER_MUTATION, 1.01e7, True),
    ],
)
def test_a_limit_that_is_meant_to_be_out_of_reach(kind: QuotaType, used: float, *, reached: bool) -> None:
    """
    A limit to measure by affects no client while all usage on a broker is at most a hundredth of it.

    The limits are 1 TB/s, 10,000 threads and 1e9 partitions/s.
    """
    new = measure_only(QuotaSet(), QuotaEntity(DEFAULT), [kind.quota_key])
    measured = [
        usage(kind, user="a", usage=used / 2),
        usage(kind, user="b", usage=used / 2),
        usage(kind, user="b", usage=used / 2, broker="2"),
        usage(kind, user="c", usage=None),
    ]
    reported = reaching(difference(QuotaSet(), new), measured)
    assert [text.partition(" now")[0] for text in reported] == [
        f"{kind.quota_key} {UNREACHED[kind.quota_key]:.0f}: broker 1 measures {units.measured(kind, used)}"
    ] * reached


KEY = "connection_creation_rate"
OLD = QuotaSet({IpEntity(DEFAULT): {KEY: 10.0}, QuotaEntity("a"): {"request_percentage": 1.0}})


def addresses(broker: str, rates: Mapping[str, float | None]) -> NodeUsage:
    return NodeUsage(broker=broker, coverage=COMPLETE, numbers=by_ip(rates))


def node(broker: str, rate: float | None) -> NodeUsage:
    return addresses(broker, {"10.0.0.1": rate, "10.0.0.2": 1.0})


def test_addresses_whose_limit_changes_are_affected() -> None:
    """
    An address has its greatest rate of all brokers.

    Only rules for addresses count, and the default one has its own name.
    """
    assert connection_rules(OLD) == {"<default>": 10.0}
    new = QuotaSet({**OLD, IpEntity("10.0.0.1"): {KEY: 4.0}})
    (impact,) = ip_impacts(OLD, new, [node("1", 2.0), node("2", 8.0)])
    assert impact == IpImpact(ip="10.0.0.1", usage=8.0, old_limit=10.0, new_limit=4.0)
    assert impact.utilization_after == 2.0


def test_no_rate_and_no_limit_are_no_utilization() -> None:
    """Hits without a rate or a limit have no utilization, and the fullest come first all the same."""
    all_impacts = ip_impacts(OLD, QuotaSet({IpEntity("10.0.0.1"): {KEY: 4.0}}), [node("1", None)])
    unknown = [(impact.ip, impact.new_limit, impact.utilization_after) for impact in all_impacts]
    assert unknown == [("10.0.0.1", 4.0, None), ("10.0.0.2", inf, None)]


def test_a_rule_for_the_name_of_a_host_makes_limits_unknown() -> None:
    """A rule for a host's name makes limits of addresses unknown, since only brokers resolve it."""
    new = QuotaSet({**OLD, IpEntity("a.example"): {KEY: 4.0}})
    assert {impact.new_limit for impact in ip_impacts(OLD, new, [node("1", 1.0)])} == {None}


def test_what_uses_a_limit_of_zero_comes_first() -> None:
    """Usage of a limit of zero, which clusters with ZooKeeper store and KRaft keeps, comes first."""
    zero: dict[Entity, dict[str, float]] = {IpEntity(DEFAULT): {KEY: 0.0}}
    idle, bob = "10.0.0.3", QuotaEntity("bob")
    old_rules: dict[Entity, dict[str, float]] = {IpEntity(ip): {KEY: 4.0} for ip in ("10.0.0.1", "10.0.0.2", idle)}
    addressed = [addresses("1", {"10.0.0.1": 3.0, "10.0.0.2": 1.0, idle: 0.0})]
    new_rules: dict[Entity, dict[str, float]] = {**zero, IpEntity("10.0.0.1"): {KEY: 2.0}}
    all_impacts = ip_impacts(QuotaSet({**zero, **old_rules}), QuotaSet(new_rules), addressed)
    assert [(impact.ip, impact.utilization_after) for impact in all_impacts] == [
        ("10.0.0.2", inf),
        ("10.0.0.1", 1.5),
        (idle, None),
    ]
    measured = [usage(user="bob", usage=900.0), usage(usage=1.0), usage(user="carol", usage=0.0)]
    old_quotas = produce({ALICE: 1000.0, bob: 1000.0, QuotaEntity("carol"): 1000.0, FOR_ALL: 0.0})
    clients = impacts(old_quotas, produce({bob: 500.0, FOR_ALL: 0.0}), measured)
    assert [(impact.user, impact.utilization_after) for impact in clients] == [
        ("alice", inf),
        ("bob", 1.8),
        ("carol", None),
    ]
    (rule,) = rule_usage(limits(rules={}, connection_limits={"<default>": 0.0}), snapshot(nodes=(node("1", 0.0),)))
    assert (len(rule.hits or ()), rule.fullest) == (2, inf)


LIMITS = limits()


def by_rule(rules: list[RuleUsage]) -> dict[tuple[Entity, str], RuleUsage]:
    return {(rule.entity, rule.key): rule for rule in rules}


def test_every_rule_is_there_with_whom_it_hits() -> None:
    """Each rule is listed, used or not, with the fullest of its hits first, whatever broker it is on."""
    alice = usage(configured=LIMITS, usage=900.0, limit=1000.0)
    elsewhere = usage(configured=LIMITS, usage=990.0, limit=1000.0, broker="2")
    bob = usage(user="bob", configured=LIMITS, usage=600.0, limit=500.0)
    rules = by_rule(rule_usage(LIMITS, snapshot(alice, elsewhere, bob)))
    assert set(rules) == {
        (QuotaEntity("alice"), "producer_byte_rate"),
        (QuotaEntity(DEFAULT), "producer_byte_rate"),
        (QuotaEntity("alice", "app"), "request_percentage"),
        (IpEntity(DEFAULT), "connection_creation_rate"),
    }
    alices_rule = rules[QuotaEntity("alice"), "producer_byte_rate"]
    assert alices_rule.hits == (elsewhere, alice)
    assert (alices_rule.value, alices_rule.fullest) == (1000.0, 0.99)
    assert rules[QuotaEntity(DEFAULT), "producer_byte_rate"].fullest == 1.2
    unused = rules[QuotaEntity("alice", "app"), "request_percentage"]
    assert (unused.hits, unused.fullest) == ((), None)


def test_a_limited_entity_without_a_number_is_a_hit_of_unknown_use() -> None:
    """The broker gave NaN, as right after a start."""
    (rule, *_) = rule_usage(LIMITS, snapshot(usage(configured=LIMITS, limit=1000.0)))
    assert (len(rule.hits or ()), rule.fullest) == (1, None)


def test_a_request_rule_throttles_no_client_that_a_mutation_quota_throttles() -> None:
    """A client that a mutation quota throttles is not counted for a request rule, though a broker shows both alike."""
    causes = ThrottleCause.OWN, ThrottleCause.UNKNOWN, ThrottleCause.CONTROLLER_MUTATION
    hits = [
        usage(
            QuotaType.REQUEST, client_id="app", configured=LIMITS, broker=cause, throttle_time_seconds=1.0, cause=cause
        )
        for cause in causes
    ]
    rules = by_rule(rule_usage(LIMITS, snapshot(*hits)))
    assert rules[QuotaEntity("alice", "app"), "request_percentage"].throttled == 2


def test_an_address_has_its_own_rule_or_the_default_one() -> None:
    """An address has its own rule, in any spelling, or the default one, on each broker for itself."""
    nodes = (addresses("1", {"10.0.0.1": 4.0, "10.0.0.2": 1.0}), addresses("2", {"10.0.0.1": 5.0, "10.0.0.3": None}))
    configured = limits(rules={}, connection_limits={"<default>": 10.0, "10.0.0.1": 5.0, "::1": 3.0})
    rules = {str(rule.entity): rule for rule in rule_usage(configured, snapshot(nodes=nodes))}
    assert rules["ip 10.0.0.1"].hits == (
        IpUsage(broker="2", ip="10.0.0.1", rate=5.0, limit=5.0),
        IpUsage(broker="1", ip="10.0.0.1", rate=4.0, limit=5.0),
    )
    assert [hit.used for hit in (rules["ip <default>"].hits or ())] == [0.1, None]
    assert rules["ip ::1"].hits == ()
    # without any rule it was measured under one that is gone
    (rule,) = rule_usage(limits(rules={}, connection_limits={"10.0.0.9": 5.0}), snapshot(nodes=nodes))
    assert rule.hits == ()


def test_only_rules_of_its_own_type_are_hit() -> None:
    """A usage of requests hits no produce rule, only rules of its own type."""
    requests = usage(QuotaType.REQUEST, configured=LIMITS, usage=5.0)
    assert [rule.hits for rule in rule_usage(LIMITS, snapshot(requests))] == [()] * 4


def test_whom_a_rule_hits_may_be_unknown() -> None:
    """Hits are unknown, not none, without a measurement, under a callback, and for a rule with a host's name."""
    hosts = limits(connection_limits={"a.example": 5.0, "10.0.0.1": 5.0})
    hits = {str(rule.entity): rule.hits for rule in rule_usage(hosts, snapshot(usage()))}
    assert hits["ip a.example"] is None
    assert hits["ip 10.0.0.1"] == ()
    assert [rule.hits for rule in rule_usage(LIMITS, None)] == [None] * 4
    callback = snapshot(usage(), nodes=(NodeUsage(broker="1", quota_callback=True, overruled=True),))
    of_clients = rule_usage(LIMITS, callback)[:3]
    assert {rule.hits for rule in of_clients} == {None}


def test_no_rule_is_unused_while_a_source_is_down() -> None:
    """No rule counts as unused while a source is down, unless another rule overrules it."""
    defaults = QuotaEntity(DEFAULT, DEFAULT)
    rules = {QuotaType.PRODUCE: QuotaRules({ALICE: 1.0, QuotaEntity("bob"): 2.0, FOR_ALL: 3.0, defaults: 4.0})}
    configured = limits(rules=rules, connection_limits={"10.0.0.1": 5.0, "10.0.0.2": 5.0})
    nodes = (NodeUsage(broker="1", coverage=COMPLETE, numbers=by_ip({"10.0.0.1": 1.0})),)
    sources = (health(), health("broker-2", up=False))
    for down, unused in ((sources, None), (sources[:1], ()), ((replace(sources[1], stand_by_of="1"),), ())):
        all_rules = rule_usage(configured, snapshot(usage(configured=configured), nodes=nodes, sources=down))
        hits = {str(rule.entity): rule.hits for rule in all_rules}
        assert [len(hits[name] or ()) for name in ("user alice", "ip 10.0.0.1")] == [1, 1]
        assert [hits[name] for name in ("user bob", "<default> / <default>", "ip 10.0.0.2")] == [unused] * 3
        assert hits["user <default>"] == ()


def test_what_overrules_a_rule_is_named() -> None:
    """The rules alone decide, whichever clients there are."""
    defaults = QuotaEntity(DEFAULT, DEFAULT)
    rules = QuotaRules({QuotaEntity(None, "app"): 5.0, defaults: 7.0})
    configured = limits(rules={QuotaType.FETCH: rules}, connection_limits={})
    overruled_by = {rule.entity: rule.overruled_by for rule in rule_usage(configured, None)}
    assert overruled_by == {QuotaEntity(None, "app"): defaults, defaults: None}
