"""The meanings, places and limits of columns, which are worked out once."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.join.world import Rules, World, entity
from tests.exporter.recorded import limits
from tests.strategies import texts

from quotascope.exporter.join import placing
from quotascope.exporter.join.placing import ColumnMeaning, Placing, decoded, meaning_of
from quotascope.exporter.mapping import Attribute, Bean, BeanColumn, BeanLayout, BeanTable, Meaning
from quotascope.exporter.names import known_as
from quotascope.exporter.sources.jolokia import columns_of
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.jmx import mbean_name
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.metrics.kafka.sanitizer import sanitize

PRODUCE, MUTATION = QuotaType.PRODUCE, QuotaType.CONTROLLER_MUTATION
RULES: Rules = {PRODUCE: {QuotaEntity(DEFAULT): 100.0}, MUTATION: {QuotaEntity("bob"): 2.0}}


def column(user: str, attribute: str = "byte-rate") -> BeanColumn:
    return BeanColumn(Bean("kafka.server", (("type", "Produce"), ("user", user))), attribute)


def table(*columns: BeanColumn) -> BeanTable:
    return BeanTable(node_id="1", layout=BeanLayout(columns), values=array("d", range(len(columns))))


@given(st.sampled_from(QuotaType), texts, texts)
def test_every_name_survives_from_the_broker_to_the_snapshot(quota_type: QuotaType, user: str, client_id: str) -> None:
    """A name that Kafka sanitized and quoted is the client's own in the snapshot; a long one is cut."""
    name = mbean_name("kafka.server", quota_type.group, [("user", sanitize(user)), ("client-id", client_id)])
    (column,) = columns_of((name, ("throttle-time",)))
    assert column is not None
    meaning = meaning_of(column)
    assert meaning is not None
    assert meaning.tags == (quota_type, known_as(user), known_as(client_id))


def test_a_tag_that_kafka_would_not_write_stays_as_it_is() -> None:
    """Half an escape is no reason to lose a bean."""
    assert [*map(decoded, ("50%", "svc%3Ateam%20a"))] == ["50%", "svc:team a"]


def test_what_two_layouts_share_is_interpreted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new client does not make the exporter look at thousands of others again, wherever their columns are now."""
    columns = [column(user) for user in "abc"]
    seen: list[BeanColumn] = []

    def look(column: BeanColumn) -> ColumnMeaning | None:
        seen.append(column)
        return meaning_of(column)

    monkeypatch.setattr(placing, "meaning_of", look)
    lasting = Placing()
    for current in (columns[:2], columns[::-1], columns[:1]):
        placed = lasting.place([table(*current)], None)
        users = [column.bean.get("user") or "" for column in current]
        users_placed = [entity.user for entity in placed.layout.entities]
        assert users_placed == sorted(users)
        assert [users[place] for place in placed.places[Meaning.USAGE].tolist()] == users_placed
    assert seen == columns


def test_what_a_source_looked_up_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meaning that a source gave a column is used, and other columns are interpreted once."""
    (column,) = columns_of((mbean_name("kafka.server", "Fetch", [("user", "a")]), ("byte-rate",)))
    assert column is not None
    plain = BeanColumn(column.bean, column.attribute)
    assert column == plain
    expected = meaning_of(plain)
    monkeypatch.setattr(Attribute, "admits", lambda *_: False)
    assert (meaning_of(column), meaning_of(plain)) == (expected, None)


def test_entities_are_kept_while_columns_and_limits_are() -> None:
    """Equal limits keep all entities, and other limits change only the entities that they limit."""
    world = World(limits(RULES))
    numbers = [entity(PRODUCE, "alice"), entity(MUTATION, "bob", tokens=1.0)]
    first_layout = world.collect_one(*numbers).columns.layout
    world.limits = limits(RULES)
    assert world.collect_one(*numbers).columns.layout is first_layout
    world.limits = limits({**RULES, PRODUCE: {QuotaEntity("alice"): 7.0}})
    second_layout = world.collect_one(*numbers).columns.layout
    assert [entity.limit for entity in second_layout.entities] == [7.0, 2.0]
    assert second_layout.entities[0] is not first_layout.entities[0]
    assert second_layout.entities[1] is first_layout.entities[1]
    assert second_layout.serials.tolist() == first_layout.serials.tolist()
    world.limits = None
    unknown = world.collect_one(*numbers).columns.layout
    assert world.collect_one(*numbers).columns.layout is unknown
    assert [entity.limit for entity in unknown.entities] == [None, None]


def test_limits_that_are_read_again_are_compared_when_they_are_read() -> None:
    """New limits, of which there may be thousands, are compared once, and not at each collection."""
    compared = []

    class Rules(dict[QuotaType, RuleTable]):
        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return super().__eq__(other)

        __hash__ = None

    previous = limits(RULES)
    world = World(previous)
    layout = world.collect_one(entity(PRODUCE, "alice")).columns.layout
    for _ in range(3):
        limits_read = limits(RULES)
        world.limits = previous = replace(limits_read, rules=Rules(limits_read.rules)).after(previous)
        compared.clear()
        for _ in range(4):
            assert world.collect_one(entity(PRODUCE, "alice")).columns.layout is layout
        assert not compared


def test_a_node_that_comes_back_in_time_keeps_its_entities() -> None:
    """A node that comes back within five minutes keeps its entities."""
    world = World(limits(RULES))
    beans = [entity(PRODUCE, "alice")]
    both = {"1": beans, "2": beans}
    first_layout = world.collect(both).columns.layout
    world.collect({"1": beans})
    assert len(world.collect({}, seconds=270.0).entities) == 0
    assert world.collect(both).columns.layout.serials.tolist() == first_layout.serials.tolist()
    for seconds in (301.0, 15.0):
        world.collect({"1": beans}, seconds=seconds)
    again = world.collect(both).columns.layout
    assert again.serials[0] == first_layout.serials[0]
    assert again.serials[1] != first_layout.serials[1]


def test_what_is_left_out_leaves_the_others_as_they_are() -> None:
    """A bean left over from earlier rules changes nothing of the others, whether it is there or not."""
    world = World(limits(RULES))
    explained, stale = entity(PRODUCE, "alice"), entity(PRODUCE, "", "c", usage=1.0)
    first_layout = world.collect_one(explained, stale).columns.layout
    assert len(first_layout) == 1
    assert world.collect_one(explained, stale).columns.layout is first_layout
    assert world.collect_one(explained).columns.layout is first_layout
    larger_layout = world.collect_one(explained, entity(PRODUCE, "bob")).columns.layout
    assert larger_layout.entities[0] is first_layout.entities[0]
