"""Keys of a terminal, and what they choose."""

import pytest

from quotascope.cli.top.choices import (
    BACKSPACE,
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    PAGE_DOWN,
    PAGE_UP,
    UP,
    Choices,
    TopOrder,
    TopType,
)
from quotascope.cli.top.keyboard import keys_in


def after(*keys: str) -> Choices:
    """The choices after some keys."""
    choices = Choices()
    for key in keys:
        choices = choices.pressed(key)
    return choices


def test_keys_go_through_orders_and_types() -> None:
    """And round again."""
    assert after("s").order is TopOrder.DELAY
    assert after(*"ssss").order is TopOrder.USED
    assert after("t").kind is TopType.PRODUCE
    assert after(*"ttttt").kind is TopType.ALL


def test_a_filter_is_typed_kept_and_dropped() -> None:
    """While it is typed, letters are no commands."""
    assert after(*"/qs") == Choices(text="qs", typing=True)
    assert after(*"/as", BACKSPACE, ENTER) == Choices(text="a")
    assert after(*"/as", ESCAPE) == Choices()
    assert after(*"/as", ENTER, ESCAPE) == Choices()
    assert after("/", UP, "\x01", *"x" * 99).text == "x" * 60


def test_scrolling_ends_at_the_top() -> None:
    """What is below the last row is the screen's to know."""
    assert after(DOWN, "j", PAGE_DOWN, " ").first == 22
    assert after(DOWN, UP, "k").first == 0
    assert after(PAGE_DOWN, HOME).first == 0
    assert after(PAGE_DOWN, "s").first == 0


@pytest.mark.parametrize(
    ("keys", "rows"),
    [((UP, "k"), -1), ((DOWN, "j"), 1), ((PAGE_UP,), -10), ((PAGE_DOWN, " "), 10), ((HOME,), -50), (("x", "\n"), 0)],
)
def test_keys_scroll_by_rows_and_pages(keys: tuple[str, ...], rows: int) -> None:
    """Letters as arrows, the space bar as the key for the next page; others not at all."""
    assert {Choices(first=50).pressed(key).first for key in keys} == {50 + rows}


@pytest.mark.parametrize("keys", ["q", "/x"])
def test_it_ends_by_q_or_whenever_it_has_to(keys: str) -> None:
    """A signal ends it even while a filter is typed; an unknown key does nothing."""
    assert after(*keys, END).over
    assert after("?", "\n") == Choices()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("sq", ["s", "q"]),
        ("\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        ("\x1b[5~\x1b[6~\x1b[1~", ["page up", "page down", "home"]),
        ("\x1b", ["escape"]),
        ("/ä😀\r", ["/", "ä", "😀", "enter"]),
        ("\x7f\x08\x04", ["backspace", "backspace", "end"]),
        ("\x1b[15~\x1b[1;5Cx", ["x"]),
    ],
)
def test_keys_are_distinguished(text: str, keys: list[str]) -> None:
    """Unknown ones are not taken for characters."""
    assert keys_in(text) == keys
