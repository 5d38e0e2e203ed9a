"""What a log does not say is unknown in every form of the report, and never zero."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.spark_listener.recordings import Event, ended
from tests.spark_listener.report.throttled import BEGAN, log, progress

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.job import Job, write_summary
from quotascope.spark_listener.report import (
    Account,
    document,
    page,
    read_account,
    tables,
)


def in_a_terminal(account: Account) -> str:
    """As printed."""
    console = Console(file=io.StringIO(), width=200)
    console.print(tables(account))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


FORMS = pytest.mark.parametrize("form", [in_a_terminal, page])


def quiet(folder: Path, *events: Event) -> Path:
    """The log of an application in which no attempt left a note."""
    path = log(folder / "app-1")
    first, *_, last = path.read_text().splitlines()
    path.write_text("\n".join([first, *map(json.dumps, events), last]) + "\n")
    return path


def summary(folder: Path, totals: Mapping[str, int] | None, unknown: int = 0) -> Path:
    """What the listener left behind: of one client that reported so much, or of none."""
    job = Job("nightly")
    if totals is not None:
        counted = ClientTotals(Client("alice", "billing", "write"), **totals)
        job.add_throttles(lambda: [("", counted)])
    job.add_scoped_stages(lambda: [3])
    for _ in range(unknown):
        job.handle(ended({"Reason": "ExecutorLostFailure"}, stage=3))
    write_summary(job.snapshot(), folder / "summary.json")
    return folder / "summary.json"


SOME = {"throttled_ms": 2_000, "responses": 4, "longest_ms": 500}


@FORMS
@pytest.mark.parametrize(
    ("given", "headline", "seconds"),
    [
        pytest.param(None, "Throttle time unknown: no failed attempt noted any, ", None, id="a log alone"),
        pytest.param((None, 0), "Throttle time unknown: no Kafka client of the job reported", None, id="no client reported"),
        pytest.param(({}, 0), "Throttled 0 s,", 0, id="a client reported zeros"),
        pytest.param(({}, 2), "Throttle time unknown: the clients that reported did not wait, but 2 attempts ended", None, id="and attempts are missing"),
        pytest.param((SOME, 0), "Throttled 2 s,", 2, id="a client waited"),
        pytest.param((SOME, 1), "Throttled at least 2 s,", 2, id="at least"),
    ],
)  # fmt: skip
def test_throttle_time_of_a_job(
    form: Callable[[Account], str], given: Any, headline: str, seconds: float | None, tmp_path: Path
) -> None:  # fmt: skip
    """The headline says what is known, and why the rest is not; zero is what clients reported."""
    found = read_account(quiet(tmp_path), summary(tmp_path, *given) if given else None)
    assert headline in form(found)
    told = json.loads(document(found))
    assert told["throttled_seconds"] == seconds
    assert told["throttled_complete"] == (headline.endswith(" s,") and "least" not in headline)  # fmt: skip
    assert ("No throttle time was reported." in form(found)) == (seconds == 0)
    assert ("Which clients waited is unknown" in form(found)) == (seconds is None)


@FORMS
def test_failed_attempts_without_a_note(
    form: Callable[[Account], str], tmp_path: Path
) -> None:
    """Of an executor that was lost it is unknown how long its attempts waited."""
    lost = ended({"Reason": "ExecutorLostFailure"}, stage=7)
    lost["Task Info"]["Launch Time"] = BEGAN * 1_000
    found = read_account(quiet(tmp_path, lost))
    (stage,) = json.loads(document(found))["stages_hit"]
    assert stage["throttled_seconds"] is None
    text = form(found)
    row = text[text.index("7.0") :]
    assert "unknown" in row[:300]
    assert "0 s" not in row[:300]


@FORMS
def test_query_whose_source_does_not_say(
    form: Callable[[Account], str], tmp_path: Path
) -> None:
    """How long its last batch took and how far it is behind are unknown."""
    batch = progress(0, 1, "clicks")
    batch["progress"] |= {"durationMs": {}, "sources": []}
    text = form(read_account(quiet(tmp_path, batch)))
    row = text[text.rindex("clicks") :]
    assert row[:200].count("unknown") == 3
