"""What benchmarks of the pipeline work on is made as they say."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.pipeline import histories
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.histories import history
from benchmarks.pipeline.peers import parse_json, throttled_seconds
from tests.pipeline.history.requests import ORDER

from quotascope.pipeline.history.schema import HISTORY

CROWD = Crowd(entities=90, giant=0.4)


def test_requests_of_a_crowd() -> None:
    """However they are rounded, none is lost; by Zipf's law the first makes twice as many as the second, and a giant makes what it is set to."""
    assert Crowd(entities=777).counts(10_001).sum() == 10_001
    first, second, *_ = Crowd(entities=50).counts(1_000_000).tolist()
    assert abs(first / second - 2) < 0.001
    first, second, third, *_ = Crowd(entities=50, giant=0.3).counts(1_000_000).tolist()
    assert first == 300_000
    assert abs(second / third - 1.5) < 0.001


def test_rows_are_sorted_as_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Each table has history's columns and order, and together they have all rows; no user is in two, and the giant is one of the many.

    A request charges bytes of one direction at most, and mutations only where topics are made. Another seed makes others.
    """
    monkeypatch.setattr(histories, "SLICE", 1_000)
    tables = list(history(20_000, CROWD))
    users = [set(each["user"].to_pylist()) for each in tables]
    assert len(users) > 5
    assert sum(map(len, users)) == len(set.union(*users)) == 23
    whole = pa.concat_tables(tables)
    assert whole.schema.equals(HISTORY)
    assert whole.num_rows == 20_000
    keys = whole.select(list(ORDER))
    assert keys.equals(keys.sort_by([(name, "ascending") for name in ORDER]))
    rows = whole.select(["api_key", "produce_bytes", "fetch_bytes", "mutations"]).to_pylist()
    charged = {name: {row["api_key"] for row in rows if row[name] is not None} for name in rows[0]}
    del charged["api_key"]
    assert charged == {"produce_bytes": {0}, "fetch_bytes": {1}, "mutations": {19}}
    assert whole.equals(pa.concat_tables(history(20_000, CROWD)))
    assert not whole.equals(pa.concat_tables(history(20_000, CROWD, seed=8)))


def test_lines_without_json_are_left_out(tmp_path: Path) -> None:
    """The plain loop goes on after a line that broke off."""
    path = tmp_path / "log"
    path.write_bytes(b'[t] x:{"a":{}} (l)\n[t] x:{"a":{"b\nplain\n[t] x:{} (l)\n')
    assert parse_json([str(path), str(path)]) == 4


def test_seconds_above_the_limit(tmp_path: Path) -> None:
    """The notebook's way in NumPy gives what a loop over the same rows gives, series by series."""
    rows = pa.concat_tables(history(3_000, Crowd(entities=9)))
    first, second = tmp_path / "1", tmp_path / "2"
    pq.write_table(rows.slice(0, 1_000), first)
    pq.write_table(rows.slice(1_000), second)
    limits = [1.0, 30.0]
    found = throttled_seconds([str(second), str(first)], limits)
    assert found == pytest.approx([slowly(rows, each) for each in limits])
    assert found[0] > found[1] > 0


def slowly(rows: pa.Table, limit: float) -> float:
    sums: dict[tuple[str, str, str], dict[int, int]] = {}
    for row in rows.to_pylist():
        series = sums.setdefault((row["user"], row["client_id"], row["broker"]), {})
        second = row["timestamp"] // 1_000
        series[second] = series.get(second, 0) + (row["produce_bytes"] or 0)
    return sum(
        max(sum(each.get(at - back, 0) for back in range(11)) / 11 - limit, 0) / limit
        for each in sums.values()
        for at in each
    )
