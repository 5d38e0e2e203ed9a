from __future__ import annotations

from typing import cast

from quotascope.exporter.web.connection import ConnectionPool, HttpConnection


class Waiting:
    """A connection that only notes that it was cut."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.was_cut = False
        self.seen = cast("HttpConnection", self)
        """As the pool sees it."""
        self.entered = pool.enter(self.seen)

    def cut(self) -> None:
        """Note it."""
        self.was_cut = True


def test_a_new_connection_replaces_the_one_that_waited_longest() -> None:
    """How long it waits counts from its last answer."""
    pool = ConnectionPool(2)
    first, second, third = (Waiting(pool) for _ in range(3))
    assert [each.was_cut for each in (first, second, third)] == [True, False, False]
    pool.answer(second.seen)
    pool.wait(second.seen)
    assert Waiting(pool).entered
    assert (second.was_cut, third.was_cut) == (False, True)
    assert len(pool) == 2


def test_a_connection_that_is_answered_is_not_replaced() -> None:
    """Until it leaves, a new one is refused; what comes for one that left changes nothing."""
    pool = ConnectionPool(1)
    only = Waiting(pool)
    pool.answer(only.seen)
    assert pool.answering == 1
    assert not Waiting(pool).entered
    assert not only.was_cut
    pool.leave(only.seen)
    pool.answer(only.seen)
    pool.wait(only.seen)
    assert (len(pool), pool.answering) == (0, 0)
    assert Waiting(pool).entered
