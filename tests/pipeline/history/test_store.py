"""A history on disk follows its requests, late ones included; looking after its tables."""

import datetime as dt
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.builders.requests import START_MS
from tests.pipeline.history.requests import requests
from tests.pipeline.log_lines import captured
from tests.pipeline.table.rows import append

from quotascope.pipeline.errors import NoHistory, OtherSource, UnreadableTable
from quotascope.pipeline.history import History, history_of, rollup
from quotascope.pipeline.history.store import tables_of
from quotascope.pipeline.ingest import IngestOptions, IngestTables
from quotascope.pipeline.names import DETAIL
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.table import Table, TableLayout

DAY_MS = 86_400_000
FIRST = dt.date(2023, 11, 14)


@pytest.fixture
def source(tmp_path: Path) -> Table:
    layout = TableLayout(shard_of="user", shards=4, day_of="timestamp")
    return Table.create(str(tmp_path / "requests"), REQUESTS, layout)


def _some(count: int, shift_ms: int = 0) -> pa.Table:
    rows = []
    for number in range(count):
        time_ms = START_MS + shift_ms + number * 700
        charged = {"fetch_bytes" if number % 2 else "produce_bytes": number}
        rows.append(
            {
                "api_key": number % 2,
                "user": f"user {number % 5}",
                "timestamp": time_ms,
                "completed": time_ms + 3,
                **charged,
            }
        )
    return requests(*rows)


def test_a_history_has_sixteen_shards_by_default(tmp_path: Path) -> None:
    """A history has sixteen shards by default, as its requests do, so that it needs no shuffle."""
    history = History.create(str(tmp_path / "history"))
    requests = IngestTables.create(str(tmp_path / "log")).requests
    layouts = [(each.layout.shards, each.layout.day_of) for each in (requests, history.detail, history.seconds)]
    assert layouts == [(16, "timestamp"), (16, "timestamp"), (16, "start")]
    assert requests.layout.shard_of == "user"


@pytest.mark.parametrize("shards", [3, 64])
def test_all_tables_of_users_have_the_shards_that_were_asked_for(tmp_path: Path, shards: int) -> None:
    """All tables of users have the requested shards, and a later ingest with another number leaves them."""
    log, folder = tmp_path / "a.log", str(tmp_path / "usage")
    log.write_bytes(b"\n".join(captured()[:200]))
    for requested in (shards, 16):
        ingest_logs([str(log)], folder, IngestOptions(broker="1"), shards=requested, engine=EngineChoice.LOCAL)
        counts = {name: table.layout.shards for name, table in tables_of(folder).items()}
        assert counts.pop("quarantine") == 1
        assert set(counts.values()) == {shards}, counts


def _sums(table: pa.Table) -> list[dict[str, Any]]:
    key, sums = table.column_names[:5], table.column_names[5:]
    added = table.group_by(key).aggregate([(name, "sum") for name in sums])
    return added.sort_by([(name, "ascending") for name in key]).to_pylist()


def test_history_and_sums_follow_the_requests(source: Table, tmp_path: Path) -> None:
    """After each update the detail has every request once, and the sums are its sums, compacted or not."""
    history = History.create(str(tmp_path / "history"), shards=4)
    tables = (history.detail, history.seconds)
    batches = [_some(300), _some(300, DAY_MS), _some(100, 350)]
    for number, rows in enumerate(batches):
        append(source, f"{number}", rows)
        assert history.update(source) == rows.num_rows
        assert history.update(source) == 0
        if number == 1:
            append(source, "late", _some(50, 20))
            assert history.update(source) == 50
            assert sum(table.compact() for table in tables) > 0
    everything = history_of(pa.concat_tables([*batches, _some(50, 20)]))
    assert history.detail.read().num_rows == 750
    expected = _sums(rollup(everything))
    charged = sum(row["amount_sum"] for row in expected if row["quota_type"] in ("produce", "fetch"))
    for _ in range(2):
        assert _sums(history.seconds.read()) == expected
        topics = history.topics.read()
        assert pc.sum(topics["bytes"]).as_py() == charged
        assert pc.sum(topics["requests"]).as_py() == 750
        for table in (*tables, history.topics):
            table.compact()


