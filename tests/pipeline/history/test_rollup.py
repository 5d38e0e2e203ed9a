"""Sums by second are those of the rows, to the last digit."""

from collections import defaultdict
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.history.requests import START_MS, requests

from quotascope.pipeline.history import ROLLUP, history_of, rollup

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
            "throttle_ms": st.sampled_from([None, 0, 7]),
            "refused": st.booleans(),
        }
    ),
    max_size=25,
)

Sums = dict[tuple[Any, ...], list[int]]


def _slowly(rows: list[dict[str, Any]]) -> Sums:
    """The same sums in the plainest way, thread time in decimal digits."""
    sums: Sums = defaultdict(lambda: [0, 0, 0, 0])

    def add(row: dict[str, Any], kind: str, at: int, amount: int | None, counts: int) -> None:
        if amount is not None and (counts or amount):
            key = (
                row["user"],
                row["client_id"] or "",
                row["broker"],
                kind,
                at // 1_000 * 1_000,
            )
            wait = (row["throttle_ms"] or 0) * counts
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
    """Sums by key; those of several tables add up."""
    sums: Sums = defaultdict(lambda: [0, 0, 0, 0])
    for row in pa.concat_tables(tables).to_pylist():
        key, values = tuple(row.values())[:5], list(row.values())[5:]
        sums[key] = [have + more for have, more in zip(sums[key], values, strict=True)]
    return sums


@given(changes, st.integers(0, 25))
def test_sums_are_exact_wherever_rows_are_cut(rows: list[dict[str, Any]], cut: int) -> None:
    """Added up in one piece or in two, sums are those of exact arithmetic; in one piece each key has one row."""
    history = history_of(requests(*rows)) if rows else history_of(requests({})).slice(0, 0)
    expected = _slowly(rows)
    whole = rollup(history)
    assert (len(whole), _as_sums(whole)) == (len(expected), expected)
    halves = rollup(history.slice(0, cut)), rollup(history.slice(cut))
    assert _as_sums(*halves) == expected


def test_every_column_says_what_it_means() -> None:
    """The columns of a sum are documented."""
    assert rollup(history_of(requests({}))).schema == ROLLUP
    assert all((column.metadata or {}).get(b"description") for column in ROLLUP)


def test_network_time_counts_when_the_response_left() -> None:
    """A request that ends in the next second charges its handler's time in this one and the network thread's in that one."""
    made = rollup(history_of(requests({"completed": START_MS + 1_000}))).to_pylist()
    found = {(row["start"] - START_MS, row["requests"], row["amount"]) for row in made}
    assert found == {(0, 1, 500), (1_000, 0, 250)}


@pytest.mark.parametrize(
    ("reported_ms", "refused", "throttled", "throttle_ms"),
    [
        (None, False, 0, 0),
        (0, False, 0, 0),
        (1, False, 1, 1),
        (7, False, 1, 7),
        (0, True, 1, 0),
        (7, True, 1, 7),
        (-5, False, 0, 0),
    ],
)
def test_any_wait_and_any_refusal_is_a_throttle(
    reported_ms: int | None,
    refused: bool,  # noqa: FBT001 - a case
    throttled: int,
    throttle_ms: int,
) -> None:
    """One ms is one; a negative time, which Kafka sent when it did not fit, throttled no client."""
    row = requests({"throttle_ms": reported_ms, "refused": refused})
    (made,) = rollup(history_of(row)).to_pylist()
    assert (made["throttled"], made["throttle_ms"]) == (throttled, throttle_ms)
