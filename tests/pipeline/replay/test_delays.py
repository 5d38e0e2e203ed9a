"""Requests that a replay delays, by their place, are those that a replay of the whole history moves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.requests import METADATA, Request
from tests.pipeline.replay.histories import candidate, history, quota_sets, requests, sorted_rows

from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.pipeline.replay import Mode, ReplaySettings, replay
from quotascope.pipeline.replay.delays import DelayedRequests, delays_of
from quotascope.pipeline.replay.plan import CandidateRules
from quotascope.pipeline.replay.results import lateness, replay_with_delays

FILES = ("b.log", "a.log", "ä.log")


def numbered(rows: pa.Table) -> pa.Table:
    """Return rows with their number as their place in one file."""
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    return pa.table({**columns, "file": pa.repeat("", len(rows)), "position": np.arange(len(rows))})


@given(
    made=st.lists(requests, min_size=1, max_size=40),
    files=st.lists(st.sampled_from(FILES), min_size=40, max_size=40),
    quotas=st.lists(quota_sets, min_size=1, max_size=3),
    mode=st.sampled_from(Mode),
    rows_at_once=st.sampled_from((1, 1 << 20)),
)
def test_a_replay_by_users_delays_what_a_replay_of_all_does(
    made: list[Request], files: list[str], quotas: list[Any], mode: Mode, rows_at_once: int
) -> None:
    """Whatever is replayed together, the results are the same, and each request of each file is as late."""
    rows = history(made).set_column(history([]).column_names.index("file"), "file", pa.array(files[: len(made)]))
    tried = [candidate(each, name=str(number)) for number, each in enumerate(quotas)]
    settings = ReplaySettings(rows_at_once=rows_at_once)
    parts = [rows]
    if not CandidateRules(tried).across_users:
        users: list[Any] = rows["user"].to_pylist()
        parts = [rows.filter(pa.array([user == name for user in users])) for name in sorted(set(users))]
    tables: list[pa.Table] = []
    delayed: list[DelayedRequests] = []
    for part in parts:
        table, of_part = replay_with_delays(part, tried, mode, settings)
        tables.append(table)
        assert of_part is not None
        delayed += of_part
    assert sorted_rows(pa.concat_tables(tables)) == sorted_rows(replay(rows, tried, mode))
    in_order = rows.sort_by([("file", "ascending"), ("position", "ascending")])
    late_ms = delays_of(in_order, delayed, len(tried))
    assert late_ms is not None
    assert late_ms.tolist() == lateness(numbered(in_order), tried, mode, len(rows)).tolist()


def placed(places: Sequence[tuple[str | None, int | None]]) -> pa.Table:
    files, positions = zip(*places, strict=True)
    return pa.table({"file": files, "position": positions})


@pytest.mark.parametrize(
    "places",
    [
        # a second log of the same name
        [("a.log", 1), ("a.log", 2), ("a.log", 2), ("b.log", 1)],
        # the request is not there
        [("a.log", 1), ("a.log", 3)],
        [("a.log", 1)],
        [("b.log", 2)],
        # a row of another program
        [("a.log", 2), (None, 2)],
        [("a.log", 2), ("a.log", None)],
    ],
)
def test_a_place_that_names_no_row_is_no_guess(places: list[tuple[str | None, int | None]]) -> None:
    """Delays are unknown if the places of rows are missing, stand twice, or are not those of the delayed requests."""
    delayed = DelayedRequests(pa.array(["a.log"]), np.zeros(1, np.int32), np.array([2]), np.array([[7]]))
    assert delays_of(placed(places), [delayed], 1) is None
    known = delays_of(placed([("a.log", 1), ("a.log", 2), ("b.log", 2)]), [delayed], 1)
    assert known is not None
    assert known.tolist() == [[0, 7, 0]]


def test_few_rows_are_delayed_requests() -> None:
    """A replay names the delayed requests only."""
    made = [Request(after_ms=5, api_key=METADATA, request_us=1_000), Request(after_ms=5, user="bob")] * 2_000
    quotas = {QuotaEntity("alice"): {"request_percentage": 5.0}}
    _, delayed = replay_with_delays(history(made), [candidate(quotas)], Mode.OPEN_LOOP)
    assert delayed is not None
    positions = np.concatenate([part.positions for part in delayed])
    assert 0 < len(positions) < 2_000
    assert (positions % 2 == 1).all()
