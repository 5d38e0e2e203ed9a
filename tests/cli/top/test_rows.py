from tests.cli.usages import usage_of

from quotascope.cli.top.choices import Choices, Kind, Order
from quotascope.cli.top.rows import chosen
from quotascope.exporter.snapshot import Columns

FULL = usage_of("carol", "c", usage=990.0)
SLOW = usage_of("bob", "b", usage=500.0, throttle_time_seconds=3.0)
IDLE = usage_of("Alice", "", usage=1.0)
FREE = usage_of("dave", "d", limit=None)
ALL = (IDLE, FREE, FULL, SLOW)


def names(choices: Choices) -> list[str]:
    """The users that are shown, in their order."""
    return [usage.entity.user for usage in chosen(Columns.of(ALL).usages, choices)]


def test_each_order() -> None:
    """The fullest, the longest delayed, by name, the largest."""
    assert names(Choices()) == ["carol", "bob", "Alice"]
    assert names(Choices(order=Order.DELAY)) == ["bob", "carol", "Alice"]
    assert names(Choices(order=Order.NAME)) == ["Alice", "bob", "carol"]
    assert names(Choices(order=Order.USAGE)) == ["carol", "bob", "Alice"]


def test_only_those_of_a_type_or_name() -> None:
    """In either case of letters, in user or client id."""
    assert names(Choices(kind=Kind.FETCH)) == []
    assert names(Choices(kind=Kind.PRODUCE, text="ALI")) == ["Alice"]
    assert names(Choices(text="c")) == ["carol", "Alice"]


def test_the_throttled_are_shown_even_without_a_limit_of_their_own() -> None:
    """Such as by a quota on mutations, which hides behind requests."""
    throttled = usage_of("eve", limit=None, throttle_time_seconds=1.0)
    rows = Columns.of([throttled, FREE]).usages
    assert chosen(rows, Choices()) == [throttled]
