"""The sums of teams over nodes and entities, and how much of a broker is promised."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter.examples import COMPLETE, NOW, ScriptedSource, limits, rates, snapshot, team, usage

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import (
    CapacityOrigin,
    Columns,
    EntityUsage,
    NodeUsage,
    Snapshot,
    TeamSums,
    ThrottleCause,
)
from quotascope.exporter.teams import SoldKeeper, TeamAdder
from quotascope.exporter.teams.index import FEW
from quotascope.metrics import catalog
from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas.team_finder import TeamFinder

TEAMS = (
    replace(team("payments", user_pattern="a.*"), budgets={QuotaType.PRODUCE: 100.0}),
    team("etl", client_id="etl"),
    team("nobody", user="nobody"),
)
RULES = limits(nodes={broker: NodeSettings(request_capacity_threads=11.0) for broker in "123"})
NODES = tuple(NodeUsage(broker=broker, coverage=COMPLETE) for broker in "123")


def of(*entities: EntityUsage, adder: TeamAdder | None = None, **changes: Any) -> TeamSums:
    """Return the sums of a snapshot of three brokers."""
    fields: dict[str, Any] = {"limits": RULES, "nodes": NODES}
    return (adder or TeamAdder(TEAMS)).add_up(snapshot(*entities, **{**fields, **changes}))


def named(sums: TeamSums, values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Return the known values by team."""
    return {name: value for name, value in zip(sums.names, values.tolist(), strict=True) if not isnan(value)}


ENTITIES = st.builds(
    usage,
    st.sampled_from(QuotaType),
    st.sampled_from(["", "alice", "adam", "bob"]),
    st.sampled_from(["", "etl", "app"]),
    broker=st.sampled_from("123"),
    configured=st.sampled_from([None, RULES]),
    limit=st.one_of(st.none(), st.integers(0, 9).map(float)),
    usage=st.one_of(st.none(), st.integers(-3, 9).map(float)),
    throttle_time_seconds=st.sampled_from([None, 0.0, 0.5]),
    cause=st.sampled_from([None, ThrottleCause.OWN, ThrottleCause.CONTROLLER_MUTATION]),
)


def place(row: EntityUsage) -> tuple[QuotaType, str, str, str]:
    entity = row.entity
    return entity.quota_type, entity.user, entity.client_id, entity.broker


def stranded(rows: Sequence[EntityUsage], restarted: frozenset[str]) -> float:
    """Return the stranded limits of one quota type on three brokers, without brokers that restarted."""
    amounts = []
    for name in {(row.entity.user, row.entity.client_id) for row in rows} - {("", "")}:
        entities = [row.entity for row in rows if (row.entity.user, row.entity.client_id) == name]
        bounds = {entity.limit for entity in entities}
        if len(bounds) == 1 and None not in bounds and entities[0].quota_type is not QuotaType.CONTROLLER_MUTATION:
            without = {*"123"} - {entity.broker for entity in entities}
            amounts.append(max(filter(None, bounds), default=0.0) * len(without - restarted))
    return sum(amounts) if amounts else nan


def fairness(rows: Sequence[EntityUsage]) -> float:
    """Return Jain's index of the usage of one quota type over three brokers, NaN without any."""
    by_broker = dict.fromkeys("123", 0.0)
    for row in rows:
        if row.usage is None or not (row.entity.user or row.entity.client_id):
            return nan
        if row.entity.quota_type is QuotaType.CONTROLLER_MUTATION:
            return nan
        by_broker[row.entity.broker] += row.usage
    amounts = by_broker.values()
    if not any(amount > 0 for amount in amounts):
        return nan
    return sum(amounts) ** 2 / (3 * sum(amount**2 for amount in amounts))


STATES = st.lists(st.lists(ENTITIES, max_size=15, unique_by=place), min_size=1, max_size=3)


def since(broker: str, hours: float | None) -> NodeUsage:
    """Return a node that was started so many hours ago."""
    return NodeUsage(broker=broker, coverage=COMPLETE, started_at=None if hours is None else NOW - 3_600 * hours)


