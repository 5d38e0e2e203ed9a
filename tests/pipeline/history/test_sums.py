"""Charges of requests to quotas, and sums by second and by topic, to the last digit."""

from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.requests import START_MS
from tests.pipeline.history.requests import requests

from quotascope.pipeline.episodes import EPISODES
from quotascope.pipeline.errors import IncompleteRequests
from quotascope.pipeline.history import HISTORY, ROLLUP, history_of, rollup
from quotascope.pipeline.history.connections import CONNECTIONS
from quotascope.pipeline.replay import RESULTS
from quotascope.pipeline.request_log.schema import QUARANTINE, REQUESTS
from quotascope.pipeline.runs.shadow import SHADOW
from quotascope.pipeline.topics import TOPICS, topics_of

THREADS = {"thread_time_ms": 0.5, "network_time_ms": 0.25}
UNCHARGED = dict.fromkeys((*THREADS, "produce_bytes", "fetch_bytes", "mutations", "mutations_charged"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"api_key": 0, "produce_bytes": 812}, THREADS | {"produce_bytes": 812}),
        ({"api_key": 1, "fetch_bytes": 4_000}, THREADS | {"fetch_bytes": 4_000}),
        # a throttled Fetch's size is unknown, and its wait is kept
        ({"api_key": 1, "throttle_ms": 250}, THREADS | {"throttle_ms": 250}),
        # thread time of requests that brokers exempt is not charged, that of a Heartbeat is
        ({"api_key": 56}, {}),
        ({"api_key": 12}, THREADS),
        # whatever a request does to partitions, what was refused is distinguished from what was charged
        *(
            (
                {"api_key": 19, kind: 30, "mutations_charged": 12, "mutation_timestamp": START_MS - 1, "refused": True},
                THREADS
                | {"mutations": 30, "mutations_charged": 12, "mutation_timestamp": START_MS - 1, "refused": True},
            )
            for kind in ("partitions_created", "partitions_added", "partitions_deleted")
        ),
        # a DeleteTopics of topics whose partitions are unknown charges an unknown number, not none
        ({"api_key": 20, "mutations_known": False}, THREADS),
        # a controller's line of a forwarded request that came first charges the mutations, and the client's line the
        # thread time
        (
            {
                "api_key": 19,
                "forwarded": True,
                "partitions_created": 3,
                "mutations_charged": 3,
                "mutation_timestamp": 1,
            },
            {"mutations": 3, "mutations_charged": 3},
        ),
        # a request without client id counts for the empty one, and an answer without a throttle field did not throttle
        (
            {"client_id": None, "throttle_ms": None, "refused": None},
            THREADS | {"client_id": "", "throttle_ms": -1, "refused": False},
        ),
    ],
)
def test_what_a_request_charges(change: dict[str, Any], expected: dict[str, Any]) -> None:
    """A request charges at the broker's decision, and nothing else."""
    (row,) = history_of(requests(change)).to_pylist()
    whole = {"timestamp": START_MS, "completed": START_MS + 5, "user": "alice", "client_id": "app", "broker": "1"}
    whole |= UNCHARGED | expected
    assert {name: row[name] for name in whole} == whole


@pytest.mark.parametrize("change", [{"api_key": 1, "follower": True}, {"api_key": 19, "forwarded": True}])
def test_what_is_left_out(change: dict[str, Any]) -> None:
    """A follower's Fetch, which brokers do not charge, and the second line of a forwarded request are left out."""
    assert history_of(requests(change)).num_rows == 0


@pytest.mark.parametrize("column", ["timestamp", "completed", "api_key", "api_version"])
def test_a_request_that_lacks_a_value_is_refused_by_name(column: str) -> None:
    """A row of another program without a value that all charges need is refused with its column."""
    with pytest.raises(IncompleteRequests, match=f"1 row has no value in the column {column}, "):
        history_of(requests({}, {column: None}))


def test_connections_stay_apart() -> None:
    """Requests of a connection have one number in any process, and those of another connection another one."""
    ids = history_of(requests({}, {"connection": "other"}, {}))["connection"].to_pylist()
    assert ids[0] == ids[2] == -7_458_243_201_660_642_495
    assert ids[0] != ids[1]


