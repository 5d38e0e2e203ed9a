"""On which side of a window's end a request fell is read from the answers that follow."""

import pytest
from tests.replay_check.requests import T0, request
from tools.replay_check.broker import ReplayedBroker
from tools.replay_check.moments import Moments, Move, explained, moved
from tools.replay_check.rules import RulesInForce

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


@pytest.mark.parametrize(
    ("error_ms", "found"), [(0, {}), (1, {1: 1}), (4, {1: 4}), (5, {}), (-1, {2: 1}), (-2, {2: 2}), (-3, {})]
)
def test_a_windows_beginning_lies_within_its_handlers_time(error_ms: int, found: dict[int, int]) -> None:
    """Of 3 ms, and one for the log's rounding; what is longer is no matter of clocks. Shorter by two ms at most, the answer's own moment is off."""
    moments = Moments()
    moments.charged("s", T0, request(1, thread_ns=3_000_000))
    moments.answered("s", T0, request(2, decided_ms=T0 + 10), error_ms)
    assert moments.found == found


def test_the_first_answer_settles_a_window() -> None:
    """Later ones are held against it, by the two ms that their own moments may be off."""
    moments = Moments()
    moments.charged("s", T0, request(1, thread_ns=3_000_000))
    for line, error_ms in ((2, 3), (3, 3), (4, 4), (5, 1), (6, 0), (7, 6)):
        moments.answered("s", T0, request(line, decided_ms=T0 + line), error_ms)
    assert moments.found == {1: 3, 4: -1, 5: 2}


def test_no_quota_has_anything_against_a_request_at_first() -> None:
    """Without rules and before anything came from a controller, all throttles are 0."""
    decided = ReplayedBroker(RulesInForce(quotas={}), {}, T0).decide(request(), None)
    assert (decided.bytes_ms, decided.request_ms, decided.mutation_ms) == (0, 0, 0)
