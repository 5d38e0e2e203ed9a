"""The data of the pipeline's benchmarks, their measurements, and the figures of docs/engineering/scale.md."""

from __future__ import annotations

import gzip
import json
import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.pipeline import histories, rivals, sides
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.figures import Figures
from benchmarks.pipeline.histories import history
from benchmarks.pipeline.logs import Written, write_logs
from benchmarks.pipeline.paper import BENCHMARKS, PAGE, RESULTS, benchmarks_page, computed, measured, page
from benchmarks.pipeline.peers import parse_json, throttled_seconds
from benchmarks.pipeline.processes import Used, watch
from tests.pipeline.history.requests import ORDER
from tests.pipeline.log_lines import CAPTURE

from quotascope.pipeline.history.schema import HISTORY
from quotascope.pipeline.request_log.parsing import LogSource, parse_lines

CROWD = Crowd(entities=90, giant=0.4)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_logs(tmp_path_factory.mktemp("logs"), 20_000, CROWD, parts=4)


def texts(written: Written) -> list[str]:
    return [line for path in written.files for line in path.read_text().splitlines()]


def parsed(lines: list[str]) -> list[dict[str, Any]]:
    whole = [line for line in lines if line.endswith("} (kafka.request.logger)")]
    return [json.loads(line[line.index("{") : line.rindex("}") + 1]) for line in whole]


def shape(value: object) -> object:
    """Return names and types, without values; of a list its first element."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__


def test_as_reported(written: Written) -> None:
    """Counts while writing are those of the files, and no two lines are equal, which would be taken for one."""
    lines = texts(written)
    requests = parsed(lines)
    assert written.lines == len(lines) == len(set(lines)) == 20_000 + written.forwarded
    assert written.broken == len(lines) - len(requests) > 0
    assert written.forwarded == sum(request["isForwarded"] for request in requests) > 0
    assert written.size == sum(path.stat().st_size for path in written.files)


@pytest.mark.slow
def test_lines_are_like_a_broker_s(written: Written) -> None:
    """Each kind of generated line has the fields of a real broker's line, in their order and types."""
    with gzip.open(CAPTURE, "rt") as file:
        real = {key(record): json.dumps(shape(record)) for record in parsed(file.read().splitlines())}
    made_lines = {key(record): json.dumps(shape(record)) for record in parsed(texts(written))}
    assert len(made_lines) == 8
    assert made_lines == {line: real[line] for line in made_lines}


def key(request: dict[str, Any]) -> tuple[object, ...]:
    """Return the kind of a request; an empty Fetch has a kind of its own."""
    header = request["requestHeader"]
    empty = request["response"].get("responses") == []
    return header["requestApiKeyName"], header["requestApiVersion"], request["isForwarded"], empty


def test_same_seed_same_log(tmp_path: Path, written: Written) -> None:
    """The same seed gives the same bytes, compressed or not; another seed gives others."""
    again = write_logs(tmp_path / "a", 20_000, CROWD, parts=4, compressed=True)
    other_logs = write_logs(tmp_path / "b", 20_000, CROWD, parts=4, seed=8)
    assert gzip.decompress(again.files[2].read_bytes()) == written.files[2].read_bytes()
    assert other_logs.files[2].read_bytes() != written.files[2].read_bytes()


def test_time_goes_on(written: Written) -> None:
    """The lines of each broker are in the order of their completion."""
    by_broker: dict[str, list[str]] = {}
    for path in written.files:
        times = [line[1:24] for line in path.read_text().splitlines()]
        by_broker.setdefault(path.parent.name, []).extend(times)
    assert len(by_broker) == 3
    assert all(times == sorted(times) for times in by_broker.values())


def test_requests_of_a_crowd() -> None:
    """
    No request of a crowd is lost by rounding.

    By Zipf's law the first client makes twice as many as the second, and a giant makes what it is set to.
    """
    assert Crowd(entities=777).counts(10_001).sum() == 10_001
    largest, second, *_ = Crowd(entities=50).counts(1_000_000).tolist()
    assert abs(largest / second - 2) < 0.001
    largest, second, third, *_ = Crowd(entities=50, giant=0.3).counts(1_000_000).tolist()
    assert largest == 300_000
    assert abs(second / third - 1.5) < 0.001


