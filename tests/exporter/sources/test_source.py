"""What every source needs: names are parsed once, then only numbers move; and the id of the node."""

from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import Bean, BeanColumn, BeanLayout
from quotascope.exporter.sources.source import LayoutTracker, NodeId


def column(key: str) -> BeanColumn | None:
    """A capital letter stands for the same column as the small one; a digit is of no use."""
    if key.isdigit():
        return None
    return BeanColumn(Bean.of("d", {"type": key.lower()}), "a")


def columns(key: str) -> list[BeanColumn | None]:
    return [column(key)]


@pytest.mark.parametrize(
    ("second", "same", "asked"),
    [
        (["a", "1", "b"], True, []),
        (["b", "1", "a"], True, []),
        (["a", "1", "b", "c"], False, ["c"]),
        (["b"], False, []),
    ],
    ids=["same", "other order", "new name", "fewer names"],
)
def test_a_name_is_parsed_when_it_is_first_seen(second: list[str], asked: list[str], *, same: bool) -> None:
    """While the names are the same, so is the layout; layouts share the columns that both have. A name that went is forgotten."""
    parsed: list[str] = []

    def parse(key: str) -> list[BeanColumn | None]:
        parsed.append(key)
        return columns(key)

    tracker = LayoutTracker(parse)
    first, values = tracker.place(["a", "1", "b"], [1.0, 2.0, 3.0])
    assert list(values) == [1.0, 3.0]
    layout, _ = tracker.place(second, [float(at) for at in range(len(second))])
    assert (layout is first) == same
    shared = {each: each for each in first.columns}
    assert all(shared.get(each, each) is each for each in layout.columns)
    assert parsed == ["a", "1", "b", *asked]
    tracker.place(["a", "1", "b"], [1.0, 2.0, 3.0])
    again = ["a", "1"] if second == ["b"] else []
    assert parsed == ["a", "1", "b", *asked, *again]


def test_a_missing_number_is_nan() -> None:
    """A key that stands twice leaves no hole behind; nothing read is an answer too, at first and later."""
    tracker = LayoutTracker(columns)
    assert tracker.place([], [])[0].columns == ()
    tracker.place(["a", "b"], [1.0, 2.0])
    _, values = tracker.place(["a", "a", "b"], [1.0, 3.0, nan])
    assert values[0] == 3.0
    assert isnan(values[1])
    layout, values = tracker.place([], [])
    assert (layout.columns, len(values)) == ((), 0)


def test_a_key_of_several_numbers_keeps_each_in_its_place() -> None:
    """Its attributes may come in another order, or fewer of them; those that are gone leave no column."""
    tracker = LayoutTracker[str](lambda key: [*map(column, key)])
    first, values = tracker.place(["ab", "1c"], [1.0, 2.0, 3.0, 4.0])
    assert list(values) == [1.0, 2.0, 4.0]
    layout, values = tracker.place(["c1", "ba"], [5.0, 6.0, 7.0, 8.0])
    expected = {column("a"): 8.0, column("b"): 7.0, column("c"): 5.0}
    assert dict(zip(layout.columns, values, strict=True)) == expected
    assert {*layout.columns} == {*first.columns}
    layout, values = tracker.place(["b"], [9.0])
    assert (layout.columns, [*values]) == ((column("b"),), [9.0])


CROWD = [f"name-{at}" for at in range(60)]


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abcABC12"), max_size=4), st.lists(st.sampled_from(CROWD), max_size=5)),
        max_size=6,
    )
)
def test_a_few_of_many_come_and_go(steps: list[tuple[list[str], list[str]]]) -> None:
    """The others keep their columns, and most of them their places; each number is in the place of its column."""
    tracker = LayoutTracker(columns)
    before: dict[BeanColumn, BeanColumn] = {}
    for passing, absent in steps:
        keys = [*passing, *(name for name in CROWD if name not in absent)]
        values = [float(at) for at in range(len(keys))]
        layout, placed = tracker.place(keys, values)
        expected = {found: value for key, value in zip(keys, values, strict=True) if (found := column(key))}
        assert dict(zip(layout.columns, placed, strict=True)) == expected
        crowd = {each: each for each in layout.columns if "name" in str(each)}
        assert all(before.get(each, each) is each for each in crowd)
        before = crowd


def layout_of(*ids: str) -> BeanLayout:
    beans = [{"type": "Produce"}, *({"type": "app-info", "id": each} for each in ids)]
    return BeanLayout(tuple(BeanColumn(Bean.of("kafka.server", each), "StartTimeMs") for each in beans))


@pytest.mark.parametrize(
    ("configured", "reported", "found"),
    [
        (None, ["7"], "7"),
        # something else in the same JVM may register itself, too; of two numbers the smaller one counts
        (None, ["<b>", "10", "9", "²", "1" * 5_000], "9"),
        ("3", [], "3"),
        ("3", ["3"], "3"),
    ],
)
def test_the_node_reports_its_id(configured: str | None, reported: list[str], found: str) -> None:
    """Kafka registers its version under its id, which may become another one; the configured one counts where an agent says none."""
    node, layout = NodeId(configured), layout_of(*reported)
    assert (node.of(layout), node.of(layout)) == (found, found)
    if configured is None:
        assert node.of(layout_of("8")) == "8"


@pytest.mark.parametrize(
    ("configured", "reported", "reason"),
    [("3", ["7"], "node 7, but this source should be node 3"), (None, [], "configure node_id")],
)
def test_another_id_or_none_is_an_error(configured: str | None, reported: list[str], reason: str) -> None:
    """It is not the agent that was meant; without an id the label `broker` would be made up."""
    with pytest.raises(SourceUnreadable, match=reason):
        NodeId(configured).of(layout_of(*reported))