@given(STATES, st.lists(st.frozensets(st.sampled_from("123")), min_size=3, max_size=3))
@example([[usage(usage=1.0)], [usage(usage=2.0), usage(user="aa", usage=3.0)]], [frozenset()] * 3)
def test_sums_of_teams_are_those_of_their_entities(
    states: Sequence[Sequence[EntityUsage]], restarts: Sequence[frozenset[str]]
) -> None:
    """
    Sums of teams are those of their entities, snapshot after snapshot, whichever nodes restarted.

    Unknown values are left out, and none is counted twice.
    """
    adder, finder = TeamAdder(TEAMS), TeamFinder(TEAMS)
    for rows, restarted in zip(states, restarts, strict=False):
        sums = of(
            *rows, adder=adder, nodes=tuple(since(broker, 0.9 if broker in restarted else 1.1) for broker in "123")
        )
        for kind in QuotaType:
            of_kind = [row for row in rows if row.entity.quota_type is kind]
            for number, name in enumerate(sums.names):
                ours = [row for row in of_kind if finder.label(row.entity.user, row.entity.client_id) == name]
                amounts = [row.usage for row in ours if row.usage is not None]
                expected = sum(amounts) if amounts else nan
                assert sums.usage[kind][number] == pytest.approx(expected, nan_ok=True)
                assert sums.usage_complete[kind][number] == (len(amounts) == len(ours))
                bounds = {(row.entity.user, row.entity.client_id): row.entity.limit for row in ours}
                by_row = [row.entity.limit for row in ours]
                throttled = {
                    (row.entity.user, row.entity.client_id) for row in ours if row.throttled and not row.referring
                }
                known = [row for row in ours if row.throttle_time_seconds is not None]
                assert sums.throttled_complete[kind][number] == (len(known) == len(ours))
                assert sums.throttled[kind][number] == pytest.approx(len(throttled) if known else nan, nan_ok=True)
                if not ours or None in by_row:
                    assert isnan(sums.allowed[kind][number])
                elif all(bounds[row.entity.user, row.entity.client_id] == row.entity.limit for row in ours):
                    count = 1 if kind is QuotaType.CONTROLLER_MUTATION else 3
                    assert sums.allowed[kind][number] == sum(filter(None, bounds.values())) * count
                assert sums.stranded[kind][number] == pytest.approx(stranded(ours, restarted), nan_ok=True)
                assert sums.fairness[kind][number] == pytest.approx(fairness(ours), nan_ok=True)
        names = {(row.entity.user, row.entity.client_id) for row in rows}
        assert sums.entities.sum() == len(names)


def test_what_a_team_uses_and_may_use() -> None:
    """A limit counts on each broker, with or without the client; a budget is one of the whole cluster."""
    sums = of(
        usage(user="alice", broker="1", usage=30.0, limit=20.0, configured=RULES),
        usage(user="alice", broker="2", usage=4.0, limit=20.0, configured=RULES),
        usage(user="bob", broker="1", usage=5.0, limit=7.0, configured=RULES),
        usage(QuotaType.CONTROLLER_MUTATION, user="alice", broker="1", usage=1.0, limit=2.0, configured=RULES),
    )
    assert named(sums, sums.usage[QuotaType.PRODUCE]) == {"payments": 34.0, UNOWNED: 5.0}
    assert named(sums, sums.allowed[QuotaType.PRODUCE]) == {"payments": 60.0, UNOWNED: 21.0}
    assert named(sums, sums.allowed[QuotaType.CONTROLLER_MUTATION]) == {"payments": 2.0}
    assert named(sums, sums.budget_ratio(QuotaType.PRODUCE)) == {"payments": 0.34}
    assert named(sums, sums.usage[QuotaType.FETCH]) == {}


@pytest.mark.parametrize(
    ("row", "unlimited"),
    [(usage(user="adam", configured=limits()), 1), (usage(user="adam"), 0)],
)
def test_one_client_without_a_limit_leaves_no_bound(row: EntityUsage, unlimited: int) -> None:
    """A client without a limit, or with an unknown one, leaves no bound of the sum, and the two differ."""
    sums = of(usage(user="alice", limit=20.0, configured=RULES), row)
    assert isnan(sums.allowed[QuotaType.PRODUCE][0])
    assert sums.unlimited[QuotaType.PRODUCE][0] == unlimited


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": None},
        {"limits": limits(nodes={}, releases={})},
        {"nodes": (*NODES[:2], NodeUsage(broker="3", quota_callback=None, overruled=True))},
    ],
)
def test_limits_on_an_unknown_number_of_brokers_have_no_sum(changes: dict[str, Any]) -> None:
    """Limits have no sum where the number of brokers is unknown or a custom callback decides on one of them."""
    sums = of(usage(user="alice", usage=3.0, limit=20.0, configured=RULES), **changes)
    assert named(sums, sums.allowed[QuotaType.PRODUCE]) == {}
    assert named(sums, sums.usage[QuotaType.PRODUCE]) == {"payments": 3.0}


