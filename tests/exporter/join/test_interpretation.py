"""From a bean's name to an entity and back."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.join.world import World, entity, limits, only
from tests.strategies import texts

from quotascope.exporter.join import placing
from quotascope.exporter.join.placing import ColumnMeaning, decoded, interpreted
from quotascope.exporter.mapping import Attribute, Bean, BeanColumn, BeanLayout, BeanTable, Meaning
from quotascope.exporter.sources.jolokia import columns_of
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType, mbean_name, sanitize

names = texts.filter(bool)


@given(st.sampled_from(QuotaType), texts, texts)
def test_every_name_survives_from_the_broker_to_the_snapshot(quota_type: QuotaType, user: str, client_id: str) -> None:
    """Sanitized and quoted by Kafka, unquoted and decoded by us: the name is what the client sent."""
    tags = [("user", sanitize(user)), ("client-id", client_id)]
    name = mbean_name("kafka.server", quota_type.group, tags)
    (column,) = columns_of((name, ("throttle-time",)))
    assert column is not None
    found = interpreted(column)
    assert found is not None
    assert found.tags == (quota_type, user, client_id)


@given(names, names)
def test_hostile_names_find_their_rules(user: str, client_id: str) -> None:
    """A rule for a name finds the entity of that name, whatever is in it."""
    rules = {
        QuotaType.PRODUCE: {
            QuotaEntity(user, client_id): 7.0,
            QuotaEntity(DEFAULT, DEFAULT): 9.0,
        }
    }
    world = World(limits(rules))
    usage = only(world.collect_one(entity(QuotaType.PRODUCE, user, client_id, usage=3.5)))
    assert (usage.entity.user, usage.entity.client_id) == (user, client_id)
    assert (usage.entity.limit, usage.utilization) == (7.0, 0.5)


def test_a_tag_that_kafka_would_not_write_stays_as_it_is() -> None:
    """Half an escape is no reason to lose a bean."""
    assert decoded("50%") == "50%"
    assert decoded("svc%3Ateam%20a") == "svc:team a"


def test_what_two_layouts_share_is_interpreted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a client comes, the other thousands are not looked at again, wherever their columns are now."""
    columns = [BeanColumn(Bean.of("kafka.server", {"type": "Fetch", "user": user}), "byte-rate") for user in "abc"]
    seen: list[BeanColumn] = []

    def look(column: BeanColumn) -> ColumnMeaning | None:
        seen.append(column)
        return interpreted(column)

    monkeypatch.setattr(placing, "interpreted", look)
    kept = placing.Placing()
    for now in (columns[:2], [columns[2], columns[1], columns[0]], columns[:1]):
        table = BeanTable(node_id="1", layout=BeanLayout(tuple(now)), values=array("d", range(len(now))))
        placed = kept.place([table], None)
        users = [column.bean.get("user") or "" for column in now]
        found = [each.user for each in placed.layout.entities]
        assert found == sorted(users)
        places = placed.places[Meaning.USAGE].tolist()
        assert [users[at] for at in places] == found
    assert seen == columns


def test_what_a_source_looked_up_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column brings along what it means; others are looked up when they are interpreted."""
    name = mbean_name("kafka.server", "Fetch", [("user", "a")])
    (column,) = columns_of((name, ("byte-rate",)))
    assert column is not None
    plain = BeanColumn(column.bean, column.attribute)
    assert column == plain
    expected = interpreted(plain)
    monkeypatch.setattr(Attribute, "admits", lambda *_: False)
    assert interpreted(column) == expected
    assert interpreted(plain) is None


def test_columns_of_no_use_say_nothing() -> None:
    """A source may hand over more than is wanted."""
    bean = Bean.of("kafka.server", {"type": "BrokerTopicMetrics"})
    assert interpreted(BeanColumn(bean, "Count")) is None
    snapshot = World().collect_one({BeanColumn(bean, "Count"): 1.0})
    assert snapshot.entities == ()
