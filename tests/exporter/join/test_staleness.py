"""Beans that the rules do not explain: left over, or in use after all; and which node's mutation beans count."""

from math import nan

import pytest
from tests.exporter.join.world import World, entity, limits, only, stale

from quotascope.exporter.join.staleness import active_controllers
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

PRODUCE, REQUEST = QuotaType.PRODUCE, QuotaType.REQUEST
MUTATION = QuotaType.CONTROLLER_MUTATION
ALICE = {PRODUCE: {QuotaEntity("alice"): 100.0}}
PAIRS = {PRODUCE: {QuotaEntity(DEFAULT, DEFAULT): 100.0}}
MUTATIONS = {MUTATION: {QuotaEntity("bob"): 2.0}}


def shown(snapshot: Snapshot) -> list[str]:
    """The users that are shown."""
    return [usage.entity.user for usage in snapshot.entities]


def test_a_bean_of_another_shape_is_stale_from_the_first_collection() -> None:
    """After rules for pairs came, the bean of the client alone only decays."""
    world = World(limits(PAIRS))
    snapshot = world.collect_one(
        entity(PRODUCE, "", "a", usage=90.0), entity(PRODUCE, "alice", "a", usage=9.0)
    )
    assert only(snapshot).entity.user == "alice"
    assert stale(snapshot) == {PRODUCE: 1}


def test_a_rate_that_rises_is_in_use() -> None:
    """The broker knows a rule that we have not read yet: its clients are not hidden."""
    world = World(limits(ALICE))
    parts = entity(PRODUCE, "alice", usage=50.0)
    world.collect_one(parts, entity(PRODUCE, "", "c", usage=10.0))
    snapshot = world.collect_one(parts, entity(PRODUCE, "", "c", usage=12.0))
    assert shown(snapshot) == ["", "alice"]
    assert stale(snapshot) == {}


def test_a_new_bean_that_is_used_is_in_use() -> None:
    """A sensor was just made: somebody is measured by it."""
    world = World(limits(ALICE))
    world.collect_one(entity(PRODUCE, "alice", usage=50.0))
    snapshot = world.collect_one(
        entity(PRODUCE, "alice", usage=50.0), entity(PRODUCE, "", "c", usage=1.0)
    )
    assert shown(snapshot) == ["", "alice"]


def test_what_rose_is_shown_for_a_minute() -> None:
    """Real traffic goes up and down: a series must not flicker."""
    world = World(limits(ALICE))
    world.collect_one(entity(PRODUCE, "", "c", usage=10.0))
    for usage in (20.0, 19.0, 19.5, 19.0, 19.0):
        assert shown(world.collect_one(entity(PRODUCE, "", "c", usage=usage)))
    assert not shown(world.collect_one(entity(PRODUCE, "", "c", usage=18.0), after=1))


def test_what_rose_is_remembered_while_its_bean_is_away() -> None:
    """A bean that comes back within the minute is as recent as before, though it is idle now."""
    world = World(limits(ALICE))
    alice = entity(PRODUCE, "alice", usage=50.0)
    world.collect_one(alice, entity(PRODUCE, "", "c", usage=10.0))
    seen = [
        shown(world.collect_one(alice, *beans, after=after))
        for beans, after in (
            ([entity(PRODUCE, "", "c", usage=20.0)], 15),
            ([], 15),
            ([entity(PRODUCE, "", "c", usage=0.0)], 15),
            ([entity(PRODUCE, "", "c", usage=0.0)], 31),
        )
    ]
    assert seen == [["", "alice"], ["alice"], ["", "alice"], ["alice"]]


def test_a_throttle_that_rises_is_in_use() -> None:
    """A starved consumer has no rate, but its throttle grows."""
    world = World(limits(ALICE))
    world.collect_one(entity(PRODUCE, "", "c"))
    assert shown(world.collect_one(entity(PRODUCE, "", "c", throttle_ms=5.0)))


@pytest.mark.parametrize(("quota_type", "factor"), [(PRODUCE, 1.09), (MUTATION, 1.99)])
def test_a_window_that_ages_is_no_rise(quota_type: QuotaType, factor: float) -> None:
    """Kafka divides by S - 1 to S windows: without traffic a rate can still rise by that much."""
    world = World(limits(ALICE))
    world.collect_one(entity(quota_type, "", "x", usage=100.0))
    assert not shown(
        world.collect_one(entity(quota_type, "", "x", usage=100.0 * factor))
    )


@pytest.mark.parametrize("usage", [10.0, 5.0, 0.0, -50.0, nan, None])
def test_what_does_not_rise_stays_stale(usage: float | None) -> None:
    """Decay, an unrecorded fetch and a number that is gone are no traffic."""
    world = World(limits(ALICE))
    world.collect_one(entity(PRODUCE, "", "c", usage=10.0))
    assert not shown(world.collect_one(entity(PRODUCE, "", "c", usage=usage)))


