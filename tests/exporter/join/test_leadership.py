"""Which node's mutation beans count."""

import pytest
from tests.exporter.join.world import World, entity, leads, limits, stale

from quotascope.exporter.join.staleness import active_controllers
from quotascope.metrics import QuotaEntity, QuotaType

MUTATION = QuotaType.CONTROLLER_MUTATION


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


def test_after_a_failover_only_the_new_leader_is_shown() -> None:
    """The former leader's beans stay for an hour, and even rise when its bucket fills."""
    rules = {MUTATION: {QuotaEntity("bob"): 2.0}}
    world = World(limits(rules, nodes=("101", "102"), active_controller="101"))
    before = world.collect(
        {
            "101": [entity(MUTATION, "bob", usage=1.0, tokens=-5.0), leads(1)],
            "102": [leads(0)],
        }
    )
    assert [usage.entity.broker for usage in before.entities] == ["101"]
    after = world.collect(
        {
            "101": [entity(MUTATION, "bob", usage=9.0, tokens=22.0), leads(0)],
            "102": [entity(MUTATION, "bob", usage=1.0, tokens=3.0), leads(1)],
        }
    )
    assert [usage.entity.broker for usage in after.entities] == ["102"]
    assert stale(after, "101") == {MUTATION: 1}
    assert stale(after, "102") == {}


def test_nobody_knows_who_leads() -> None:
    """Better twice than not at all."""
    world = World(limits({MUTATION: {QuotaEntity("bob"): 2.0}}))
    nodes = {node: [entity(MUTATION, "bob", tokens=1.0)] for node in ("1", "2")}
    assert len(world.collect(nodes).entities) == 2
