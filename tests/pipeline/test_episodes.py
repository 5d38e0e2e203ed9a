"""Throttle episodes of a history: what one is, and that it is the same in whatever parts its requests came."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.requests import START_MS
from tests.pipeline.history.requests import requests
from tests.pipeline.table.rows import append
from tests.strategies import HOSTILE

from quotascope.pipeline.episodes import KEY, episodes_in, fragments_of, merged
from quotascope.pipeline.errors import NoTable
from quotascope.pipeline.history import History, history_of
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.table import Table

Figures = tuple[int, int, int, int, int]


def throttled(after_ms: int, throttle_ms: int = 0, **change: Any) -> dict[str, Any]:
    """Return a request, by default a Produce, that was decided so long after the start."""
    usual = {"api_key": 0, "produce_bytes": 1}
    return {"timestamp": START_MS + after_ms, "throttle_ms": throttle_ms, **usual, **change}


def figures(episodes: pa.Table) -> list[Figures]:
    """Begin and end after the start, requests, total and longest throttle time of each."""
    return [
        (row["began"] - START_MS, row["ended"] - START_MS, row["throttled"], row["throttle_ms"], row["longest_ms"])
        for row in episodes.to_pylist()
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([(0, 0), (5, -1)], []),
        ([(0, 100)], [(0, 100, 1, 100, 100)]),
        ([(0, 100), (60_100, 7)], [(0, 60_107, 2, 107, 100)]),
        ([(0, 100), (60_101, 7)], [(0, 100, 1, 100, 100), (60_101, 60_108, 1, 7, 7)]),
        # a throttle of two minutes spans the shorter one, and reaches the third
        ([(0, 120_000), (10, 5), (180_000, 5)], [(0, 180_005, 3, 120_010, 120_000)]),
    ],
)
def test_an_episode_ends_with_a_pause_of_more_than_a_minute(
    given: list[tuple[int, int]], expected: list[Figures]
) -> None:
    """The pause counts from the end of the longest throttle; an unknown throttle time is none."""
    fragments = fragments_of(history_of(requests(*(throttled(*row) for row in given))))
    assert figures(fragments) == expected


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"api_key": 0}, "produce"),
        ({"api_key": 1}, "fetch"),
        ({"api_key": 78}, "fetch"),
        ({"api_key": 19, "throttle_ms": 0, "refused": True}, "controller_mutation"),
        ({"api_key": 3}, "request"),
    ],
)
def test_the_quota_type_is_that_of_the_api(change: dict[str, Any], kind: str) -> None:
    """A refusal counts as a throttle, without a throttle time too."""
    (row,) = fragments_of(history_of(requests(throttled(0, 9) | change))).to_pylist()
    assert row["quota_type"] == kind


def test_clients_and_brokers_have_their_own() -> None:
    """Each client has episodes of its own on each broker, with its name unchanged, also in a search."""
    rows = [throttled(0, 9, user=name, client_id=name, broker=broker) for name in HOSTILE for broker in "12"]
    fragments = fragments_of(history_of(requests(*rows)))
    keys = {tuple(row[name] for name in KEY[:3]) for row in fragments.to_pylist()}
    assert keys == {(name, name, broker) for name in HOSTILE for broker in "12"}
    assert len(fragments) == 2 * len(HOSTILE)


def plain(throttles: Sequence[tuple[int, int]]) -> list[Figures]:
    fragments: list[list[int]] = []
    for began, length in sorted(throttles):
        if not fragments or began > fragments[-1][1] + 60_000:
            fragments.append([began, began + length, 0, 0, 0])
        previous = fragments[-1]
        previous[1:] = max(previous[1], began + length), previous[2] + 1, previous[3] + length, max(previous[4], length)
    return [(a, b, c, d, e) for a, b, c, d, e in fragments]


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 120), st.integers(0, 3)), max_size=30))
def test_fragments_in_any_parts_make_the_same_episodes(given: list[tuple[int, int, int]]) -> None:
    """Fragments give the same episodes as they are, merged by part, and merged twice."""
    parts = []
    for number in range(4):
        mine = (throttled(1_000 * second, 1_000 * length) for second, length, part in given if part == number)
        parts.append(fragments_of(history_of(requests(*mine))))
    expected = plain([(1_000 * second, 1_000 * length) for second, length, _ in given])
    assert figures(merged(pa.concat_tables(parts))) == expected
    halves = [merged(pa.concat_tables(parts[2:])), merged(pa.concat_tables(parts[:2]))]
    assert figures(merged(merged(pa.concat_tables(halves)))) == expected


def test_a_history_counts_each_throttle_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes are complete over midnight, with a late request, and after an update without episodes."""
    source = IngestTables.create(str(tmp_path)).requests
    midnight = 86_400_000 - START_MS % 86_400_000
    history = History.create(str(tmp_path))
    table = history.episodes
    append(source, "1", requests(throttled(midnight - 50_000, 100), throttled(midnight + 50_000, 200)))
    history.update(source)
    assert [figure[2] for figure in figures(episodes_in(table))] == [1, 1]
    append(source, "2", requests(throttled(midnight, 3), throttled(0, 4, user="bob")))
    with monkeypatch.context() as patch:
        patch.setattr(table, "advance", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            history.update(source)
    for _ in range(2):
        history.update(source)
        fragments = episodes_in(table, "alice", "app")
        assert figures(fragments) == [(midnight - 50_000, midnight + 50_200, 3, 303, 200)]
    table.compact()
    assert episodes_in(table, "alice", "app").equals(fragments)
    assert len(episodes_in(table)) == 2
    late, early = 1 << 41, -midnight
    for begin, end, count in ((50_201, late, 0), (50_200, late, 1), (early, -50_001, 0), (early, -50_000, 1)):
        times = [START_MS + midnight + offset_ms for offset_ms in (begin, end)]
        assert len(episodes_in(table, "alice", None, *times)) == count


def test_an_older_history_gets_its_episodes(tmp_path: Path) -> None:
    """The next update adds the episodes of all requests to an older history."""
    source = IngestTables.create(str(tmp_path)).requests
    append(source, "1", requests(throttled(0, 5)))
    History.create(str(tmp_path)).update(source)
    shutil.rmtree(tmp_path / "episodes")
    older = History.open(str(tmp_path))
    assert len(older.detail.read()) == 1
    with pytest.raises(NoTable):
        older.episodes.read()
    assert History.create(str(tmp_path)).update(source) == 0
    table = Table.open(f"{tmp_path}/episodes")
    assert figures(episodes_in(table)) == [(0, 5, 1, 5, 5)]
