"""Entities by row: what comes of a layout is what a new one would be."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.snapshot import Entity, Layout
from quotascope.exporter.snapshot.layout import order
from quotascope.metrics.kafka.entities import QuotaType

entities = st.lists(
    st.builds(
        Entity,
        broker=st.sampled_from(("1", "2", "10", "a")),
        quota_type=st.sampled_from(QuotaType),
        user=st.sampled_from(("", "bob", "é\n")),
        client_id=st.just("c"),
        limit=st.sampled_from((None, 1.0, np.inf)),
        tags=st.sampled_from((None, None, ("t",), ("u",))),
    ),
    unique_by=order,
    max_size=12,
)
DERIVED = ("serials", "types", "limits", "bursts")


def check(layout: Layout) -> None:
    """Require that a layout equals a new one of the same entities."""
    fresh = Layout(sorted(layout.entities, key=order))
    assert layout.entities.tolist() == fresh.entities.tolist()
    for name in DERIVED:
        values = getattr(layout, name)
        np.testing.assert_array_equal(values, getattr(fresh, name))
        assert not values.flags.writeable
    assert [layout.nodes[number] for number in layout.node_numbers] == [entity.broker for entity in layout.entities]
    assert (layout.own, layout.tagged) == (fresh.own, fresh.tagged)


def check_rows(layout: Layout, other_layout: Layout) -> None:
    """Check that each entity is found at its row in the other layout."""
    places = {entity.serial: row for row, entity in enumerate(other_layout.entities)}
    expected = [places.get(entity.serial, -1) for entity in layout.entities]
    assert layout.rows_in(other_layout).tolist() == expected
    carried = layout.carry(np.arange(len(other_layout), dtype=np.float64), other_layout, -1.0)
    assert carried.tolist() == expected


@given(entities, st.data(), st.booleans())
def test_a_layout_after_changes_is_like_a_new_one(
    given_entities: list[Entity],
    data: st.DataObject,
    derived: bool,  # noqa: FBT001
) -> None:
    """Anyone who leaves, comes, is left out or is limited otherwise, and whatever was asked of the layout before."""
    added = data.draw(st.lists(st.sampled_from(given_entities), unique_by=order)) if given_entities else []
    initial = Layout(sorted((entity for entity in given_entities if entity not in added), key=order))
    rows = st.lists(st.booleans(), min_size=len(initial), max_size=len(initial))
    removed = np.flatnonzero(data.draw(rows))
    if derived:
        check(initial)
    second = initial.changed(removed, added)
    limited = {row: replace(entity, limit=7.0) for row, entity in enumerate(second.entities) if row % 2}
    third = second.with_limits(limited)
    fourth = third.changed(np.flatnonzero(np.arange(len(third)) % 3))
    layouts = (initial, second, third, fourth, Layout(()))
    for layout in layouts:
        check(layout)
        for other_layout in layouts:
            check_rows(layout, other_layout)
    assert len(second) == len(initial) - removed.size + len(added)
    assert all(third.limits[row] == 7.0 for row in limited)


def test_a_layout_that_lasts_remembers_none_that_is_gone() -> None:
    """A layout that lasts keeps no reference to former layouts of a source that comes and goes."""
    lasting = Layout([_of_node(str(number)) for number in range(3)])
    for _ in range(100):
        passing = lasting.changed(np.arange(2, len(lasting)))
        assert lasting.rows_in(passing).tolist() == [0, 1, -1]
    assert len(lasting._rows) == 1
    del passing
    assert len(lasting._rows) == 0


def test_nodes_without_entities_are_forgotten() -> None:
    """An agent that has another id in each answer leaves no trace."""
    layout = Layout([_of_node("0")])
    for number in range(1, 100):
        layout = layout.changed(np.array([0]), [_of_node(str(number))])
        check(layout)
        assert layout.nodes[-1] == str(number)
        assert len(layout.nodes) <= 2


def _of_node(broker: str) -> Entity:
    return Entity(broker=broker, quota_type=QuotaType.PRODUCE, user="u", client_id="")
