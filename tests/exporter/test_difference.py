from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.difference import difference

ITEMS = [object() for _ in range(400)]
"""More than are compared at once."""
lists = st.lists(st.integers(0, 399), max_size=30).map(
    lambda at: [ITEMS[i] for i in at]
)


@st.composite
def changed(draw: st.DrawFn) -> list[object]:
    """All items but for some, with others in between, some twice."""
    items = list(ITEMS)
    for at in draw(st.lists(st.integers(0, 300), max_size=10)):
        del items[at : at + draw(st.integers(1, 5))]
    for at in draw(st.lists(st.integers(0, 300), max_size=10)):
        items.insert(at, draw(st.sampled_from([*ITEMS[:5], object()])))
    return items


@given(old=lists | changed(), new=lists | changed())
def test_what_is_neither_gone_nor_fresh_is_the_same(
    old: list[object], new: list[object]
) -> None:
    """Whatever the lists: without what left and what came both are equal."""
    gone, fresh = difference(old, new)
    assert gone == sorted(set(gone))
    assert fresh == sorted(set(fresh))
    assert [item for at, item in enumerate(old) if at not in gone] == [
        item for at, item in enumerate(new) if at not in fresh
    ]


def test_small_changes_are_found_as_such() -> None:
    """One that left, one that came, and one that was replaced leave all others where they are."""
    new = [*ITEMS[:100], object(), *ITEMS[100:200], *ITEMS[201:300], object()]
    assert difference(ITEMS, [*new, *ITEMS[301:]]) == ([200, 300], [100, 300])


def test_items_are_compared_by_value() -> None:
    """Names of one read and of the next are equal, but not the same."""
    old, new = ([f"name {at}" for at in range(count)] for count in (300, 299))
    del new[150]
    assert difference(old, new) == ([150, 299], [])


def test_a_long_run_of_new_items_is_found_as_such() -> None:
    """However many come or leave at one place, the others stay."""
    many = [object() for _ in range(200)]
    new = [*ITEMS[:50], *many, *ITEMS[50:300]]
    assert difference(ITEMS, new) == (list(range(300, 400)), list(range(50, 250)))
    assert difference(new, ITEMS) == (list(range(50, 250)), list(range(300, 400)))


def test_neighbours_are_looked_at_before_all_items() -> None:
    """One that left where two came is found next to it; to look all up takes time in proportion to both lists."""

    class Unhashable(list[int]):
        """Cannot be looked up."""

    old: list[Any] = [Unhashable([at]) for at in range(200)]
    new = [*old[:100], Unhashable([-1]), Unhashable([-2]), *old[101:150], *old[153:]]
    assert difference(old, new) == (
        [100, 150, 151, 152],
        [100, 101],
    )
