"""Where numbers are and which limit they are under: worked out once."""

from array import array
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.join.world import Rules, World, entity, limits
from tests.strategies import examples

from quotascope.exporter.join.placing import Placing
from quotascope.exporter.mapping import Bean, BeanColumn, BeanLayout, BeanTable
from quotascope.exporter.snapshot import Entity
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType, RuleTable

PRODUCE, MUTATION = QuotaType.PRODUCE, QuotaType.CONTROLLER_MUTATION
RULES: Rules = {
    PRODUCE: {QuotaEntity(DEFAULT): 100.0},
    MUTATION: {QuotaEntity("bob"): 2.0},
}


def test_entities_are_kept_while_columns_and_limits_are() -> None:
    """Limits that were read again and say the same change nothing; other ones change the entities that they limit."""
    world = World(limits(RULES))
    numbers = [entity(PRODUCE, "alice"), entity(MUTATION, "bob", tokens=1.0)]
    first = world.collect_one(*numbers).shown.layout
    world.limits = limits(RULES)
    assert world.collect_one(*numbers).shown.layout is first
    world.limits = limits({**RULES, PRODUCE: {QuotaEntity("alice"): 7.0}})
    other = world.collect_one(*numbers).shown.layout
    assert [each.limit for each in other.entities] == [7.0, 2.0]
    assert other.entities[0] is not first.entities[0]
    assert other.entities[1] is first.entities[1]
    assert other.serials.tolist() == first.serials.tolist()
    world.limits = None
    unknown = world.collect_one(*numbers).shown.layout
    assert world.collect_one(*numbers).shown.layout is unknown
    assert [each.limit for each in unknown.entities] == [None, None]


def test_limits_that_are_read_again_are_compared_once() -> None:
    """Not at each collection until they are read the next time: there may be thousands."""
    compared = []

    class Rules(dict[QuotaType, RuleTable]):
        """Counts comparisons."""

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return super().__eq__(other)

        __hash__ = None

    world = World()
    for _ in range(3):
        read = limits(RULES)
        world.limits = replace(read, rules=Rules(read.rules))
        for _ in range(4):
            world.collect_one(entity(PRODUCE, "alice"))
    assert len(compared) == 2


def test_a_node_that_comes_back_in_time_keeps_its_entities() -> None:
    """It may be started again or hard to reach for five minutes; then it is forgotten."""
    world = World(limits(RULES))
    beans = [entity(PRODUCE, "alice")]
    both = {"1": beans, "2": beans}
    first = world.collect(both).shown.layout
    world.collect({"1": beans})
    assert len(world.collect({}, after=270.0).entities) == 0
    assert world.collect(both).shown.layout.serials.tolist() == first.serials.tolist()
    for after in (301.0, 15.0):
        world.collect({"1": beans}, after=after)
    again = world.collect(both).shown.layout
    assert again.serials[0] == first.serials[0]
    assert again.serials[1] != first.serials[1]


def test_what_is_left_out_leaves_the_others_as_they_are() -> None:
    """A bean that is left over from earlier rules changes nothing of those that count, whether it is there or not."""
    world = World(limits(RULES))
    known, stale = entity(PRODUCE, "alice"), entity(PRODUCE, "", "c", usage=1.0)
    first = world.collect_one(known, stale).shown.layout
    assert len(first) == 1
    assert world.collect_one(known, stale).shown.layout is first
    assert world.collect_one(known).shown.layout is first
    more = world.collect_one(known, entity(PRODUCE, "bob")).shown.layout
    assert more.entities[0] is first.entities[0]


def column(name: str, attribute: str) -> BeanColumn:
    """A number of one user."""
    bean = Bean("kafka.server", (("type", "Produce"), ("user", name)))
    return BeanColumn(bean, attribute)


STEADY = [column(f"steady-{at}", attribute) for at in range(30) for attribute in ("byte-rate", "throttle-time")]
PASSING = [
    *(column(name, "byte-rate") for name in ("a", "b", "x%3Ay", "x%3ay")),
    *(column(name, "throttle-time") for name in ("a", "b", "x%3Ay")),
    BeanColumn(Bean("kafka.server", (("type", "Produce"),)), "queue-size"),
    BeanColumn(Bean("nobody", (("type", "Produce"),)), "knows"),
]


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(PASSING), max_size=7, unique=True), st.lists(st.integers(0, 59), max_size=3)
        ),
        max_size=6,
    )
)
def test_places_after_changes_are_like_those_found_at_first(steps: list[tuple[list[BeanColumn], list[int]]]) -> None:
    """Whichever columns come, leave and change their places, each number is found, and entities stay the same objects."""
    placing, known = Placing(), limits(RULES)
    entities: dict[str, Entity] = {}
    for passing, moved in steps:
        columns = [*STEADY, *passing]
        for at in moved:
            columns[at], columns[-1] = columns[-1], columns[at]
        layout = BeanLayout(tuple(columns))
        table = BeanTable(node_id="1", layout=layout, values=array("d"))
        now, first = placing.place([table], known), Placing().place([table], known)
        assert list(now.layout.entities) == list(first.layout.entities)
        assert now.places.keys() == first.places.keys()
        for meaning, places in now.places.items():
            assert places.tolist() == first.places[meaning].tolist()
        assert now.nodes[0].places == first.nodes[0].places
        assert placing.place([table], limits(RULES)) is now
        found = {each.user: each for each in now.layout.entities}
        assert all(found[each] is entities[each] for each in found.keys() & entities)
        entities = found
