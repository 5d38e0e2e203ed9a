from __future__ import annotations

from functools import partial

from quotascope.exporter.web.connection import Guests


def test_a_new_one_gets_the_place_of_whoever_waited_longest() -> None:
    """Waiting keeps nobody else out."""
    shown_out: list[str] = []
    guests = Guests(2)
    for name in "abc":
        assert guests.enter(name, partial(shown_out.append, name))
    assert shown_out == ["a"]
    guests.asks("b")
    guests.waits("b")  # it waits since now, and c has waited longer
    assert guests.enter("d", partial(shown_out.append, "d"))
    assert shown_out == ["a", "c"]
    assert len(guests) == 2


def test_nobody_who_is_being_answered_is_shown_out() -> None:
    """Then there is no room for another one, until somebody leaves."""
    guests = Guests(1)
    assert guests.enter("a", lambda: None)
    guests.asks("a")
    assert guests.asking == 1
    assert not guests.enter("b", lambda: None)
    guests.leave("a")
    assert guests.asking == 0
    assert guests.enter("b", lambda: None)


def test_who_is_gone_is_gone() -> None:
    """Whatever is still told of it."""
    guests = Guests(1)
    guests.asks("a")
    guests.waits("a")
    guests.leave("a")
    assert len(guests) == 0
