"""The requests of a log as intervals of waiting and of holding a handler thread, and the division of the waits."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.requests import FETCH, Request

from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.pipeline.blame.intervals import COLUMNS, Group, Intervals, Place, intervals, merged
from quotascope.pipeline.blame.waits import MARGIN_US, NOT_LOGGED, divided
from quotascope.pipeline.request_log.schema import REQUESTS

from ..replay.ways import WAYS, kernels

SCHEMA = pa.schema([REQUESTS.field(name) for name in (*COLUMNS, "traffic")])
ROW = Request(api_key=FETCH, request_us=1_500, network_us=100).row(
    completed=1_000,
    listener="PLAINTEXT",
    queue_time_ms=2.25,
    remote_time_ms=500.0,
    response_queue_time_ms=0.2,
    traffic=[],
)


def made(*changes: dict[str, Any]) -> Intervals:
    return intervals(pa.Table.from_pylist([ROW | change for change in changes], SCHEMA), {"A1": "orders"})


def test_a_thread_is_held_before_purgatory_and_after_the_queue() -> None:
    """A thread is held from the queue's end to the purgatory's begin."""
    result = made({})
    assert result.released.tolist() == [1_000_000 - 100 - 200 - 500_000]
    assert result.dequeued.tolist() == [499_700 - 1_500]
    assert result.enqueued.tolist() == [498_200 - 2_250]


@pytest.mark.parametrize("name", ["queue_time_ms", "remote_time_ms", "response_queue_time_ms"])
@pytest.mark.parametrize("value", [None, -1.0, float("nan"), float("inf"), 1e9])
def test_an_unknown_duration_is_counted_and_never_zero(name: str, value: object) -> None:
    """The waits of each broker are divided separately."""
    result = made({}, {name: value}, {name: value, "broker": "2"})
    assert (len(result), result.unknown.tolist()) == (1, [1, 1])


@pytest.mark.parametrize(
    ("traffic", "topic"),
    [
        (None, ""),
        ([], ""),
        ([("a", "A", 5), ("b", "B", 7), ("c", "C", 7)], "b"),
        ([("a", "A", None), ("b", "B", 1)], "b"),
        ([(None, "QUJD", 5), ("b", "B", 1)], "id:QUJD"),
        ([(None, "A1", 5), (None, "B", 1)], "orders"),
    ],
)
def test_the_topic_is_the_one_with_most_bytes(traffic: Any, topic: str) -> None:
    """The topic of a request is the one with most bytes, or the first of equals, by its id if it has no name."""
    entries = traffic and [dict(zip(("topic", "id", "bytes"), topic_bytes, strict=True)) for topic_bytes in traffic]
    result = made({"traffic": [{"topic": "z", "id": "Z", "bytes": 9}]}, {"traffic": entries})
    assert result.names[result.groups[1]] == Group("alice", "app", 1, topic)


def test_controllers_have_handler_threads_of_their_own() -> None:
    """A listener that is a controller's in one part of the rows is a controller's in all parts."""
    result = merged(
        [
            made({}, {"listener": "TLS"}, {"listener": "CONTROLLER"}),
            made({"listener": "CONTROLLER", "api_key": ApiKey.BROKER_HEARTBEAT.value}),
            made({"broker": "2", "user": "bob\n<b>"}),
        ]
    )
    assert result.pools[0] == ["1", "1 controller", "2"]
    assert [len(result.of_pool(name)) for name in result.pools[0]] == [2, 2, 1]
    assert len(result.of_pool("3")) == 0


@pytest.mark.parametrize("key", [ApiKey.ENVELOPE, ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.ALTER_PARTITION])
def test_the_controller_of_zookeeper_is_a_broker(key: ApiKey) -> None:
    """A controller in ZooKeeper mode has one pool for requests of brokers and of clients."""
    assert made({}, {"api_key": key.value}).pools[0] == ["1"]


Waiting = tuple[int, int, int, int]
"""When it was enqueued, its wait and its holding, us; its group."""
Sums = Counter[tuple[int, int, int]]
"""ns by slot, victim and culprit."""
SLOT_US = 5_000
END_US = 1_000_000
SOME = st.lists(
    st.tuples(
        st.integers(1_000, 30_000),
        st.sampled_from([0, 1, 40, 700, 3_000, 12_345]),
        st.sampled_from([0, 1, 90, 1_500, 20_000]),
        st.integers(0, 3),
    ),
    max_size=40,
)


def intervals_of(requests: list[Waiting]) -> Intervals:
    ordered = sorted(requests, key=lambda each: each[0] + each[1])
    enqueued, waits, holdings, groups = np.asarray(ordered, np.int64).reshape(-1, 4).T
    return Intervals(
        enqueued=np.ascontiguousarray(enqueued),
        dequeued=enqueued + waits,
        released=enqueued + waits + holdings,
        groups=groups.astype(np.int32),
        places=np.zeros(len(ordered), np.int32),
        rows=np.arange(len(ordered)),
        names=[Group(f"u{number}", "", 0, "") for number in range(4)],
        listeners=[Place("1", "A")],
        controllers=frozenset(),
        unknown=np.zeros(1, np.int64),
    )


def sums(*parts: pa.Table) -> Sums:
    result: Sums = Counter()
    for part in parts:
        for row in part.to_pylist():
            result[row["slot"], row["victim"], row["culprit"]] += row["wait_ns"]
    return result


def every_pair(requests: list[Waiting], threads: int) -> Sums:
    result: Sums = Counter()
    for number, (enqueued, wait, holding, victim) in enumerate(requests):
        taken = enqueued + wait
        cuts = sorted({enqueued, taken, *range(-(-enqueued // SLOT_US) * SLOT_US, taken, SLOT_US)})
        for at_first, at_last in pairwise(cuts):
            begin, end, length = at_first - MARGIN_US, at_last + MARGIN_US, at_last - at_first
            held: Counter[int] = Counter()
            for other, (start, waited, held_for, culprit) in enumerate(requests):
                if other != number:
                    held[culprit] += max(0, min(start + waited + held_for, end) - max(start + waited, begin))
            room = threads * (end - begin) - max(0, min(taken + holding, end) - taken)
            whole = max(sum(held.values()), room)
            parts = {culprit: floor(1_000 * length * (us / whole)) for culprit, us in held.items()}
            parts[NOT_LOGGED] = 1_000 * length - sum(parts.values())
            assert parts[NOT_LOGGED] >= 0
            result.update({(at_first // SLOT_US, victim, culprit): ns for culprit, ns in parts.items() if ns})
    return result


@pytest.mark.parametrize("way", WAYS)
@given(requests=SOME, threads=st.integers(1, 3))
def test_each_pair_of_requests_gives_the_same(way: str, requests: list[Waiting], threads: int) -> None:
    """The parts of all waits add up to the waits."""
    with kernels(way):
        result = sums(*divided(intervals_of(requests), threads, 0, END_US, SLOT_US))
    assert result == every_pair(requests, threads)
    assert result.total() == 1_000 * sum(wait for _, wait, _, _ in requests)


@pytest.mark.parametrize("way", WAYS)
def test_many_groups_and_a_long_queue(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long queue of many groups is summed in parts when they exceed the memory for them."""
    monkeypatch.setattr("quotascope.pipeline.blame.waits._MOST_PARTS", 10_000)
    requests = [(1_000 + 10 * n, 5_000 * n, 5_000, n % 4) for n in range(300)]
    waiting = intervals_of(requests)
    names = [Group(f"u{number}", "", 0, "") for number in range(300)]
    many = replace(waiting, names=names, groups=np.arange(300, dtype=np.int32))
    with kernels(way):
        parts = [*divided(many, 1, 0, 1 << 40, SLOT_US)]
    result = sums(*parts)
    assert len(result) > 40_000
    assert len(parts) > 4
    assert result.total() == 1_000 * sum(wait for _, wait, _, _ in requests)


def test_a_lone_holder_is_blamed_for_all_but_the_margins() -> None:
    """
    A request that held the only thread is blamed for all of a wait except the margins.

    Of 101 ms, margins included, 99.5 ms are its own and 0.5 ms the waiting request's.
    """
    result = sums(*divided(intervals_of([(0, 0, 100_000, 1), (0, 100_000, 9_000, 2)]), 1, 0, END_US, END_US))
    assert result[0, 2, 1] == floor(1e8 * (100_000 / 100_500))
