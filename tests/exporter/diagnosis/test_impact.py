from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import usage

from quotascope.exporter.diagnosis import units
from quotascope.exporter.diagnosis.impact import Impact, IpImpact, connection_rules, impacts, ip_impacts, reaching
from quotascope.exporter.snapshot import ConnectionUsage, EntityUsage, LimitedRate, NodeUsage
from quotascope.metrics import DEFAULT, NO_RULE, Level, QuotaEntity, QuotaType
from quotascope.quotas import UNREACHED, IpEntity, QuotaSet, difference, measure_only

PRODUCE, REQUEST = "producer_byte_rate", "request_percentage"
ALICE = QuotaEntity("alice")


def produce(rules: Mapping[QuotaEntity, float]) -> QuotaSet:
    """Produce quotas only."""
    return QuotaSet({entity: {PRODUCE: value} for entity, value in rules.items()})


def names(found: list[Impact]) -> list[tuple[str, str, float | None, float | None, bool]]:
    """Who, the old and the new limit, and whether it is measured from scratch."""
    return [
        (
            each.user,
            each.client_id,
            each.before.bound if each.before else None,
            each.after.bound if each.after else None,
            each.window_restarts,
        )
        for each in found
    ]


def test_a_new_value_affects_those_under_the_rule() -> None:
    """With today's usage held against the new limit, the greatest of all brokers; no other client."""
    old = produce({ALICE: 1000.0, QuotaEntity(DEFAULT): 500.0})
    new = produce({ALICE: 400.0, QuotaEntity(DEFAULT): 500.0})
    measured = [
        usage(usage=100.0),
        usage(usage=800.0, broker="2"),
        usage(user="bob", usage=9.0),
    ]
    found = impacts(old, new, measured)
    assert names(found) == [("alice", "", 1000.0, 400.0, False)]
    assert found[0].utilization_after == 2.0


def test_a_removed_rule_leaves_the_next_one() -> None:
    """Or none at all."""
    old = produce({ALICE: 1000.0, QuotaEntity(DEFAULT): 500.0})
    (found,) = impacts(old, produce({QuotaEntity(DEFAULT): 500.0}), [usage(usage=1.0)])
    assert found.after is not None
    assert found.after.level is Level.DEFAULT_USER
    (found,) = impacts(produce({ALICE: 1000.0}), QuotaSet(), [usage(usage=1.0)])
    assert (found.after, found.utilization_after) == (NO_RULE, None)


def test_a_pair_that_gets_its_own_rule_is_begins_an_empty_window() -> None:
    """It is known from another quota; its share of the user's usage is not."""
    old = produce({ALICE: 1000.0})
    new = produce({ALICE: 1000.0, QuotaEntity("alice", "app"): 300.0})
    known = usage(QuotaType.REQUEST, client_id="app", usage=0.1)
    found = impacts(old, new, [usage(usage=900.0), known])
    assert names(found) == [("alice", "app", 1000.0, 300.0, True)]
    assert found[0].usage is None


def test_a_sum_is_listed_once() -> None:
    """As the user, not again as each of the user's clients; other users are listed as well."""
    known = usage(QuotaType.REQUEST, client_id="app", usage=0.1)
    measured = [usage(usage=2.0), known, usage(user="bob", usage=1.0)]
    old, new = (produce({ALICE: limit, QuotaEntity("bob"): limit}) for limit in (1000.0, 10.0))
    assert names(impacts(old, new, measured)) == [
        ("alice", "", 1000.0, 10.0, False),
        ("bob", "", 1000.0, 10.0, False),
    ]


def test_the_first_rule_of_a_type_affects_who_is_known_from_others() -> None:
    """No one was measured under this type before."""
    known = usage(QuotaType.REQUEST, user="bob", usage=0.1)
    (found,) = impacts(QuotaSet(), produce({QuotaEntity(DEFAULT): 5.0}), [known])
    assert names([found]) == [("bob", "", None, 5.0, True)]


def test_measured_by_client_and_then_by_user() -> None:
    """A client's share of its users' limits is not; nor is what a user's clients were allowed together."""
    old = produce({QuotaEntity(None, DEFAULT): 1000.0})
    new = produce({QuotaEntity(None, DEFAULT): 1000.0, QuotaEntity(DEFAULT): 10.0})
    user = usage(QuotaType.REQUEST, user="bob", usage=0.1)
    client = usage(user="", client_id="app", usage=50.0)
    assert names(impacts(old, new, [client, user])) == [
        ("bob", "", None, 10.0, True),
        ("", "app", 1000.0, None, True),
    ]
    pair = usage(QuotaType.FETCH, user="bob", client_id="app", usage=1.0)
    assert names(impacts(old, new, [client, user, pair])) == [
        ("bob", "app", 1000.0, 10.0, True),
        ("", "app", 1000.0, None, True),
    ]


def test_request_percentages_are_held_against_threads() -> None:
    """200 percent are two threads."""
    old = QuotaSet({ALICE: {REQUEST: 100.0}})
    new = QuotaSet({ALICE: {REQUEST: 200.0}})
    (found,) = impacts(old, new, [usage(QuotaType.REQUEST, usage=1.0)])
    assert found.utilization_after == 0.5


def test_the_fullest_comes_first() -> None:
    """Who will be throttled is what one wants to know."""
    old = produce({QuotaEntity(DEFAULT): 1000.0})
    new = produce({QuotaEntity(DEFAULT): 500.0})
    measured = [usage(user=name, usage=value) for name, value in (("a", 1.0), ("b", 600.0), ("c", 50.0))]
    assert [each.user for each in impacts(old, new, measured)] == ["b", "c", "a"]


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
    known: list[EntityUsage] = [
        usage(QuotaType.REQUEST, user=user, client_id=client, usage=0.1) for user, client in pairs
    ]
    before, after = (produce(each).tables()[QuotaType.PRODUCE] for each in (old, new))
    changed = {
        pair
        for pair in pairs
        if before.decide(*pair) != after.decide(*pair)
        or (before.metric_tags(*pair) != after.metric_tags(*pair) and before.decide(*pair) != NO_RULE)
    }
    found = impacts(produce(old), produce(new), known)
    assert {(each.user, each.client_id) for each in found} == changed


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
    """1 TB/s, 10,000 threads, 1e9 partitions/s; what a broker measures of all its entities is at most a hundredth of it."""
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


def test_no_rate_and_no_limit_are_no_utilization() -> None:
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
