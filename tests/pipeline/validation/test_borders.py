"""On which side of a window's end a request fell is read from the answers that follow."""

from tests.pipeline.validation.requests import T0, request

from quotascope.pipeline.validation.borders import Move, explained, moved
from quotascope.pipeline.validation.moments import Moments

EARLIER = Move(first=True, earlier_ms=1)
LATER = Move(first=False, earlier_ms=-1)


def _moments() -> Moments:
    """Two windows of one sensor: line 1 began the first, 3 the second, 2 came before it; 4 and those after it are measured from the second."""
    moments = Moments()
    later = [(line, 3) for line in range(4, 31)]
    for line, oldest in ((1, 1), (2, 1), (3, 1), *later):
        at_ms = T0 + line
        moments.charged("s", T0 + oldest, request(line, decided_ms=at_ms))
    return moments


def test_the_requests_beside_the_oldest_windows_beginning_are_tried() -> None:
    """The one that began the window may belong to the one before, and the last one before may have begun it."""
    moments = _moments()
    assert moved({4, 5}, moments, EARLIER) == {"s": 3}
    assert moved({4, 5}, moments, LATER) == {"s": 2}


def test_nothing_came_before_the_first_window() -> None:
    """Then there is nothing to move."""
    moments = _moments()
    assert moved({1, 2}, moments, EARLIER) == {"s": 1}
    assert moved({1, 2}, moments, LATER) == {}


def test_a_single_answer_moves_nothing() -> None:
    """It could be right by chance."""
    assert moved({4}, _moments(), EARLIER) == {}


def test_where_much_is_wrong_nothing_is_moved() -> None:
    """That a ms is wrong explains a few answers; of many, the limit is wrong."""
    assert moved({4, 5, 6}, _moments(), EARLIER) == {"s": 3}
    assert moved({4, 5, 6, 7}, _moments(), EARLIER) == {}


def test_two_answers_have_to_be_put_right() -> None:
    """One answer more or less is no reason to move a request, and neither is what other sensors say."""
    moments = _moments()
    assert explained({4, 5}, set(), moments) == {"s"}
    assert explained({4, 5}, {5}, moments) == frozenset()
    assert explained({4, 5, 99}, {4, 5}, moments) == frozenset()
