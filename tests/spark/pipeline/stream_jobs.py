"""A stream in a driver of its own, which can be made to stop at a certain point and wait there to be killed."""

import io
import threading
from contextlib import redirect_stdout
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.ingest.accounts import balanced

from quotascope.cli.main import app
from quotascope.pipeline.history import History
from quotascope.pipeline.history.store import tables_of
from quotascope.pipeline.ingest import IngestOptions, IngestReport
from quotascope.pipeline.runs.engine import on_spark
from quotascope.pipeline.runs.ingest import ingest_topic
from quotascope.pipeline.runs.shadow import ShadowStream
from quotascope.pipeline.table import Table
from quotascope.quotas.candidates import read_candidates

AT_A_TIME = 700
"""Messages of a batch."""
step = partialmethod(ShadowStream.step, now_ms=2_000_000_000_000)
"""A step at a time that stands still: a broker is never silent, however long a killed stream takes to start again."""


def run(_: SparkSession, servers: str, topic: str, folder: str, wait_before: str = "") -> list[Any]:
    """
    Read what the topic holds, and return the numbers of each batch.

    With the name of a table in `wait_before` the second batch stops before its commit to that table, or with `the end`
    when it is in all of them and Spark does not know; it makes the file `waiting`, and continues only for the dead.
    """
    reports: list[Any] = []

    def done(number: int, report: IngestReport) -> None:
        assert balanced(report)
        assert shadow.step(workers).late == 0
        tables = tables_of(f"{folder}/tables")
        rows = {name: sum(file.rows for file in table.files()) for name, table in tables.items()}
        assert rows["history"] == rows["requests"] > 0, "what-if sees each batch"
        wait.at("the end")
        reports.append([number, report.read, report.kept, report.quarantined, report.duplicates])

    wait = _Wait(Path(folder), wait_before, reports)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "advance", wait.advance(Table.advance))
        patch.setattr(ShadowStream, "step", step)
        source = {"kafka.bootstrap.servers": servers, "subscribe": topic, "maxOffsetsPerTrigger": str(AT_A_TIME)}
        into, rules = f"{folder}/tables", read_candidates(f"{folder}/candidates.yaml")
        shadow = ShadowStream(into, History.create(into, 16), rules)
        workers = on_spark().map
        ingest_topic(source, into, f"{folder}/checkpoint", IngestOptions(broker="1"), every=None, done=done)
        assert shadow.step(workers, all_of_it=True).late == 0
    return reports


def command(_: SparkSession, servers: str, topic: str, folder: str) -> list[str]:
    """Read what the topic holds by the command, which takes this driver's session, and return what it prints."""
    options = {
        "topic": f"kafka://{servers}/{topic}",
        "candidates": f"{folder}/candidates.yaml",
        "into": f"{folder}/tables",
        "broker": "1",
        "checkpoint": f"{folder}/checkpoint",
        "option": f"maxOffsetsPerTrigger={AT_A_TIME}",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    with redirect_stdout(io.StringIO()) as printed, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShadowStream, "step", step)
        app(["shadow", "stream", *words, "--once"], standalone_mode=False)
    return printed.getvalue().splitlines()


class _Wait:
    def __init__(self, folder: Path, place: str, reports: list[Any]) -> None:
        self._folder, self._place, self._reports = folder, place, reports
        self._begun = (folder / "tables").exists()
        """By a driver that was killed in the second batch."""

    def at(self, place: str) -> None:
        if place == self._place and (self._begun or self._reports):
            (self._folder / "waiting").touch()
            threading.Event().wait()

    def advance(self, real: Any) -> Any:
        def waiting(table: Table, *arguments: Any, **more: Any) -> int:
            self.at(Path(table.storage.uri).name)
            return int(real(table, *arguments, **more))

        return waiting