def test_no_requests_make_no_history() -> None:
    """Without requests there are no rows, but the same columns, each with a description."""
    charges = history_of(requests({}).slice(0, 0))
    assert (charges.schema, charges.num_rows) == (HISTORY, 0)
    assert rollup(history_of(requests({}))).schema == ROLLUP
    for schema in (HISTORY, ROLLUP, TOPICS, CONNECTIONS, EPISODES, REQUESTS, QUARANTINE, RESULTS, SHADOW):
        assert all((column.metadata or {}).get(b"description") for column in schema)


ms = st.integers(0, 200_000).map(lambda us: us / 1000)  # brokers log whole microseconds
changes = st.lists(
    st.fixed_dictionaries(
        {
            "timestamp": st.integers(START_MS, START_MS + 4_000_000),
            "completed": st.integers(START_MS, START_MS + 4_000_000),
            "user": st.sampled_from(["a", "b", ""]),
            "client_id": st.sampled_from([None, "x"]),
            "broker": st.sampled_from(["1", "2"]),
            "thread_time_ms": ms,
            "network_time_ms": ms,
            "produce_bytes": st.none() | st.integers(0, 2**40),
            "fetch_bytes": st.none() | st.integers(0, 2**40),
            "mutations_charged": st.none() | st.integers(0, 2**20),
            "mutation_timestamp": st.none() | st.integers(START_MS, START_MS + 9_000),
            "throttle_ms": st.sampled_from([None, 0, 1, 7, -5]),  # Kafka sent a negative one when it did not fit
            "refused": st.booleans(),
        }
    ),
    max_size=25,
)

Sums = dict[tuple[Any, ...], list[int]]


