import pytest

from quotascope.clients.topic_admin import TopicFound, TopicShape
from quotascope.pipeline.errors import BadOption, OtherTopic
from quotascope.pipeline.request_topic import Ensured, ensure, shape_of

THERE = TopicFound(partitions=3, replication_factor=1)
NOTHING_SAID = shape_of(None, None, None)


class Topics:
    def __init__(self, *existing: TopicFound | None, created: TopicFound | None = None) -> None:
        self._found = list(existing)
        self._made = created
        self.asked: list[tuple[str, TopicShape, int]] = []

    def find(self, _: str) -> TopicFound | None:
        return self._found.pop(0)

    def create(self, name: str, shape: TopicShape, timeout_ms: int) -> TopicFound | None:
        self.asked.append((name, shape, timeout_ms))
        return self._made

    def close(self) -> None:
        """Close nothing."""


def test_missing_topic_is_made() -> None:
    """A topic is created as requested, within the time limit; numbers that are not given are the cluster's."""
    topics = Topics(None, created=THERE)
    shape = shape_of(3, 1, 48)
    assert ensure(topics, "log", shape, 60_000) == Ensured(topic=THERE, created=True)
    assert topics.asked == [("log", shape, 60_000)]
    assert shape.configs == {"retention.ms": "172800000"}
    assert TopicShape() == NOTHING_SAID


@pytest.mark.parametrize("shape", [NOTHING_SAID, shape_of(3, 1, 1), shape_of(3, None, 1)])
def test_topic_that_is_there_stays_as_it_is(shape: TopicShape) -> None:
    """An existing topic is not created again, and its retention is its owner's business."""
    topics = Topics(THERE)
    assert ensure(topics, "log", shape, 1) == Ensured(topic=THERE, created=False)
    assert topics.asked == []


@pytest.mark.parametrize(
    ("shape", "differences"),
    [
        (shape_of(12, None, None), "3 partitions, not 12;"),
        (shape_of(None, 3, None), "1 replicas, not 3;"),
        (shape_of(12, 3, None), "3 partitions, not 12 and 1 replicas, not 3;"),
    ],
)
def test_other_numbers_are_reported(shape: TopicShape, differences: str) -> None:
    """A topic with other numbers is reported with the differences alone, and not changed."""
    with pytest.raises(OtherTopic, match=f"topic log is there with {differences}"):
        ensure(Topics(THERE), "log", shape, 1)


def test_another_program_was_quicker() -> None:
    """A topic that another program created is checked, unless the brokers do not know it yet."""
    with pytest.raises(OtherTopic):
        ensure(Topics(None, THERE), "log", shape_of(12, None, None), 1)
    unknown = TopicFound(partitions=None, replication_factor=None)
    assert ensure(Topics(None, None), "log", shape_of(12, None, None), 1) == Ensured(topic=unknown, created=False)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a\n", "a/b", "ä", "a" * 250])
def test_impossible_names_are_reported_at_once(name: str) -> None:
    """Impossible names of topics are reported without asking Kafka."""
    with pytest.raises(BadOption, match="cannot name a topic"):
        ensure(Topics(), name, NOTHING_SAID, 1)
