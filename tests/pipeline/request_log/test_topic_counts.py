"""Partitions by topic and time."""

from hypothesis import given
from hypothesis import strategies as st

from quotascope.pipeline.request_log.topic_counts import TopicCounts


def test_before() -> None:
    """What counts is the last event strictly before; a snapshot is before all of them."""
    counts = TopicCounts({"t": 2})
    counts.learn("t", 100, 5)
    counts.learn("t", 200, 0)
    found = [counts.before("t", at) for at in (-5, 100, 101, 200, 201)]
    assert found == [2, 2, 5, 5, None]
    assert counts.before("u", 100) is None
    assert counts.before(None, 100) is None


@given(st.permutations([(1, 3), (2, 5), (3, 0), (4, 7), (2, 5)]))
def test_any_order(events: list[tuple[int, int]]) -> None:
    """The order in which events are learned changes nothing."""
    counts = TopicCounts()
    for at, partitions in events:
        counts.learn("t", at, partitions)
    assert [counts.before("t", at) for at in range(1, 6)] == [None, 3, 5, None, 7]