def test_a_rise_from_below_zero_to_zero_is_none() -> None:
    """A fetch that was taken back leaves a negative rate, which fades."""
    world = World(limits(ALICE))
    world.collect_one(entity(QuotaType.FETCH, "", "c", usage=-100.0))
    snapshot = world.collect_one(entity(QuotaType.FETCH, "", "c", usage=-1.0))
    assert not shown(snapshot)


def test_rules_that_come_make_a_bean_stale_at_once() -> None:
    """What was in use a moment ago is compared, not taken for new."""
    world = World(limits({PRODUCE: {QuotaEntity(None, DEFAULT): 1.0}}))
    world.collect_one(entity(PRODUCE, "", "c", usage=10.0))
    world.limits = limits(ALICE)
    snapshot = world.collect_one(
        entity(PRODUCE, "", "c", usage=9.0), entity(PRODUCE, "alice", usage=1.0)
    )
    assert shown(snapshot) == ["alice"]


def test_last_traffic_under_a_removed_rule_is_no_rise() -> None:
    """Between two collections the bean was used and its rule removed: it is gone within one refresh."""
    world = World(limits({PRODUCE: {QuotaEntity(None, DEFAULT): 1.0}}))
    world.collect_one(entity(PRODUCE, "", "c", usage=10.0))
    world.limits = limits(ALICE)
    for usage in (5_000.0, 4_000.0, 0.0):
        snapshot = world.collect_one(entity(PRODUCE, "", "c", usage=usage))
        assert not shown(snapshot)


def test_what_rose_under_earlier_rules_says_nothing_under_later_ones() -> None:
    """The rule that was missing is known now, and it does not explain the bean either."""
    world = World(limits(ALICE))
    world.collect_one(entity(PRODUCE, "", "c", usage=10.0))
    assert shown(world.collect_one(entity(PRODUCE, "", "c", usage=20.0)))
    world.limits = limits(PAIRS)
    for _ in range(2):
        assert not shown(world.collect_one(entity(PRODUCE, "", "c", usage=20.0)))


def test_limits_read_again_are_the_same_rules() -> None:
    """A refresh that changes nothing does not hide a bean that rises."""
    world = World(limits(ALICE))
    world.collect_one(entity(PRODUCE, "", "c", usage=10.0))
    world.limits = limits(ALICE)
    assert shown(world.collect_one(entity(PRODUCE, "", "c", usage=20.0)))


def test_a_type_without_rules_has_stale_beans_only() -> None:
    """After the last rule went, nothing is recorded any more."""
    snapshot = World(limits({})).collect_one(
        entity(PRODUCE, "", "c", usage=1.0),
        entity(REQUEST, "", "c", usage=1.0, throttle_ms=800.0),
    )
    assert not snapshot.entities
    assert stale(snapshot) == {PRODUCE: 1, REQUEST: 1}


def test_a_forwarded_throttle_is_shown_without_request_quotas() -> None:
    """Where there are mutation quotas, group Request holds their throttles."""
    snapshot = World(limits(MUTATIONS)).collect_one(
        entity(REQUEST, "", "admin", throttle_ms=3_000.0),
        entity(REQUEST, "", "quiet", usage=1.0),
        entity(REQUEST, "bob", throttle_ms=3_000.0),
    )
    assert only(snapshot).entity.client_id == "admin"
    assert stale(snapshot) == {REQUEST: 2}


def test_a_custom_callback_leaves_nothing_to_judge() -> None:
    """With client.quota.callback.class the eight levels mean nothing."""
    settings = NodeSettings(quota_callback_class="io.example.Callback")
    snapshot = World(limits(ALICE, settings=settings)).collect_one(
        entity(PRODUCE, "alice", usage=1.0), entity(PRODUCE, "", "c", usage=1.0)
    )
    assert len(snapshot.entities) == 2
    assert all(usage.entity.resolution is None for usage in snapshot.entities)


def test_a_clock_that_is_set_back_does_not_keep_beans() -> None:
    """An hour back must not mean an hour of stale beans."""
    world = World(limits(ALICE))
    world.collect_one(entity(PRODUCE, "", "c", usage=1.0))
    assert shown(world.collect_one(entity(PRODUCE, "", "c", usage=2.0)))
    assert not shown(
        world.collect_one(entity(PRODUCE, "", "c", usage=2.0), after=-3600)
    )


@pytest.mark.parametrize(
    ("told", "leader", "expected"),
    [
        ({"1": True}, None, {"1": True}),
        ({"1": False}, "1", {"1": False}),
        ({"1": None, "2": True}, "1", {"1": False, "2": True}),
        ({"1": None, "2": False}, "1", {"1": True, "2": False}),
        ({"1": None, "2": None}, "2", {"1": False, "2": True}),
        ({"1": None}, None, {"1": None}),
        ({"1": None, "2": False}, None, {"1": None, "2": False}),
        ({"1": True, "2": True}, "1", {"1": True, "2": True}),
        ({}, "1", {}),
    ],
)
def test_a_node_knows_best_itself(
    told: dict[str, bool | None], leader: str | None, expected: dict[str, bool | None]
) -> None:
    """Then whether another one leads, then what the Admin API said."""
    assert active_controllers(told, leader) == expected