def test_a_history_can_be_opened_again(tmp_path: Path) -> None:
    """An existing history can be opened; a folder without one is an error that says what to do."""
    rows = History.create(str(tmp_path / "history"), shards=3)
    opened = History.open(str(tmp_path / "history"))
    assert opened.detail.layout.shards == 3
    assert (opened.detail.storage, opened.seconds.storage) == (rows.detail.storage, rows.seconds.storage)
    for name in ("nothing", "x" * 5_000):
        with pytest.raises(NoHistory, match=f"{name}: there is no such folder; `quotascope ingest"):
            History.open(str(tmp_path / name))
    (tmp_path / "file").touch()
    with pytest.raises(NoHistory, match="file: this is no folder; `quotascope ingest"):
        History.open(str(tmp_path / "file"))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with two days of requests and their history, the second day in two pieces."""
    tables = IngestTables.create(str(tmp_path))
    history = History.create(str(tmp_path))
    for number, shift in enumerate((0, DAY_MS, DAY_MS + 1_000)):
        change = {"timestamp": START_MS + shift, "completed": START_MS + shift}
        append(tables.requests, f"{number}", requests(change, change))
        history.update(tables.requests)
    return str(tmp_path)


def test_days_go_together(folder: str) -> None:
    """Requests, history and sums drop a day together, and its remains are not taken over again."""
    tables = tables_of(folder)
    later = FIRST + dt.timedelta(days=1)
    dropped = {name: tables[name].drop_before(later) for name in DETAIL}
    assert dropped == {"requests": 2, "history": 2, "seconds": 1, "topics": 0, "connections": 1}
    assert History.open(folder).update(tables["requests"]) == 0


def test_a_folder_without_tables(tmp_path: Path) -> None:
    """A folder that nothing was ingested into is an error that says so; a damaged table is not skipped."""
    with pytest.raises(NoHistory, match="no usage history is in it; `quotascope ingest"):
        tables_of(str(tmp_path))
    IngestTables.create(str(tmp_path))
    for commit in (tmp_path / "requests" / "_delta_log").glob("*.json"):
        commit.write_bytes(b"{")
    with pytest.raises(UnreadableTable):
        tables_of(str(tmp_path))


MADE_OF = {"requests": {"history", "seconds", "connections"}, "history": {"seconds"}}
"""What has to go with a table: nothing was throttled, and no request has topics."""


@pytest.mark.parametrize(("removed", "refuses"), [("requests", "history"), ("history", "seconds")])
def test_rows_of_a_table_that_was_removed_do_not_count_twice(folder: str, removed: str, refuses: str) -> None:
    """
    Requests in a new table are refused while other tables have rows of the removed one.

    The error names all tables to remove.
    """
    rows, rows_before = tables_of(folder)["requests"].read(), tables_of(folder)[refuses].read()
    sums = sorted(tables_of(folder)["seconds"].read().to_pylist(), key=str)
    shutil.rmtree(f"{folder}/{removed}")
    tables, history = IngestTables.create(folder), History.create(folder)
    if removed == "requests":
        append(tables.requests, "again", rows)
    message = f"/{refuses}: its rows were made of another table than .*/{removed}.* or remove (.*): the next run"
    with pytest.raises(OtherSource, match=message) as raised:
        history.update(tables.requests)
    assert tables_of(folder)[refuses].read() == rows_before
    (named,) = re.findall("or remove (.*): the next run", str(raised.value))
    assert {name.removeprefix(f"{folder}/") for name in named.split(", ")} == MADE_OF[removed]
    for name in named.split(", "):
        shutil.rmtree(name)
    assert History.create(folder).update(tables.requests) == len(rows)
    assert sorted(tables_of(folder)["seconds"].read().to_pylist(), key=str) == sums


def test_sums_count_once_where_the_history_has_no_rows(folder: str) -> None:
    """Requests in a new table are refused also where all days of the history were dropped, and its sums are left."""
    rows = tables_of(folder)["requests"].read()
    tables_of(folder)["history"].drop_before(dt.date(2100, 1, 1))
    shutil.rmtree(f"{folder}/requests")
    tables = IngestTables.create(folder)
    append(tables.requests, "again", rows)
    with pytest.raises(OtherSource, match="/seconds: its rows were made of another table"):
        History.create(folder).update(tables.requests)
