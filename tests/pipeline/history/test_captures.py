"""History of what real brokers logged, and tables that an earlier release made (`older-tables.tar.gz`)."""

import gzip
import json
import tarfile
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from quotascope.metrics import CLIENT_QUOTA_KEYS, DEFAULT, QuotaEntity
from quotascope.pipeline.history import HISTORY, History, store
from quotascope.pipeline.history.schema import PLACE
from quotascope.pipeline.ingest import IngestOptions, IngestTables
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.whatif import what_if
from quotascope.pipeline.table import Table
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

CAPTURES = Path(__file__).parents[1] / "captures"


@pytest.mark.parametrize("log", sorted(CAPTURES.glob("*.log.gz")), ids=lambda log: log.name)
def test_sums_are_those_of_the_log(log: Path, tmp_path: Path) -> None:
    """Requests, thread time and throttles of each client, to the last microsecond, bytes by topic, and throttled fetches are those of the lines."""
    ingest_logs([str(log)], str(tmp_path), IngestOptions(broker="1"))
    requests: Counter[Any] = Counter()
    records: Counter[Any] = Counter()
    throttled = 0
    for text in gzip.decompress(log.read_bytes()).splitlines():
        line = json.loads(text[text.index(b"{") : text.rindex(b"}") + 1], parse_float=Decimal)
        header, user, response = line["requestHeader"], line["principal"].removeprefix("User:"), line["response"]
        if not line["isForwarded"]:
            client = user, header["clientId"] or ""
            requests[*client, "requests"] += 1
            requests[*client, "amount"] += int((line["localTimeMs"] + line["sendTimeMs"]) * 1000)
            requests[*client, "throttle_ms"] += response.get("throttleTimeMs", 0)
        moved = line["request"]["topicData"] if header["requestApiKey"] == 0 else ()
        if header["requestApiKey"] == 1:
            moved = response["responses"]
            throttled += response["throttleTimeMs"] > 0
        for topic in moved:
            partitions = topic.get("partitionData", topic.get("partitions"))
            size = sum(each["recordsSizeInBytes"] for each in partitions)
            records[user, topic.get("name"), topic.get("topicId")] += size
    history = History.open(str(tmp_path))
    kept: Counter[Any] = Counter()
    for row in history.seconds.read().to_pylist():
        if row["quota_type"] == "request":
            for name in ("requests", "amount", "throttle_ms"):
                kept[row["user"], row["client_id"], name] += row[name]
    assert requests.total() > 0
    assert +kept == +requests
    topics = history.topics.read()
    found: Counter[Any] = Counter()
    for row in topics.filter(pc.field("kind") == "records").to_pylist():
        found[row["user"], row["topic"], row["topic_id"]] += row["bytes"]
    assert +found == +records
    unsized = topics.filter(pc.field("kind") == "unknown size")
    assert (pc.sum(unsized["requests"]).as_py() or 0) == throttled


AT_LAST = 1_796_000_000_000
"""Ms UTC, after the last line of its logs."""
OLDER = Path(__file__).parents[1] / "captures" / "older-tables.tar.gz"


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two logs, and what an earlier release made of them in `usage`."""
    with tarfile.open(OLDER) as packed:
        packed.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path / "logs")
    return tmp_path


LATER = ("traffic", "queue_time_ms", "remote_time_ms", "response_queue_time_ms", "topic_ids")
"""Columns that the earlier release did not have."""
_FORWARDED = 9
"""Partitions of bob's only request of which there is the controller's line alone: the earlier release charged its thread time, too."""


def requests_of(folder: Path) -> pa.Table:
    """All requests, by their identity; logs lie elsewhere here, and places were not kept."""
    rows = IngestTables.create(str(folder)).requests.read()
    return rows.drop_columns([*PLACE]).sort_by("identity")


def unknown_in(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    older = pc.less(rows["completed"], pa.scalar(AT_LAST))
    for name in columns:
        at = rows.schema.get_field_index(name)
        values = pc.if_else(older, pa.nulls(len(rows), rows[name].type), rows[name])
        rows = rows.set_column(at, rows.schema.field(at), values)
    return rows


def history_of(folder: Path) -> pa.Table:
    rows = History.open(str(folder)).detail.read().drop_columns([*PLACE])
    rows = rows.filter(pc.field("mutations").is_null() | (pc.field("mutations") != _FORWARDED))
    return rows.sort_by(
        [
            (name, "ascending")
            for name in ("user", "client_id", "timestamp", "completed", "connection", "thread_time_ms")
        ]
    )


def test_an_older_history_is_read_by_the_names_of_today(older: Path) -> None:
    """What is read is what this release makes of the same logs; reading changes nothing."""
    before = sorted(older.rglob("*"))
    history = History.open(str(older / "usage"))
    rows = history.detail.read()
    assert (rows.schema, rows["position"].null_count) == (HISTORY, len(rows))
    ingest_logs(["a.log", "b.log"], str(older / "new"), IngestOptions())
    assert history_of(older / "usage").equals(history_of(older / "new"))
    assert sorted(path for path in older.rglob("*") if "new" not in path.parts) == before


@pytest.mark.parametrize("mode", Mode)
def test_an_older_history_is_replayed(older: Path, mode: Mode) -> None:
    """As one of today, before and after rows of today are added to it."""
    tried = Candidate(
        name="tight",
        quotas=QuotaSet({QuotaEntity(DEFAULT): dict.fromkeys(CLIENT_QUOTA_KEYS, 1.0) | {"request_percentage": 0.01}}),
    )

    def replayed(folder: str) -> pa.Table:
        found = what_if(str(older / folder), [tried], mode).results.filter(
            (pc.field("user") != "bob") | (pc.field("quota_type") != "request")
        )
        return found.sort_by([(name, "ascending") for name in ("user", "client_id", "quota_type")])

    Path("c.log").write_bytes(Path("a.log").read_bytes().replace(b"[2026-11", b"[2026-12"))
    for more in ([], ["c.log"]):
        ingest_logs(["a.log", "b.log", *more], str(older / "new"), IngestOptions())
        if more:
            ingest_logs(more, str(older / "usage"), IngestOptions())
        found = replayed("usage")
        assert pc.sum(found["throttled_ms"]).as_py() > 0
        assert found.equals(replayed("new"))


def test_an_older_folder_is_added_to(older: Path) -> None:
    """The same lines add nothing, others are added with the columns of today; merged or not, all are read alike."""
    report = ingest_logs(["a.log", "b.log"], str(older / "usage"), IngestOptions())
    assert (report.kept, report.quarantined) == (0, 0)
    Path("c.log").write_bytes(Path("a.log").read_bytes().replace(b"[2026-11", b"[2026-12"))
    for folder in ("usage", "new"):
        ingest_logs(["a.log", "b.log"], str(older / folder), IngestOptions())
        ingest_logs(["c.log"], str(older / folder), IngestOptions())
    for _ in range(2):
        found = requests_of(older / "usage")
        made = requests_of(older / "new")
        assert all(made[name].null_count < unknown_in(made, LATER)[name].null_count for name in LATER)
        assert set(found.column_names) == {*REQUESTS.names} - {*PLACE}
        assert found.equals(unknown_in(made, LATER))
        topics, others = (Table.open(str(older / name / "topics")).read() for name in ("usage", "new"))
        assert pc.sum(topics["bytes"]) == pc.sum(others["bytes"])
        assert "unknown topic" in topics["kind"].to_pylist()
        assert "unknown topic" not in others["kind"].to_pylist()
        assert history_of(older / "usage").equals(history_of(older / "new"))
        for table in store.tables_of(str(older / "usage")).values():
            table.compact()