def _slowly(rows: list[dict[str, Any]]) -> Sums:
    """Return the same sums in the plainest way, with thread time in decimal digits."""
    sums: Sums = defaultdict(lambda: [0, 0, 0, 0])

    def add(row: dict[str, Any], kind: str, second_ms: int, amount: int | None, counts: int) -> None:
        if amount is not None and (counts or amount):
            key = (row["user"], row["client_id"] or "", row["broker"], kind, second_ms // 1_000 * 1_000)
            wait = max(0, row["throttle_ms"] or 0) * counts
            throttled = counts * (wait > 0 or row["refused"])
            for place, value in enumerate((counts, amount, throttled, wait)):
                sums[key][place] += value

    for row in rows:
        add(row, "produce", row["timestamp"], row["produce_bytes"], 1)
        add(row, "fetch", row["timestamp"], row["fetch_bytes"], 1)
        add(row, "request", row["timestamp"], int(Decimal(str(row["thread_time_ms"])) * 1000), 1)
        add(row, "request", row["completed"], int(Decimal(str(row["network_time_ms"])) * 1000), 0)
        mutated = row["mutation_timestamp"]
        add(row, "controller_mutation", row["timestamp"] if mutated is None else mutated, row["mutations_charged"], 1)
    return sums


def _as_sums(*tables: pa.Table) -> Sums:
    sums: Sums = defaultdict(lambda: [0, 0, 0, 0])
    for row in pa.concat_tables(tables).to_pylist():
        key, values = tuple(row.values())[:5], list(row.values())[5:]
        sums[key] = [have + value for have, value in zip(sums[key], values, strict=True)]
    return sums


@given(changes, st.integers(0, 25))
def test_sums_are_exact_wherever_rows_are_cut(rows: list[dict[str, Any]], cut: int) -> None:
    """Sums in one piece or in two are those of exact arithmetic; in one piece each key has one row."""
    history = history_of(requests(*rows)) if rows else history_of(requests({})).slice(0, 0)
    expected = _slowly(rows)
    whole = rollup(history)
    assert (len(whole), _as_sums(whole)) == (len(expected), expected)
    halves = rollup(history.slice(0, cut)), rollup(history.slice(cut))
    assert _as_sums(*halves) == expected


Row: TypeAlias = dict[str, Any]
NAMES = st.sampled_from(["orders", "<b>", 'a\n"b', "Ünï 😀"])
SIZES = st.integers(0, 2**40)


@st.composite
def moved(draw: st.DrawFn) -> Row:
    """A request that moves records, or not; its charge is its records and some more."""
    key = draw(st.sampled_from([0, 1, 78, 3]))
    by_name = st.builds(lambda name, size: {"topic": name, "id": None, "bytes": size}, NAMES, SIZES)
    by_id = st.builds(lambda name, size: {"topic": None, "id": name, "bytes": size}, NAMES, SIZES)
    traffic = draw(st.none() | st.lists(by_name | by_id, max_size=3)) if key != 3 else None
    size = None if key == 3 else draw(SIZES | st.none() if traffic is None else SIZES)
    if size is not None:
        size += sum(each["bytes"] for each in traffic or ())
    return {
        "api_key": key,
        "produce_bytes": size if key == 0 else None,
        "fetch_bytes": None if key == 0 else size,
        "traffic": traffic,
        "timestamp": draw(st.integers(START_MS, START_MS + 200_000)),
        "user": draw(st.sampled_from(["a", "b", None])),
        "client_id": draw(st.sampled_from([None, "x"])),
        "broker": draw(st.sampled_from(["1", "2"])),
        "follower": draw(st.booleans()),
        "forwarded": draw(st.booleans()),
    }


def sums(rows: pa.Table, *by: str) -> Counter[tuple[Any, ...]]:
    sums_found: Counter[tuple[Any, ...]] = Counter()
    for row in rows.to_pylist():
        sums_found[tuple(row[name] for name in by)] += row.get("bytes", row.get("amount")) or 0
    return +sums_found


@given(st.lists(moved(), max_size=20), st.integers(0, 20))
def test_topics_add_up_to_what_was_charged(rows: list[Row], cut: int) -> None:
    """Bytes are exact by client, broker, quota type, minute and topic, in whatever parts the requests come."""
    table = requests(*rows)
    sums_found = topics_of(table)
    assert sums_found.schema == TOPICS
    seconds = rollup(history_of(table)).filter(pc.field("quota_type").isin(["produce", "fetch"]))
    start = seconds.schema.get_field_index("start")
    minutes = pa.array(seconds["start"].to_numpy() // 60_000 * 60_000)
    seconds = seconds.set_column(start, "start", minutes)
    key = ("user", "client_id", "broker", "quota_type", "start")
    assert sums(sums_found, *key) == sums(seconds, *key)
    seen = [row for row in rows if row["api_key"] != 3 and not row["follower"] and not row["forwarded"]]
    held: Counter[tuple[Any, ...]] = Counter()
    for row in seen:
        for each in row["traffic"] or ():
            held[row["user"] or "", each["topic"], each["id"]] += each["bytes"]
    records = sums_found.filter(pc.field("kind") == "records")
    assert sums(records, "user", "topic", "topic_id") == +held
    charged = [row["produce_bytes"] if row["api_key"] == 0 else row["fetch_bytes"] for row in seen]
    unsized = sums_found.filter(pc.field("kind") == "unknown size")
    assert (pc.sum(unsized["requests"]).as_py() or 0) == charged.count(None)
    assert unsized["bytes"].null_count == len(unsized)
    parts = pa.concat_tables([topics_of(table[:cut]), topics_of(table[cut:])])
    every = (*key, "kind", "topic", "topic_id")
    assert sums(parts, *every) == sums(sums_found, *every)


def test_names_of_ids() -> None:
    """Names of topics are kept once a day, without a client; a row of requests has only names that it logged."""
    pair = {"topic_ids": [{"topic": "orders", "id": "i1"}, {"topic": "<b>", "id": "i2"}]}
    later = pair | {"timestamp": START_MS + 86_400_000}
    sums_found = topics_of(requests(pair, pair | {"user": "bob"}, later))
    rows = {
        (row["topic_id"], row["topic"], row["start"] % 86_400_000, row["user"], row["requests"], row["bytes"])
        for row in sums_found.to_pylist()
    }
    assert rows == {("i1", "orders", 0, "", 0, None), ("i2", "<b>", 0, "", 0, None)}
    assert len(sums_found) == 4
