"""What columns mean, where their numbers are and which limit they are under: worked out once."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.join.world import Rules, World, entity
from tests.exporter.recorded import limits
from tests.strategies import texts

from quotascope.exporter.join import placing
from quotascope.exporter.join.placing import ColumnMeaning, Placing, decoded, interpreted
from quotascope.exporter.mapping import Attribute, Bean, BeanColumn, BeanLayout, BeanTable, Meaning
from quotascope.exporter.sources.jolokia import columns_of
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType, RuleTable, mbean_name, sanitize

PRODUCE, MUTATION = QuotaType.PRODUCE, QuotaType.CONTROLLER_MUTATION
RULES: Rules = {PRODUCE: {QuotaEntity(DEFAULT): 100.0}, MUTATION: {QuotaEntity("bob"): 2.0}}


def column(user: str, attribute: str = "byte-rate") -> BeanColumn:
    return BeanColumn(Bean("kafka.server", (("type", "Produce"), ("user", user))), attribute)


def table(*columns: BeanColumn) -> BeanTable:
    return BeanTable(node_id="1", layout=BeanLayout(columns), values=array("d", range(len(columns))))


@given(st.sampled_from(QuotaType), texts, texts)
def test_every_name_survives_from_the_broker_to_the_snapshot(quota_type: QuotaType, user: str, client_id: str) -> None:
    """Sanitized and quoted by Kafka, unquoted and decoded by us: the name is what the client sent."""
    name = mbean_name("kafka.server", quota_type.group, [("user", sanitize(user)), ("client-id", client_id)])
    (read,) = columns_of((name, ("throttle-time",)))
    assert read is not None
    found = interpreted(read)
    assert found is not None
    assert found.tags == (quota_type, user, client_id)


def test_a_tag_that_kafka_would_not_write_stays_as_it_is() -> None:
    """Half an escape is no reason to lose a bean."""
    assert [*map(decoded, ("50%", "svc%3Ateam%20a"))] == ["50%", "svc:team a"]


def test_what_two_layouts_share_is_interpreted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a client comes, the other thousands are not looked at again, wherever their columns are now."""
    columns = [column(user) for user in "abc"]
    seen: list[BeanColumn] = []

    def look(one: BeanColumn) -> ColumnMeaning | None:
        seen.append(one)
        return interpreted(one)

    monkeypatch.setattr(placing, "interpreted", look)
    kept = Placing()
    for now in (columns[:2], columns[::-1], columns[:1]):
        placed = kept.place([table(*now)], None)
        users = [one.bean.get("user") or "" for one in now]
        found = [each.user for each in placed.layout.entities]
        assert found == sorted(users)
        assert [users[at] for at in placed.places[Meaning.USAGE].tolist()] == found
    assert seen == columns


def test_what_a_source_looked_up_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column brings along what it means; others are looked up when they are interpreted."""
    (read,) = columns_of((mbean_name("kafka.server", "Fetch", [("user", "a")]), ("byte-rate",)))
    assert read is not None
    plain = BeanColumn(read.bean, read.attribute)
    assert read == plain
    expected = interpreted(plain)
    monkeypatch.setattr(Attribute, "admits", lambda *_: False)
    assert (interpreted(read), interpreted(plain)) == (expected, None)


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
