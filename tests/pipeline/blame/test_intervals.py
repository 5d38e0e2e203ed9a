"""The requests of a log as intervals of waiting and of holding a handler thread."""

from typing import Any

import pyarrow as pa
import pytest

from quotascope.metrics.protocol import ApiKey
from quotascope.pipeline.blame.intervals import Group, Intervals, intervals, together
from quotascope.pipeline.request_log.schema import TOPIC_ID, TRAFFIC

KINDS: dict[str, pa.DataType] = {
    "completed": pa.int64(),
    **dict.fromkeys(("broker", "listener", "user", "client_id"), pa.string()),
    "api_key": pa.int16(),
    **dict.fromkeys(("thread_time_ms", "network_time_ms", "queue_time_ms", "remote_time_ms", "response_queue_time_ms"), pa.float64()),
    "traffic": pa.list_(TRAFFIC),
    "topic_ids": pa.list_(TOPIC_ID),
}  # fmt: skip
SCHEMA = pa.schema(KINDS)
ROW = {
    "completed": 1_000,
    "broker": "1",
    "listener": "PLAINTEXT",
    "user": "alice",
    "client_id": "app",
    "api_key": ApiKey.FETCH.value,
    "thread_time_ms": 1.5,
    "network_time_ms": 0.1,
    "queue_time_ms": 2.25,
    "remote_time_ms": 500.0,
    "response_queue_time_ms": 0.2,
    "traffic": [],
}


def made(*changes: dict[str, Any]) -> Intervals:
    """The intervals of rows that differ from `ROW` by so much."""
    return intervals(pa.Table.from_pylist([ROW | each for each in changes], SCHEMA))


def test_a_thread_is_held_before_purgatory_and_after_the_queue() -> None:
    """The line's time, less what was after each of the two."""
    found = made({})
    assert found.released.tolist() == [1_000_000 - 100 - 200 - 500_000]
    assert found.dequeued.tolist() == [499_700 - 1_500]
    assert found.enqueued.tolist() == [498_200 - 2_250]


@pytest.mark.parametrize("name", ["queue_time_ms", "remote_time_ms", "response_queue_time_ms"])
@pytest.mark.parametrize("value", [None, -1.0, float("nan"), float("inf"), 1e9])
def test_an_unknown_duration_is_counted_and_never_zero(name: str, value: object) -> None:
    """Of each broker."""
    found = made({}, {name: value}, {name: value, "broker": "2"})
    assert (len(found), found.unknown.tolist()) == (1, [1, 1])


def test_rows_of_an_older_table_are_unknown() -> None:
    """Their columns are missing."""
    rows = pa.Table.from_pylist([ROW], SCHEMA).drop_columns(["queue_time_ms", "remote_time_ms", "traffic"])
    assert (len(intervals(rows)), intervals(rows).unknown.tolist()) == (0, [1])


@pytest.mark.parametrize(
    ("traffic", "topic"),
    [
        (None, None),
        ([], None),
        ([("a", "A", 5), ("b", "B", 7), ("c", "C", 7)], "b"),
        ([("a", "A", None), ("b", "B", 1)], "b"),
        ([(None, "QUJD", 5), ("b", "B", 1)], "id:QUJD"),
    ],
)
def test_the_topic_is_the_one_with_most_bytes(traffic: Any, topic: str | None) -> None:
    """The first of several with as many; its id where it has no name."""
    entries = traffic and [dict(zip(("topic", "id", "bytes"), each, strict=True)) for each in traffic]
    found = made({"traffic": [{"topic": "z", "id": "Z", "bytes": 9}]}, {"traffic": entries})
    assert found.names[found.groups[1]] == Group("alice", "app", 1, topic)


def test_controllers_have_handler_threads_of_their_own() -> None:
    """A listener is a controller's in all parts if it is in one."""
    found = together(
        [
            made({}, {"listener": "TLS"}, {"listener": "CONTROLLER"}),
            made({"listener": "CONTROLLER", "api_key": ApiKey.BROKER_HEARTBEAT.value}),
            made({"broker": "2", "user": "bob\n<b>"}),
        ]
    )
    assert found.pools[0] == ["1", "1 controller", "2"]
    assert [len(found.of_pool(name)) for name in found.pools[0]] == [2, 2, 1]
    assert len(found.of_pool("3")) == 0


@pytest.mark.parametrize("key", [ApiKey.ENVELOPE, ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.ALTER_PARTITION])
def test_the_controller_of_zookeeper_is_a_broker(key: ApiKey) -> None:
    """It has one pool for the requests of brokers and of clients."""
    assert made({}, {"api_key": key.value}).pools[0] == ["1"]


def test_an_id_is_named_by_any_part() -> None:
    """As a Metadata response in another file does; and an id without a name stays one."""
    traffic = [{"traffic": [{"topic": None, "id": each, "bytes": 1}]} for each in "AB"]
    known = made({"topic_ids": [{"topic": "orders", "id": "A"}, {"topic": None, "id": "B"}]})
    found = together([made(*traffic), known])
    assert [name.topic for name in found.names] == [None, "id:B", "orders"]


def test_parts_together_are_the_whole() -> None:
    """However rows are cut."""
    rows = [{"completed": 1_000 + number * 7 % 5, "user": f"u{number % 3}"} for number in range(10)]
    whole, halves = made(*rows), together([made(*rows[:4]), made(*rows[4:]), made()])
    for column in ("enqueued", "dequeued", "released"):
        assert getattr(whole, column).tolist() == getattr(halves, column).tolist()
    assert sorted(whole.names[group] for group in whole.groups) == sorted(
        halves.names[group] for group in halves.groups
    )
