from __future__ import annotations

from quotascope.exporter.cardinality.lasting import Lasting


def test_what_is_asked_for_lasts() -> None:
    """For as long as somebody asks now and then."""
    known: Lasting[str, int] = Lasting(10)
    known.forget(0)
    known.set("a", 1)
    for at in range(0, 1_000, 9):
        known.forget(at)
        assert known.get("a") == 1


def test_what_nobody_asks_for_is_forgotten() -> None:
    """Not at once, but after two periods at the latest."""
    known: Lasting[str, int] = Lasting(10)
    for at, size in ((0, 1), (9, 1), (10, 1), (19, 1), (20, 0)):
        known.forget(at)
        if at == 0:
            known.set("a", 1)
        assert (at, len(known)) == (at, size)
    assert known.get("a") is None


def test_a_clock_that_is_set_back_keeps_nothing_for_ever() -> None:
    """Time passes, wherever to."""
    known: Lasting[str, int] = Lasting(10)
    known.forget(1_000)
    known.set("a", 1)
    known.forget(0)
    known.forget(10)
    assert len(known) == 0