def test_a_limit_is_stranded_where_its_client_has_not_been() -> None:
    """Known only of brokers that would show it: one that hides clients, or is not read, may have seen it."""
    rows = (
        usage(user="alice", broker="1", usage=30.0, limit=20.0, configured=RULES),
        usage(user="adam", broker="2", usage=10.0, limit=5.0, configured=RULES),
        usage(user="adam", broker="3", usage=20.0, limit=5.0, configured=RULES),
    )
    produced = QuotaType.PRODUCE
    sums = of(*rows)
    assert (sums.stranded[produced][0], sums.stranded_complete[produced][0]) == (2 * 20.0 + 5.0, True)
    assert sums.fairness[produced][0] == pytest.approx(60**2 / (3 * (30**2 + 10**2 + 20**2)))
    for nodes in (NODES[:2], (*NODES[:2], NodeUsage(broker="3"))):
        sums = of(*rows, nodes=nodes)
        assert (sums.stranded[produced][0], sums.stranded_complete[produced][0]) == (20.0 + 5.0, False)
        assert isnan(sums.fairness[produced][0])
        assert sums.allowed[produced][0] == 3 * 25.0
    sums = of(*rows, usage(user="axel", usage=None))
    assert (sums.stranded[produced][0], sums.stranded_complete[produced][0]) == (45.0, False)
    assert (sums.allowed_known[produced][0], sums.allowed_complete[produced][0]) == (75.0, False)
    one = limits(nodes={"1": NodeSettings()})
    assert isnan(of(rows[0], limits=one, nodes=NODES[:1]).fairness[produced][0])
    assert of(rows[0], limits=one, nodes=NODES[:1]).stranded[produced][0] == 0


def test_a_broker_that_was_just_restarted_says_nothing_of_the_hour_before() -> None:
    """Where it has the client, that is known; an hour later, or without a start, everything is."""
    rows = (
        usage(user="alice", broker="1", usage=30.0, limit=20.0, configured=RULES),
        usage(user="adam", broker="3", usage=30.0, limit=5.0, configured=RULES),
    )
    adder, produced = TeamAdder(TEAMS), QuotaType.PRODUCE
    for hours, amount, complete in (
        ((0.2, 5.0, 0.9), 20.0 + 5.0, False),  # alice may have been on 3, adam on 1
        ((0.2, 5.0, 5.0), 2 * 20.0 + 5.0, False),
        ((None, 5.0, 1.0), 2 * 20.0 + 2 * 5.0, True),
        ((-0.1, 0.0, 0.9), 0.0, False),  # clocks differ
    ):
        nodes = tuple(since(broker, age) for broker, age in zip("123", hours, strict=True))
        sums = of(*rows, adder=adder, nodes=nodes)
        assert (sums.stranded[produced][0], sums.stranded_complete[produced][0]) == (amount, complete)
        assert sums.fairness[produced][0] == pytest.approx(60**2 / (3 * (30**2 + 30**2)))
    everywhere = [usage(user="alice", broker=broker, usage=1.0, limit=20.0, configured=RULES) for broker in "123"]
    sums = of(*everywhere, nodes=tuple(since(broker, 0.0) for broker in "123"))
    assert (sums.stranded[produced][0], sums.stranded_complete[produced][0]) == (0.0, True)
    limited = usage(user="alice", broker="1", usage=1.0, limit=20.0, configured=RULES)
    sums = of(limited, nodes=(since("1", 5.0), since("2", 0.1), since("3", 0.1)))
    assert (sums.stranded[produced][0], sums.stranded_complete[produced][0]) == (0.0, False)


def test_limits_that_a_callback_may_replace_are_the_least_of_what_is_allowed() -> None:
    """Limits on two brokers are a lower bound of the sum where a callback may replace them on a third."""
    nodes = (*NODES[:2], NodeUsage(broker="3", quota_callback=None, overruled=True))
    sums = of(usage(user="alice", usage=3.0, limit=20.0, configured=RULES), nodes=nodes)
    assert named(sums, sums.allowed_known[QuotaType.PRODUCE]) == {"payments": 40.0}
    assert not sums.allowed_complete[QuotaType.PRODUCE][0]
    assert (sums.stranded[QuotaType.PRODUCE][0], sums.stranded_complete[QuotaType.PRODUCE][0]) == (20.0, False)


