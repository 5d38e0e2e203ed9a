from __future__ import annotations

from typing import cast

from quotascope.exporter.web.connection import ConnectionPool, HttpConnection


class Waiting:
    """A connection that only notes that it was cut."""

    def __init__(self) -> None:
        self.was_cut = False

    def cut(self) -> None:
        """Note it."""
        self.was_cut = True


def entered(pool: ConnectionPool) -> tuple[HttpConnection, Waiting] | None:
    """A new connection; None when there was no room for it."""
    made = Waiting()
    connection = cast("HttpConnection", made)
    return (connection, made) if pool.enter(connection) else None


def test_a_new_connection_replaces_the_one_that_waited_longest() -> None:
    """How long it waits counts from its last answer."""
    pool = ConnectionPool(2)
    (_, a), (b, second), (_, c) = (entered(pool) or ((), ()) for _ in range(3))
    assert (a.was_cut, second.was_cut, c.was_cut) == (True, False, False)
    pool.answer(b)
    pool.wait(b)
    assert entered(pool)
    assert (second.was_cut, c.was_cut) == (False, True)
    assert len(pool) == 2


def test_a_connection_that_is_answered_is_not_replaced() -> None:
    """Until it leaves, a new one is refused; what comes for one that left changes nothing."""
    pool = ConnectionPool(1)
    connection, made = entered(pool) or ((), ())
    pool.answer(connection)
    assert pool.answering == 1
    assert entered(pool) is None
    assert not made.was_cut
    pool.leave(connection)
    pool.answer(connection)
    pool.wait(connection)
    assert (len(pool), pool.answering) == (0, 0)
    assert entered(pool)
