from quotascope.clients.throttling import Readiness

NOW_MS = 1_700_000_000_000


def test_patience_lasts_for_the_request_timeout() -> None:
    """A node that is not ready is given up when the request timeout is over, counted from the first look."""
    node = Readiness(30_000)
    assert not node.overdue(NOW_MS)
    assert not node.overdue(NOW_MS + 29_999)
    assert node.overdue(NOW_MS + 30_000)


def test_patience_starts_anew() -> None:
    """After a node was given up, or was ready, its next wait counts from its own start."""
    node = Readiness(30_000)
    assert not node.overdue(NOW_MS)
    assert node.overdue(NOW_MS + 40_000)
    assert not node.overdue(NOW_MS + 40_000)
    assert node.ready(NOW_MS + 50_000) == 20_000
    assert not node.overdue(NOW_MS + 80_000)


def test_a_request_has_what_the_wait_has_left() -> None:
    """The wait for readiness uses up the request's timeout."""
    node = Readiness(30_000)
    assert node.ready(NOW_MS) == 30_000
    node.overdue(NOW_MS)
    assert node.ready(NOW_MS + 10_000) == 20_000
    assert node.ready(NOW_MS + 10_000) == 30_000
