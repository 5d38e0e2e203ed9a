from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.histories import history
from benchmarks.pipeline.peers import parse_json, throttled_seconds


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
    """The same in a loop."""
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