def test_entities_of_a_callback_count_in_no_team() -> None:
    """Entities of a callback, whose tags are not users or client-ids, count in no team."""
    sums = of(usage(user="", tags=("alice",), usage=9.0), usage(user="alice", usage=1.0))
    assert named(sums, sums.usage[QuotaType.PRODUCE]) == {"payments": 1.0}


def parsed(text: str) -> dict[tuple[str, ...], float]:
    """Return the series of teams and brokers by name and label values, sorted by label."""
    return {
        (sample.name.removeprefix("kafka_quota_"), *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "_team_" in sample.name or "_sold_" in sample.name
    }


def test_series_of_teams() -> None:
    """An unknown sum has no series."""
    hostile = team('</b>"\n\\', user="eve")
    rows = (
        usage(user="alice", usage=50.0, limit=20.0, configured=RULES, throttle_time_seconds=1.0),
        usage(user="eve", usage=2.0, throttle_time_seconds=None),
    )
    state = snapshot(*rows, limits=RULES, nodes=NODES)
    sums = TeamAdder((*TEAMS, hostile)).add_up(state)
    text = Renderer().render(replace(state, teams=sums, sold=SoldKeeper().update(state)), NOW).decode()
    assert parsed(text) == {
        ("team_produce_bytes_per_second", "payments"): 50.0,
        ("team_produce_bytes_per_second", hostile.name): 2.0,
        ("team_allowed_produce_bytes_per_second", "payments"): 60.0,
        ("team_stranded_produce_bytes_per_second", "payments"): 40.0,
        ("team_fairness_ratio", "produce", "payments"): pytest.approx(1 / 3),
        ("team_fairness_ratio", "produce", hostile.name): pytest.approx(1 / 3),
        ("team_budget_ratio", "produce", "payments"): 0.5,
        ("team_throttled_entities", "produce", "payments"): 1.0,
    }
    assert parsed(Renderer().render(state, NOW).decode()) == {}


async def test_entities_beyond_the_cap_are_in_the_sums() -> None:
    """Teams have the usage of all entities, also of those that the cap folds."""
    source = ScriptedSource()
    source.table = rates("1", {"alice": 1.0, "adam": 2.0, "bob": 4.0})
    collection = Collection(
        [source],
        LimitsRefresh(),
        0,
        cardinality=Cardinality(CardinalityConfig(max_entities=1)),
        teams=TEAMS,
        clock=lambda: NOW,
    )
    state = await collection.snapshot(9)
    assert len(state.entities) < 3
    assert state.teams is not None
    assert named(state.teams, state.teams.usage[QuotaType.PRODUCE]) == {"payments": 3.0, UNOWNED: 4.0}
    collection.configure(0, 9, 60, teams=TEAMS[1:])
    state = await collection.snapshot(9)
    assert state.teams is not None
    assert named(state.teams, state.teams.usage[QuotaType.PRODUCE]) == {UNOWNED: 7.0}
    collection.configure(0, 9, 60)
    assert (await collection.snapshot(9)).teams is None
    await collection.close()


@pytest.mark.parametrize(("count", "in_thread"), [(FEW, False), (FEW + 1, True)])
async def test_teams_of_many_entities_are_found_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, count: int, *, in_thread: bool
) -> None:
    """The event loop goes on after a start and another file of teams; a few that come are found at once."""
    threads: set[int] = set()
    number = TeamFinder.number

    def noted(finder: TeamFinder, user: str, client_id: str) -> int:
        threads.add(threading.get_ident())
        return number(finder, user, client_id)

    monkeypatch.setattr(TeamFinder, "number", noted)
    source = ScriptedSource()
    clients = {f"{'ab'[place % 2]}{place}": 1.0 for place in range(count)}
    source.table = rates("1", clients)
    collection = Collection([source], LimitsRefresh(), 0, teams=TEAMS, clock=lambda: NOW)
    for teams in (TEAMS, TEAMS[:1]):
        collection.configure(0, 9, 60, teams=teams)
        threads.clear()
        sums = (await collection.snapshot(9)).teams
        assert sums is not None
        assert named(sums, sums.usage[QuotaType.PRODUCE]) == {"payments": (count + 1) // 2, UNOWNED: count // 2}
        assert (threading.get_ident() not in threads) is in_thread
    threads.clear()
    source.table = rates("1", {**clients, "a new one": 1.0})
    sums = (await collection.snapshot(9)).teams
    assert sums is not None
    assert sums.entities.sum() == count + 1
    assert threads == {threading.get_ident()}
    await collection.close()


def idle(broker: str, share: float) -> NodeUsage:
    return NodeUsage(broker=broker, numbers={catalog.REQUEST_HANDLER_IDLE: {(): share}})


def busy(used: float, share: float, limit: float = 300.0, **changes: Any) -> Snapshot:
    """Return a broker with a share of idle request handlers, and an entity that uses so much."""
    row = usage(usage=used, limit=limit, configured=RULES)
    return snapshot(row, nodes=(idle("1", share),), **{"limits": RULES, **changes})


def test_a_broker_is_sold_by_its_highest_usage_with_reserves() -> None:
    """A broker's budget follows its highest usage while its request handlers were not busy."""
    keeper = SoldKeeper()
    for used, share, ratio in ((100.0, 0.9, 3.0), (50.0, 0.9, 3.0), (200.0, 0.1, 3.0), (150.0, 0.5, 2.0)):
        sold = keeper.update(busy(used, share))[QuotaType.PRODUCE, "1"]
        assert (sold.ratio, sold.origin) == (ratio, CapacityOrigin.OBSERVED)
    keeper.configured = {QuotaType.PRODUCE: 600.0}
    sold = keeper.update(busy(1.0, 0.9))[QuotaType.PRODUCE, "1"]
    assert (sold.ratio, sold.origin) == (0.5, CapacityOrigin.CONFIGURED)


def test_what_is_unknown_is_not_sold() -> None:
    """No capacity, no limit, a limit that is unknown, or a callback: there is no ratio."""
    assert SoldKeeper().update(busy(100.0, 0.1)) == {}
    keeper = SoldKeeper({QuotaType.PRODUCE: 100.0})
    assert keeper.update(busy(100.0, 0.9, usage_limit := 50.0))[QuotaType.PRODUCE, "1"].limits == usage_limit
    assert keeper.update(snapshot(usage(usage=1.0), limits=None, nodes=(idle("1", 0.9),))) == {}
    assert keeper.update(snapshot(usage(usage=1.0, configured=limits()), nodes=(idle("1", 0.9),))) == {}
    overruled = replace(idle("1", 0.9), overruled=True)
    assert keeper.update(replace(busy(1.0, 0.9), nodes=(overruled,))) == {}


def test_request_time_is_sold_against_threads() -> None:
    """Kafka's settings have the capacity; unlimited entities are not in the sum."""
    rows = (
        usage(QuotaType.REQUEST, user="alice", usage=1.0, limit=22.0, configured=RULES),
        usage(QuotaType.REQUEST, user="bob", usage=1.0, configured=RULES),
    )
    sold = SoldKeeper().update(snapshot(*rows, limits=RULES, nodes=NODES))
    assert {key: (value.ratio, value.origin) for key, value in sold.items()} == {
        (QuotaType.REQUEST, "1"): (2.0, CapacityOrigin.CONFIGURED)
    }


def test_a_name_that_is_not_remembered_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usage of a name that is not remembered belongs neither to a team nor to no team."""
    monkeypatch.setattr("quotascope.exporter.teams.index.real_name", lambda name: None if name == "cut" else name)
    sums = of(usage(user="cut", usage=5.0), usage(user="bob", usage=1.0), adder=TeamAdder(TEAMS))
    assert named(sums, sums.usage[QuotaType.PRODUCE]) == {UNOWNED: 1.0, UNDECIDED: 5.0}
    assert dict(zip(sums.names, sums.usage_complete[QuotaType.PRODUCE].tolist(), strict=True)) == {
        **dict.fromkeys(sums.names, False),
        UNDECIDED: True,
    }
    assert not sums.throttled_complete[QuotaType.PRODUCE][0]
    assert sums.usage_complete[QuotaType.FETCH].all()


def test_an_empty_cluster_has_no_sums() -> None:
    """A cluster without entities has no sums, and none of zero."""
    sums = TeamAdder(TEAMS).add_up(snapshot(columns=Columns.of(()), limits=RULES, nodes=NODES))
    assert all(named(sums, sums.usage[kind]) == {} for kind in QuotaType)
