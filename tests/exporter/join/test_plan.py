"""Where numbers are and which limit they are under: worked out once."""

from tests.exporter.join.world import Rules, World, entity, limits, only

from quotascope.exporter.join.plan import Planner
from quotascope.exporter.limits import NodeSettings
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

PRODUCE, MUTATION = QuotaType.PRODUCE, QuotaType.CONTROLLER_MUTATION
RULES: Rules = {
    PRODUCE: {QuotaEntity(DEFAULT): 100.0},
    MUTATION: {QuotaEntity("bob"): 2.0},
}


def test_a_plan_is_kept_while_layout_and_limits_are() -> None:
    """Limits that were read again and say the same change nothing."""
    world = World()
    layout = world.table("1", entity(PRODUCE, "alice")).layout
    planner = Planner("1")
    first = planner.plan(layout, limits(RULES))
    assert planner.plan(layout, limits(RULES)) is first
    assert planner.plan(layout, limits({})) is not first
    assert planner.plan(layout, None) is not first
    unknown = planner.plan(layout, None)
    assert planner.plan(layout, None) is unknown


def test_other_settings_make_another_plan() -> None:
    """The size of a bucket depends on them."""
    layout = World().table("1", entity(MUTATION, "bob")).layout
    planner = Planner("1")
    first = planner.plan(layout, limits(RULES))
    settings = NodeSettings(controller_quota_samples=5)
    second = planner.plan(layout, limits(RULES, settings=settings))
    bursts = [
        plan.entities[MUTATION, "bob", ""].entity.burst_tokens
        for plan in (first, second)
    ]
    assert bursts == [22.0, 10.0]


def test_entities_outlive_a_new_client() -> None:
    """Whatever was derived from an entity stays valid when others come and go."""
    world = World(limits(RULES))
    first = world.collect_one(entity(PRODUCE, "alice"))
    second = world.collect_one(entity(PRODUCE, "bob"), entity(PRODUCE, "alice"))
    by_user = {usage.entity.user: usage.entity for usage in second.entities}
    assert by_user["alice"] is only(first).entity


def test_entities_change_with_their_limits() -> None:
    """A new limit is seen at once."""
    world = World(limits(RULES))
    assert only(world.collect_one(entity(PRODUCE, "alice"))).entity.limit == 100.0
    world.limits = limits({PRODUCE: {QuotaEntity("alice"): 5.0}})
    assert only(world.collect_one(entity(PRODUCE, "alice"))).entity.limit == 5.0


def test_a_controller_has_the_brokers_settings() -> None:
    """No Admin API tells those of a node that is only a controller."""
    settings = NodeSettings(
        controller_quota_samples=2, controller_quota_window_seconds=10.0
    )
    world = World(limits(RULES, settings=settings))
    snapshot = world.collect({"100": [entity(MUTATION, "bob", tokens=10.0)]})
    assert only(snapshot).entity.burst_tokens == 40.0
    assert only(snapshot).burst_used == 0.75


def test_two_spellings_of_a_user_are_one_entity() -> None:
    """A series must not be there twice, whoever wrote the names."""
    world = World(limits(RULES))
    upper = entity(PRODUCE, "a:b", usage=1.0)
    lower = {
        type(column)(
            type(column.bean)(
                column.bean.domain,
                tuple(
                    (key, value.replace("%3A", "%3a"))
                    for key, value in column.bean.properties
                ),
            ),
            column.attribute,
        ): value
        for column, value in upper.items()
    }
    assert only(world.collect_one(upper, lower)).entity.user == "a:b"
