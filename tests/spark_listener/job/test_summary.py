from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.spark_listener.recordings import ended

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.errors import UnreadableSummary
from quotascope.spark_listener.job import Job, read_summary, write_summary

REPORTED = (
    ("", ClientTotals(Client("", "a\n\ud800", "read"), 5, 1, 5, 0, 0)),
    ("clicks", ClientTotals(Client("alice", "b", "write"), 700, 3, 300, 0, 2)),
)


def test_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Names of all kinds come back, as do the attempts that are missing in the sums; an older file is replaced."""
    path = tmp_path / "summary.json"
    job = Job("app")
    job.add_throttles(lambda: REPORTED, "python")
    job.add_throttles(list, "jvm")
    job.source("pull")
    write_summary(job.snapshot(), path)
    assert read_summary(path) == (REPORTED, 0, ("python", "jvm"))
    job.add_scoped_stages(lambda: [3])
    job.handle(ended({"Reason": "ExecutorLostFailure"}, stage=3))
    write_summary(job.snapshot(), path)
    assert read_summary(path) == (REPORTED, 1, ("python", "jvm"))
    assert [each.name for each in tmp_path.iterdir()] == ["summary.json"]


@pytest.mark.parametrize(
    ("source", "lost", "others", "seen"),
    [("streaming", 0, 0, ("jvm",)), ("pull", 1, 0, ("jvm",)), ("pull", 0, 1, ("python", "jvm"))],
)
def test_python_clients_are_not_all_seen(
    source: str, lost: int, others: int, seen: tuple[str, ...], tmp_path: Path
) -> None:
    """If events of tasks are missing, so may be notes on failed attempts of Python tasks; the plugin needs no events."""
    job = Job("app")
    job.add_throttles(lambda: REPORTED, "python")
    job.add_throttles(list, "jvm")
    job.source(source)
    job.lost(lost)
    job.lost(others, ends=False)
    write_summary(job.snapshot(), tmp_path / "summary.json")
    assert read_summary(tmp_path / "summary.json").seen_clients == seen


@pytest.mark.parametrize(
    "document",
    [
        b"\xff",
        b"[]",
        b"{",
        b"[" * 100_000,
        b'{"quotascope_summary": 1, "throttles": [], "unknown_attempts": 0}',
        b'{"quotascope_summary": 2}',
        b'{"quotascope_summary": 2, "throttles": [{}]}',
        b'{"quotascope_summary": 2, "throttles": 7}',
        b'{"quotascope_summary": 2, "throttles": []}',
        b'{"quotascope_summary": 2, "throttles": [], "unknown_attempts": 0}',
        b'{"quotascope_summary": 2, "throttles": [], "unknown_attempts": -1, "seen_clients": []}',
        b'{"quotascope_summary": 2, "throttles": [], "unknown_attempts": 0, "seen_clients": 7}',
    ],
)
def test_file_that_is_no_summary(tmp_path: Path, document: bytes) -> None:
    """It is said so, with its name."""
    path = tmp_path / "other.json"
    path.write_bytes(document)
    with pytest.raises(UnreadableSummary, match=r"other\.json"):
        read_summary(path)


@pytest.mark.parametrize(("key", "value"), [("side", "both"), ("user", 7), ("responses", -1), ("throttled_ms", True)])
def test_row_that_is_none(tmp_path: Path, key: str, value: object) -> None:
    """Every name and every count is looked at."""
    path = tmp_path / "summary.json"
    job = Job("app")
    job.add_throttles(lambda: REPORTED)
    write_summary(job.snapshot(), path)
    document = json.loads(path.read_bytes())
    document["throttles"][0][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(UnreadableSummary):
        read_summary(path)
