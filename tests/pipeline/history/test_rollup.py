"""Sums by second, minute and hour are those of the rows, to the last digit."""

import datetime as dt
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.history.requests import START_MS, requests

from quotascope.pipeline.history import ROLLUP, WIDTHS, history_of, rollup, totals
from quotascope.pipeline.history.rollup import add_up

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
            "request_bytes": st.none() | st.integers(0, 2**40),
            "response_bytes": st.none() | st.integers(0, 2**40),
            "mutations": st.none() | st.integers(0, 2**20),
            "mutation_timestamp": st.none() | st.integers(START_MS, START_MS + 9_000),
            "throttle_ms": st.sampled_from([None, 0, 7]),
            "quota_violated": st.booleans(),
        }
    ),
    max_size=25,
)

Sums = dict[tuple[Any, ...], list[int]]


def _slowly(rows: list[dict[str, Any]], width: int) -> Sums:
    """The same sums in the plainest way, thread time in decimal digits."""
    sums: Sums = defaultdict(lambda: [0, 0, 0, 0])

    def add(
        row: dict[str, Any], kind: str, at: int, amount: int | None, counts: int
    ) -> None:
        if amount is not None and (counts or amount):
            key = (
                row["user"],
                row["client_id"] or "",
                row["broker"],
                kind,
                at // width * width,
            )
            wait = (row["throttle_ms"] or 0) * counts
            throttled = counts * (wait > 0 or row["quota_violated"])
            for place, value in enumerate((counts, amount, throttled, wait)):
                sums[key][place] += value

    for row in rows:
        add(row, "produce", row["timestamp"], row["request_bytes"], 1)
        add(row, "fetch", row["timestamp"], row["response_bytes"], 1)
        add(
            row,
            "request",
            row["timestamp"],
            int(Decimal(str(row["thread_time_ms"])) * 1000),
            1,
        )
        add(
            row,
            "request",
            row["completed"],
            int(Decimal(str(row["network_time_ms"])) * 1000),
            0,
        )
        mutated = row["mutation_timestamp"]
        add(
            row,
            "controller_mutation",
            row["timestamp"] if mutated is None else mutated,
            row["mutations"],
            1,
        )
    return sums


def _as_sums(table: pa.Table) -> Sums:
    rows = table.to_pylist()
    return {tuple(row.values())[:5]: list(row.values())[5:] for row in rows}


@given(changes, st.sampled_from(sorted(WIDTHS)), st.integers(0, 25))
def test_sums_are_exact_wherever_rows_are_cut(
    rows: list[dict[str, Any]], name: str, cut: int
) -> None:
    """Added up in one piece, in two, or through the seconds, sums are those of exact arithmetic."""
    history = (
        history_of(requests(*rows)) if rows else history_of(requests({})).slice(0, 0)
    )
    width = WIDTHS[name]
    expected = _slowly(rows, width)
    assert _as_sums(rollup(history, width)) == expected
    halves = [rollup(history.slice(0, cut), width), rollup(history.slice(cut), width)]
    assert _as_sums(totals(pa.concat_tables(halves))) == expected
    assert _as_sums(add_up(rollup(history, 1_000), width)) == expected


def test_every_column_says_what_it_means() -> None:
    """The columns of a sum are documented."""
    assert rollup(history_of(requests({})), 1_000).schema == ROLLUP
    assert all((column.metadata or {}).get(b"description") for column in ROLLUP)


def test_network_time_counts_when_the_response_left() -> None:
    """A request that ends in the next second charges its handler's time in this one and the network thread's in that one."""
    made = totals(
        rollup(history_of(requests({"completed": START_MS + 1_000})), 1_000)
    ).to_pylist()
    found = [(row["start"] - START_MS, row["requests"], row["amount"]) for row in made]
    assert found == [(0, 1, 500), (1_000, 0, 250)]


@pytest.mark.parametrize(
    ("told_ms", "refused", "throttled", "throttle_ms"),
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
    told_ms: int | None,
    refused: bool,  # noqa: FBT001 - a case
    throttled: int,
    throttle_ms: int,
) -> None:
    """One ms is one; a negative time, which Kafka sent when it did not fit, made nobody wait."""
    row = requests({"throttle_ms": told_ms, "quota_violated": refused})
    (made,) = totals(rollup(history_of(row), 3_600_000)).to_pylist()
    assert (made["throttled"], made["throttle_ms"]) == (throttled, throttle_ms)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("seconds", dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)),
        ("minutes", dt.datetime(2023, 11, 14, 22, 13, tzinfo=dt.UTC)),
        ("hours", dt.datetime(2023, 11, 14, 22, tzinfo=dt.UTC)),
    ],
)
def test_spans_are_those_of_clocks(name: str, begins: dt.datetime) -> None:
    """Seconds, minutes and hours of UTC."""
    at = dt.datetime(2023, 11, 14, 22, 13, 20, 999_000, dt.UTC)
    ms = int(at.timestamp() * 1_000)
    made = rollup(
        history_of(requests({"timestamp": ms, "completed": ms})), WIDTHS[name]
    )
    assert {row["start"] for row in made.to_pylist()} == {begins.timestamp() * 1_000}
