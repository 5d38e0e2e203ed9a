"""Where numbers are and which limit they are under: worked out once."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.join.world import Rules, World, entity, limits, only
from tests.strategies import examples

from quotascope.exporter.beans import Bean, Column, Layout
from quotascope.exporter.join.interpretation import Tags
from quotascope.exporter.join.planner import Planner
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import Entity
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


def column(name: str, attribute: str) -> Column:
    """A number of one user."""
    bean = Bean("kafka.server", (("type", "Produce"), ("user", name)))
    return Column(bean, attribute)


STEADY = [
    column(f"steady-{at}", attribute)
    for at in range(30)
    for attribute in ("byte-rate", "throttle-time")
]
PASSING = [
    *(column(name, "byte-rate") for name in ("a", "b", "x%3Ay", "x%3ay")),
    *(column(name, "throttle-time") for name in ("a", "b", "x%3Ay")),
    Column(Bean("kafka.server", (("type", "Produce"),)), "queue-size"),
    Column(Bean("nobody", (("type", "Produce"),)), "knows"),
]


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(PASSING), max_size=7, unique=True),
            st.lists(st.integers(0, 59), max_size=3),
        ),
        max_size=6,
    )
)
def test_a_plan_after_changes_is_like_one_made_anew(
    steps: list[tuple[list[Column], list[int]]],
) -> None:
    """Whichever columns come, leave and change their places, each number is found, and entities stay the same objects."""
    planner, known = Planner("1"), limits(RULES)
    entities: dict[Tags, Entity] = {}
    for passing, moved in steps:
        columns = [*STEADY, *passing]
        for at in moved:
            columns[at], columns[-1] = columns[-1], columns[at]
        layout = Layout(tuple(columns))
        plan, anew = planner.plan(layout, known), Planner("1").plan(layout, known)
        assert (plan.entities, plan.node) == (anew.entities, anew.node)
        assert list(plan.entities) == list(anew.entities)
        now = {tags: places.entity for tags, places in plan.entities.items()}
        assert all(now[tags] is entities[tags] for tags in now.keys() & entities.keys())
        entities = now
