"""Names are parsed once; then only numbers move."""

from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.beans import Bean, BeanColumn
from quotascope.exporter.sources.source import LayoutTracker


def column(key: str) -> BeanColumn | None:
    """A capital letter stands for the same column as the small one; a digit is of no use."""
    if key.isdigit():
        return None
    return BeanColumn(Bean.of("d", {"type": key.lower()}), "a")


class Parser:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, key: str) -> BeanColumn | None:
        """The column of a key."""
        self.asked.append(key)
        return column(key)


def test_same_keys_keep_the_layout_and_are_not_parsed_again() -> None:
    """A second read of the same names moves numbers only."""
    parser = Parser()
    columns = LayoutTracker(parser)
    first, values = columns.place(["a", "1", "b"], [1.0, 2.0, 3.0])
    second, again = columns.place(["a", "1", "b"], [4.0, 5.0, 6.0])
    assert second is first
    assert list(values) == [1.0, 3.0]
    assert list(again) == [4.0, 6.0]
    assert parser.asked == ["a", "1", "b"]


def test_another_order_keeps_the_layout() -> None:
    """An agent may list its beans in any order."""
    columns = LayoutTracker(column)
    first, _ = columns.place(["a", "b"], [1.0, 2.0])
    second, values = columns.place(["b", "a"], [2.0, 1.0])
    assert second is first
    assert list(values) == [1.0, 2.0]


def test_a_new_name_makes_a_layout_that_shares_the_other_columns() -> None:
    """Only the new name is parsed; what was derived from a column stays valid."""
    parser = Parser()
    columns = LayoutTracker(parser)
    first, _ = columns.place(["a"], [1.0])
    second, values = columns.place(["a", "b"], [1.0, 2.0])
    assert second is not first
    assert second.columns[0] is first.columns[0]
    assert list(values) == [1.0, 2.0]
    assert parser.asked == ["a", "b"]


def test_a_name_that_disappears_is_forgotten() -> None:
    """Memory is bounded by the last answer."""
    parser = Parser()
    columns = LayoutTracker(parser)
    columns.place(["a", "b"], [1.0, 2.0])
    layout, values = columns.place(["b"], [2.0])
    assert len(layout.columns) == 1
    assert list(values) == [2.0]
    columns.place(["a", "b"], [1.0, 2.0])
    assert parser.asked == ["a", "b", "a"]


def test_two_names_for_one_column_are_one_number() -> None:
    """A layout never holds a column twice: the exposition would hold a series twice."""
    columns = LayoutTracker(column)
    for _ in range(2):
        layout, values = columns.place(["a", "A"], [1.0, 2.0])
        assert len(layout.columns) == 1
        assert list(values) == [2.0]


def test_a_malformed_name_spoils_no_later_answer() -> None:
    """An agent that once answers nonsense is read again as soon as it answers sense."""

    def strict(key: str) -> BeanColumn | None:
        if key == "?":
            raise ValueError(key)
        return column(key)

    columns = LayoutTracker(strict)
    columns.place(["a"], [1.0])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"\?"):
            columns.place(["b", "c", "d", "?"], [1.0, 2.0, 3.0, 4.0])
    layout, values = columns.place(["b", "c"], [5.0, 6.0])
    assert layout.columns == (column("b"), column("c"))
    assert list(values) == [5.0, 6.0]


def test_nothing_read_is_an_empty_layout() -> None:
    """Nothing is an answer too, at first and later."""
    columns = LayoutTracker(column)
    assert columns.place([], [])[0].columns == ()
    columns.place(["a", "A"], [1.0, 1.0])
    layout, values = columns.place([], [])
    assert layout.columns == ()
    assert len(values) == 0


def test_a_missing_number_is_nan() -> None:
    """A key that stands twice leaves no hole behind."""
    columns = LayoutTracker(column)
    columns.place(["a", "b"], [1.0, 2.0])
    _, values = columns.place(["a", "a", "b"], [1.0, 3.0, nan])
    assert values[0] == 3.0
    assert isnan(values[1])


@given(st.lists(st.lists(st.sampled_from("abcABC12"), max_size=8), max_size=6))
def test_every_number_is_in_the_place_of_its_column(reads: list[list[str]]) -> None:
    """Whatever comes and goes, a table says what its read said."""
    columns = LayoutTracker(column)
    for number, keys in enumerate(reads):
        values = [float(10 * number + index) for index in range(len(keys))]
        layout, placed = columns.place(keys, values)
        expected = {
            found: value
            for key, value in zip(keys, values, strict=True)
            if (found := column(key))
        }
        assert set(layout.columns) == set(expected)
        assert len(layout.columns) == len(expected)
        last = {
            column(key): value
            for key, value in zip(keys, values, strict=True)
            if keys.count(key) == 1 and key.swapcase() not in keys
        }
        for found, value in zip(layout.columns, placed, strict=True):
            if found in last:
                assert value == last[found]


CROWD = [f"name-{at}" for at in range(60)]


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("abcABC12"), max_size=4),
            st.lists(st.sampled_from(CROWD), max_size=5),
        ),
        max_size=6,
    )
)
def test_a_few_of_many_come_and_go(steps: list[tuple[list[str], list[str]]]) -> None:
    """The others keep their columns, and most of them their places; each number is in the place of its column."""
    columns = LayoutTracker(column)
    before: dict[BeanColumn, BeanColumn] = {}
    for passing, absent in steps:
        keys = [*passing, *(name for name in CROWD if name not in absent)]
        values = [float(at) for at in range(len(keys))]
        layout, placed = columns.place(keys, values)
        expected = {
            found: value
            for key, value in zip(keys, values, strict=True)
            if (found := column(key))
        }
        assert dict(zip(layout.columns, placed, strict=True)) == expected
        crowd = {each: each for each in layout.columns if "name" in str(each)}
        assert all(before.get(each, each) is each for each in crowd)
        before = crowd
