"""The common parts of all sources: names are parsed once, then only numbers move; and the id of the node."""

from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import Bean, BeanColumn, BeanLayout
from quotascope.exporter.sources.source import LayoutTracker, NodeId


def column(key: str) -> BeanColumn | None:
    """Return a capital letter stands for the same column as the small one; a digit is of no use."""
    if key.isdigit():
        return None
    return BeanColumn(Bean.of("d", {"type": key.lower()}), "a")


def columns(key: str) -> list[BeanColumn | None]:
    return [column(key)]


@pytest.mark.parametrize(
    ("second", "is_same", "newly_parsed"),
    [
        (["a", "1", "b"], True, []),
        (["b", "1", "a"], True, []),
        (["a", "1", "b", "c"], False, ["c"]),
        (["b"], False, []),
    ],
    ids=["same", "other order", "new name", "fewer names"],
)
def test_a_name_is_parsed_when_it_is_first_seen(second: list[str], newly_parsed: list[str], *, is_same: bool) -> None:
    """
    The layout stays while the names do, and layouts share the columns that both have.

    A name that went is forgotten.
    """
    parsed: list[str] = []

    def parse(key: str) -> list[BeanColumn | None]:
        parsed.append(key)
        return columns(key)

    tracker = LayoutTracker(parse)
    first_layout, values = tracker.place(["a", "1", "b"], [1.0, 2.0, 3.0])
    assert list(values) == [1.0, 3.0]
    layout, _ = tracker.place(second, [float(number) for number in range(len(second))])
    assert (layout is first_layout) == is_same
    shared = {column: column for column in first_layout.columns}
    assert all(shared.get(column, column) is column for column in layout.columns)
    assert parsed == ["a", "1", "b", *newly_parsed]
    tracker.place(["a", "1", "b"], [1.0, 2.0, 3.0])
    again = ["a", "1"] if second == ["b"] else []
    assert parsed == ["a", "1", "b", *newly_parsed, *again]


def test_a_missing_number_is_nan() -> None:
    """A missing number is NaN, a repeated key leaves no hole, and an empty answer is valid at any time."""
    tracker = LayoutTracker(columns)
    assert tracker.place([], [])[0].columns == ()
    tracker.place(["a", "b"], [1.0, 2.0])
    _, values = tracker.place(["a", "a", "b"], [3.0, 3.0, nan])
    assert values[0] == 3.0
    assert isnan(values[1])
    layout, values = tracker.place([], [])
    assert (layout.columns, len(values)) == ((), 0)


def test_a_key_of_several_numbers_keeps_each_in_its_place() -> None:
    """The attributes of a key may change their order or become fewer; removed ones leave no column."""
    tracker = LayoutTracker[str](lambda key: [*map(column, key)])
    first_layout, values = tracker.place(["ab", "1c"], [1.0, 2.0, 3.0, 4.0])
    assert list(values) == [1.0, 2.0, 4.0]
    layout, values = tracker.place(["c1", "ba"], [5.0, 6.0, 7.0, 8.0])
    expected = {column("a"): 8.0, column("b"): 7.0, column("c"): 5.0}
    assert dict(zip(layout.columns, values, strict=True)) == expected
    assert {*layout.columns} == {*first_layout.columns}
    layout, values = tracker.place(["b"], [9.0])
    assert (layout.columns, [*values]) == ((column("b"),), [9.0])


CROWD = [f"name-{number}" for number in range(60)]


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abcABC12"), max_size=4), st.lists(st.sampled_from(CROWD), max_size=5)),
        max_size=6,
    )
)
def test_a_few_of_many_come_and_go(steps: list[tuple[list[str], list[str]]]) -> None:
    """Columns that come and go leave the others as they are, and each number is in the place of its column."""
    tracker = LayoutTracker(columns)
    old_columns: dict[BeanColumn, BeanColumn] = {}
    for passing, absent in steps:
        keys = [*passing, *(name for name in CROWD if name not in absent)]
        values = [float(hash(column(key))) for key in keys]
        layout, placed = tracker.place(keys, values)
        expected = {
            column_of_key: value for key, value in zip(keys, values, strict=True) if (column_of_key := column(key))
        }
        assert dict(zip(layout.columns, placed, strict=True)) == expected
        crowd = {column: column for column in layout.columns if "name" in str(column)}
        assert all(old_columns.get(column, column) is column for column in crowd)
        old_columns = crowd


@pytest.mark.parametrize(("keys", "values"), [("aa", [1.0, 2.0]), ("aA", [1.0, 2.0]), ("baA", [1.0, nan, 2.0])])
def test_two_values_of_one_number_are_refused(keys: str, values: list[float]) -> None:
    """Two values of one number are refused, under one name or two, and the next answer is read afresh."""
    tracker = LayoutTracker(columns)
    tracker.place(["a"], [7.0])
    with pytest.raises(
        SourceUnreadable, match=r"two values of one number, a (1|nan) and [aA] 2 .*agent of each broker"
    ):
        tracker.place([*keys], values)
    assert list(tracker.place([*keys], [5.0] * len(keys))[1]) == [5.0] * len({*keys.lower()})
    assert isnan(tracker.place(["a", "A"], [nan, nan])[1][0])


def layout_of(*ids: str) -> BeanLayout:
    beans = [{"type": "Produce"}, *({"type": "app-info", "id": node_id} for node_id in ids)]
    return BeanLayout(tuple(BeanColumn(Bean.of("kafka.server", bean), "StartTimeMs") for bean in beans))


@pytest.mark.parametrize(
    ("configured", "reported", "expected"),
    [
        (None, ["7"], "7"),
        (None, ["<b>", "9", "²", "1" * 5_000], "9"),  # something else in the same JVM may register itself, too
        ("3", [], "3"),
        ("3", ["3"], "3"),
    ],
)
def test_the_node_reports_its_id(configured: str | None, reported: list[str], expected: str) -> None:
    """A node reports its id, which may change. The configured one counts where an agent reports none."""
    node, layout = NodeId(configured), layout_of(*reported)
    assert (node.of(layout), node.of(layout)) == (expected, expected)
    if configured is None:
        assert node.of(layout_of("8")) == "8"


@pytest.mark.parametrize(
    ("configured", "reported", "reason"),
    [
        ("3", ["7"], "node 7, but this source should be node 3"),
        (None, [], "configure node_id"),
        (None, ["10", "9"], r"several nodes \(9, 10\)"),
        ("9", ["10", "9"], r"several nodes \(9, 10\)"),
    ],
)
def test_another_id_or_none_is_an_error(configured: str | None, reported: list[str], reason: str) -> None:
    """An answer with another id is not the agent that was meant; without an id the label `broker` would be made up."""
    with pytest.raises(SourceUnreadable, match=reason):
        NodeId(configured).of(layout_of(*reported))
