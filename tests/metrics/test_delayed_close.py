"""Refused connections that are kept open for a while."""

from quotascope.metrics import DelayedClose


def test_nothing_is_closed_before_the_latest_is_due() -> None:
    """Kafka's queue looks at the latest deadline first."""
    sockets: DelayedClose[str] = DelayedClose()
    for connection, end_ms in (("a", 100), ("c", 300), ("b", 200)):
        sockets.add(connection, end_ms)
    assert sockets.due(299) == []
    assert sockets.due(301) == ["c", "b", "a"]
    assert len(sockets) == 0


def test_each_can_be_closed_when_it_is_due() -> None:
    """For those who do not want to keep refused connections."""
    sockets: DelayedClose[str] = DelayedClose(earliest_first=True)
    for connection, end_ms in (("c", 300), ("a", 100), ("b", 200)):
        sockets.add(connection, end_ms)
    assert sockets.due(201) == ["a", "b"]
    assert len(sockets) == 1


def test_is_due_after_the_deadline() -> None:
    """Not at it."""
    sockets: DelayedClose[str] = DelayedClose()
    sockets.add("a", 100)
    assert sockets.due(100) == []
    assert sockets.due(101) == ["a"]


def test_connections_need_no_order() -> None:
    """Those with the same deadline come in the order of their refusal."""
    sockets: DelayedClose[object] = DelayedClose()
    first, second = object(), object()
    sockets.add(first, 100)
    sockets.add(second, 100)
    assert sockets.due(101) == [first, second]


def test_an_acceptor_that_stops_closes_all() -> None:
    """Due or not."""
    sockets: DelayedClose[str] = DelayedClose()
    sockets.add("a", 100)
    assert sockets.clear() == ["a"]
    assert sockets.clear() == []
