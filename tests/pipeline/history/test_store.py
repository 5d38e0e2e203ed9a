"""A history on disk follows its requests, late ones included."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.history.requests import START_MS, requests

from quotascope.pipeline.errors import NoTable
from quotascope.pipeline.history import (
    ORDER,
    WIDTHS,
    History,
    history_of,
    rollup,
    totals,
)
from quotascope.pipeline.ingest import Tables
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.table import Layout, Table

DAY_MS = 86_400_000


@pytest.fixture
def source(tmp_path: Path) -> Table:
    """An empty table of requests."""
    layout = Layout(order=ORDER, bucket_of="user", buckets=4, day_of="timestamp")
    return Table.create(str(tmp_path / "requests"), REQUESTS, layout)


def _some(count: int, shift_ms: int = 0) -> pa.Table:
    return requests(
        *(
            {
                "api_key": each % 2,
                "request_bytes": None if each % 2 else each,
                "response_bytes": each if each % 2 else None,
                "user": f"user {each % 5}",
                "timestamp": START_MS + shift_ms + each * 700,
                "completed": START_MS + shift_ms + each * 700 + 3,
            }
            for each in range(count)
        )
    )


def test_a_history_lies_in_sixteen_buckets_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    """As the requests that it is made of, so that it needs no shuffle; with other layouts older tables could not be opened."""
    history = History.create(str(tmp_path / "history"))
    requests = Tables.create(str(tmp_path / "log")).requests
    of_log = ("user", "client_id", "broker", "timestamp")
    assert requests.layout == Layout(
        order=of_log, bucket_of="user", buckets=16, day_of="timestamp"
    )
    assert (history.detail.layout.buckets, history.detail.layout.day_of) == (16, "timestamp")  # fmt: skip
    assert {*history.rollups} == {"seconds", "minutes", "hours"}
    for sums in history.rollups.values():
        assert (sums.layout.buckets, sums.layout.day_of) == (16, "start")


def test_history_and_sums_follow_the_requests(source: Table, tmp_path: Path) -> None:
    """After each update the detail holds every request once and the sums are its sums, with compaction in between or not."""
    history = History.create(str(tmp_path / "history"), buckets=4)
    batches = [_some(300), _some(300, DAY_MS), _some(100, 350)]
    for number, rows in enumerate(batches):
        source.append(f"{number}", rows)
        assert history.update(source) == rows.num_rows
        assert history.update(source) == 0
        if number == 1:
            source.append("late", _some(50, 20))
            assert history.update(source) == 50
            assert history.compact() > 0
    everything = history_of(pa.concat_tables([*batches, _some(50, 20)]))
    assert history.detail.read().num_rows == 750
    for name, width in WIDTHS.items():
        expected = totals(rollup(everything, width))
        assert totals(history.rollups[name].read()) == expected
        history.compact()
        assert (
            history.rollups[name]
            .read()
            .sort_by([(c, "ascending") for c in expected.column_names])
            .num_rows
            == expected.num_rows
        )


def test_each_bucket_reads_in_order_of_time(source: Table, tmp_path: Path) -> None:
    """The files of a bucket, read together, give each client's requests in order, those that came late among them."""
    history = History.create(str(tmp_path / "history"), buckets=4)
    source.append("now", _some(300))
    history.update(source)
    source.append("late", _some(300, -200_000))
    history.update(source)
    for files in history.detail.buckets().values():
        rows = pa.Table.from_batches(history.detail.batches(files)).select(list(ORDER))
        keys = [tuple(row.values()) for row in rows.to_pylist()]
        assert keys == sorted(keys)


def test_old_days_go_and_their_sums_stay(source: Table, tmp_path: Path) -> None:
    """Retention takes requests out of the detail by day; sums are kept."""
    history = History.create(str(tmp_path / "history"), buckets=4)
    source.append("two days", pa.concat_tables([_some(10), _some(10, DAY_MS)]))
    history.update(source)
    first = dt.datetime.fromtimestamp(START_MS / 1000, dt.UTC).date()
    assert history.drop_before(first + dt.timedelta(days=1)) == 10
    assert history.detail.read().num_rows == 10
    drawn: list[Any] = history.rollups["seconds"].read()["requests"].to_pylist()
    assert sum(drawn) == 20  # what is drawn is what is replayed
    hours = totals(history.rollups["hours"].read())
    counts: list[Any] = hours["requests"].to_pylist()
    assert sum(counts) == 40  # each charges bytes and thread time
    assert history.update(source) == 0


def test_a_history_can_be_opened_again(tmp_path: Path) -> None:
    """A history that was made can be opened; a folder without one is an error that says what to do."""
    made = History.create(str(tmp_path / "history"), buckets=3)
    opened = History.open(str(tmp_path / "history"))
    assert opened.detail.layout.buckets == 3
    assert [table.storage for table in opened.tables] == [
        table.storage for table in made.tables
    ]
    with pytest.raises(NoTable):
        History.open(str(tmp_path / "nothing"))
