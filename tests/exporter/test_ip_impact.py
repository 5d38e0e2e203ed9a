from __future__ import annotations

from math import inf

from quotascope.exporter.ip_impact import IpImpact, connection_rules, ip_impacts
from quotascope.exporter.snapshot import ConnectionUsage, LimitedRate, NodeUsage
from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import IpEntity, QuotaSet

KEY = "connection_creation_rate"
OLD = QuotaSet(
    {IpEntity(DEFAULT): {KEY: 10.0}, QuotaEntity("a"): {"request_percentage": 1.0}}
)


def node(broker: str, rate: float | None) -> NodeUsage:
    """A broker that measures two addresses."""
    ips = {"10.0.0.1": LimitedRate(rate=rate), "10.0.0.2": LimitedRate(rate=1.0)}
    return NodeUsage(broker=broker, connections=ConnectionUsage(ips=ips))


def test_only_addresses_are_rules_of_connections() -> None:
    """The default one has a name of its own."""
    assert connection_rules(OLD) == {"<default>": 10.0}


def test_addresses_whose_limit_changes_are_affected() -> None:
    """With the greatest rate of all brokers."""
    new = QuotaSet({**OLD, IpEntity("10.0.0.1"): {KEY: 4.0}})
    (found,) = ip_impacts(OLD, new, [node("1", 2.0), node("2", 8.0)])
    assert found == IpImpact(ip="10.0.0.1", usage=8.0, before=10.0, after=4.0)
    assert found.utilization_after == 2.0


def test_no_rate_and_no_limit_are_no_utilisation() -> None:
    """The fullest come first all the same."""
    new = QuotaSet({IpEntity("10.0.0.1"): {KEY: 4.0}})
    found = ip_impacts(OLD, new, [node("1", None)])
    assert [(each.ip, each.after, each.utilization_after) for each in found] == [
        ("10.0.0.1", 4.0, None),
        ("10.0.0.2", inf, None),
    ]


def test_a_rule_for_the_name_of_a_host_makes_limits_unknown() -> None:
    """Only brokers know which address the host has: it may be any without a rule of its own."""
    new = QuotaSet({**OLD, IpEntity("a.example"): {KEY: 4.0}})
    found = {each.ip: each.after for each in ip_impacts(OLD, new, [node("1", 1.0)])}
    assert found
    assert set(found.values()) == {None}
