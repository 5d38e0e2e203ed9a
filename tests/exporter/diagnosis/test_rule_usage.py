from __future__ import annotations

from tests.exporter.examples import limits, snapshot, usage

from quotascope.exporter.diagnosis.rule_usage import IpUsage, RuleUsage, rule_usage
from quotascope.exporter.snapshot import ConnectionUsage, LimitedRate, NodeUsage
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType
from quotascope.quotas import Entity, IpEntity

LIMITS = limits()


def by_rule(rules: list[RuleUsage]) -> dict[tuple[Entity, str], RuleUsage]:
    """The rules by entity and key."""
    return {(rule.entity, rule.key): rule for rule in rules}


def node(broker: str, **ips: float | None) -> NodeUsage:
    """New connections of addresses, named as in Python: `_127_0_0_1`."""
    rates = {name[1:].replace("_", "."): LimitedRate(rate=rate) for name, rate in ips.items()}
    return NodeUsage(broker=broker, connections=ConnectionUsage(ips=rates))


def test_every_rule_is_there_with_whom_it_hits() -> None:
    """Used or not; the fullest of its hits first, whatever broker it is on."""
    alice = usage(of=LIMITS, usage=900.0, limit=1000.0)
    elsewhere = usage(of=LIMITS, usage=990.0, limit=1000.0, broker="2")
    bob = usage(user="bob", of=LIMITS, usage=600.0, limit=500.0)
    rules = by_rule(rule_usage(LIMITS, snapshot(alice, elsewhere, bob)))
    assert set(rules) == {
        (QuotaEntity("alice"), "producer_byte_rate"),
        (QuotaEntity(DEFAULT), "producer_byte_rate"),
        (QuotaEntity("alice", "app"), "request_percentage"),
        (IpEntity(DEFAULT), "connection_creation_rate"),
    }
    own = rules[QuotaEntity("alice"), "producer_byte_rate"]
    assert own.hits == (elsewhere, alice)
    assert (own.value, own.fullest) == (1000.0, 0.99)
    assert rules[QuotaEntity(DEFAULT), "producer_byte_rate"].fullest == 1.2
    unused = rules[QuotaEntity("alice", "app"), "request_percentage"]
    assert (unused.hits, unused.fullest) == ((), None)


def test_a_limited_entity_without_a_number_is_a_hit_of_unknown_use() -> None:
    """The broker gave NaN, as right after a start."""
    (rule, *_) = rule_usage(LIMITS, snapshot(usage(of=LIMITS, limit=1000.0)))
    assert (len(rule.hits or ()), rule.fullest) == (1, None)


def test_an_address_has_its_own_rule_or_the_default_one() -> None:
    """However the rule spells it, and on each broker for itself."""
    nodes = (node("1", _10_0_0_1=4.0, _10_0_0_2=1.0), node("2", _10_0_0_1=5.0, _10_0_0_3=None))
    known = limits(rules={}, connection_limits={"<default>": 10.0, "10.0.0.1": 5.0, "::1": 3.0})
    rules = {str(rule.entity): rule for rule in rule_usage(known, snapshot(nodes=nodes))}
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
    """A produce rule is not full of requests."""
    requests = usage(QuotaType.REQUEST, of=LIMITS, usage=5.0)
    assert [rule.hits for rule in rule_usage(LIMITS, snapshot(requests))] == [()] * 4


def test_whom_a_rule_hits_may_be_unknown() -> None:
    """Nothing was measured, a callback decides, or only brokers know which address a host has: unknown is not none."""
    hosts = limits(connection_limits={"a.example": 5.0, "10.0.0.1": 5.0})
    hits = {str(rule.entity): rule.hits for rule in rule_usage(hosts, snapshot(usage()))}
    assert hits["ip a.example"] is None
    assert hits["ip 10.0.0.1"] == ()
    assert [rule.hits for rule in rule_usage(LIMITS, None)] == [None] * 4
    callback = snapshot(usage(), nodes=(NodeUsage(broker="1", quota_callback=True),))
    of_clients = rule_usage(LIMITS, callback)[:3]
    assert {rule.hits for rule in of_clients} == {None}


def test_what_overrules_a_rule_is_named() -> None:
    """By the rules alone, no matter who is there."""
    defaults = QuotaEntity(DEFAULT, DEFAULT)
    rules = QuotaRules({QuotaEntity(None, "app"): 5.0, defaults: 7.0})
    known = limits(rules={QuotaType.FETCH: rules}, connection_limits={})
    found = {rule.entity: rule.overruled_by for rule in rule_usage(known, None)}
    assert found == {QuotaEntity(None, "app"): defaults, defaults: None}