def test_rows_are_sorted_as_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Each table has history's columns and order, and together they have all rows.

    No user is in two, and the giant is one of the many. A request charges bytes of one direction at most, and mutations
    only where topics are made. Another seed makes others.
    """
    monkeypatch.setattr(histories, "SLICE", 1_000)
    tables = list(history(20_000, CROWD))
    users = [set(table["user"].to_pylist()) for table in tables]
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
    largest, second = tmp_path / "1", tmp_path / "2"
    pq.write_table(rows.slice(0, 1_000), largest)
    pq.write_table(rows.slice(1_000), second)
    limits = [1.0, 30.0]
    seconds_found = throttled_seconds([str(second), str(largest)], limits)
    assert seconds_found == pytest.approx([slowly(rows, limit) for limit in limits])
    assert seconds_found[0] > seconds_found[1] > 0


def slowly(rows: pa.Table, limit: float) -> float:
    sums: dict[tuple[str, str, str], dict[int, int]] = {}
    for row in rows.to_pylist():
        series = sums.setdefault((row["user"], row["client_id"], row["broker"]), {})
        second = row["timestamp"] // 1_000
        series[second] = series.get(second, 0) + (row["produce_bytes"] or 0)
    return sum(
        max(sum(by_second.get(time - back, 0) for back in range(11)) / 11 - limit, 0) / limit
        for by_second in sums.values()
        for time in by_second
    )


LINES, ROWS = 1_000_000, 2_000_000


def side(rows: int, *cpu: float, python: int = 0, jvm: int = 0) -> dict[str, Any]:
    runs = [{"cpu": seconds, "python": python, "jvm": jvm} for seconds in cpu]
    return {"rows": rows, "runs": runs}


def test_arithmetic() -> None:
    """The tables follow from medians and peaks: 10 TB are 10 billion lines of 1,000 bytes."""
    facts = {"bytes_a_line": 1000.0, "packed_bytes_a_line": 100.0}
    facts |= {"table_bytes_a_line": 50.0, "history_bytes_a_line": 20.0}
    large = {"sides": {"large": side(ROWS, 1, python=400 << 20, jvm=1 << 30)}}
    small = {"sides": {"small": side(ROWS, 1, python=300 << 20, jvm=1 << 29)}}
    replayed = {sides.candidates(sides.ON_SPARK, count): side(ROWS, cpu) for count, cpu in ((1, 2), (sides.MANY, 3))}
    results = {
        "ingest on Spark": {
            "facts": facts,
            "sides": {sides.ON_SPARK: side(LINES, 43.2, 99, 1), sides.HISTORY: side(LINES, 10)},
        },
        "replay": {"sides": replayed},
        "growth": small,
        "skew": large,
        "entities": small,
    }
    figures = Figures.of(results)
    figures_shown = dict(measured(figures)) | dict(computed(figures))
    assert figures_shown["CPU to read a line"] == "43.20 µs"
    assert figures_shown["lines a day"] == "10.0 billion, 115,741/s"
    assert figures_shown["cores to read the lines"] == "8.3"
    assert figures_shown["cores to keep up, together"] == "10"
    assert figures_shown["disk for history of 30 days"] == "6.00 TB"
    assert figures_shown["cores to replay 1 day within an hour"] == "7"
    assert figures_shown["memory of an executor of 4 cores"] == "2.6 GiB"


def test_page_is_computed_from_what_was_measured() -> None:
    """`python -m benchmarks pipeline-page` wrote the tables of docs/engineering/scale.md from scale.json."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, Figures.of(results)) == text


def test_ingest_beside_others_is_what_was_measured() -> None:
    """The table of ingest in docs/engineering/benchmarks.md is of that run, and has every side with its goal."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = BENCHMARKS.read_text(encoding="utf-8")
    assert benchmarks_page(text, results) == text
    for name in (sides.DUCKDB, sides.POLARS, f"{sides.PARSE} (goal 1)", f"{sides.WHOLE} (goal 1.8)", sides.ON_SPARK):
        assert f"\n| {name} |" in text
    assert results["ingest in one process"]["facts"][sides.ON_SPARK_TO_ALONE] > 0
    assert f"{Figures.of(results).ingest * 1e6:.1f}" in text


def test_rivals_write_what_ingest_reads(written: Written, tmp_path: Path) -> None:
    """DuckDB and Polars have a row for each line that ingest reads, with the same values."""
    files = [str(file) for file in written.files]
    rivals.parse(files, written.lines)
    source = LogSource(file="f", broker="1")
    lines = [line for file in written.files for line in file.read_bytes().splitlines()]
    requests = parse_lines(lines, range(len(lines)), source).requests
    for write in (rivals.by_duckdb, rivals.by_polars):
        parquet = tmp_path / f"{write.__name__}.parquet"
        write(files, str(parquet))
        rows = pq.read_table(parquet)
        assert len(rows) == len(requests) == written.lines - written.broken
        assert rows["completed"].to_pylist() == requests["completed"].to_pylist()
        assert rows["connection"].to_pylist() == requests["connection"].to_pylist()
        assert rows["sendTimeMs"].to_pylist() == requests["network_time_ms"].to_pylist()
        headers: list[Any] = rows["requestHeader"].to_pylist()
        client_ids = [header["clientId"] for header in headers]
        assert client_ids == requests["client_id"].to_pylist()


GROW = "held = b'x' * (64 << 20); sum(range(3_000_000)); input()"


def test_child_is_seen() -> None:
    """Memory and CPU time of a process that was born and ended under watch are reported."""
    command = [sys.executable, "-c", GROW]
    with watch(os.getpid()) as used, subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        while peak(used, child.pid) < 64 << 20:
            assert child.poll() is None
        child.communicate(b"\n")
    assert used.peak("python") >= 64 << 20
    assert used.cpu > 0


def peak(used: Used, pid: int) -> int:
    return used.processes[pid].peak if pid in used.processes else 0


def test_peak_begins_with_the_watch() -> None:
    """Memory that a process held before the watch, and holds no more, does not count."""
    mine = os.getpid()
    # a map of its own: the allocator may keep what is freed, by what other tests of this process left
    with mmap.mmap(-1, 128 << 20) as held:
        for _ in range(128):
            held.write(os.urandom(1 << 20))
        with watch(mine) as memory_before:
            pass
    with watch(mine) as memory_after:
        pass
    assert peak(memory_before, mine) - peak(memory_after, mine) > 100 << 20
