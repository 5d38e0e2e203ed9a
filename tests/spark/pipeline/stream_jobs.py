"""A stream in a driver of its own, which can be made to stop at a certain point and wait there to be killed."""

import io
import threading
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quotascope.cli.main import app
from quotascope.pipeline.ingest import IngestOptions, IngestReport
from quotascope.pipeline.runs.ingest import ingest_topic
from quotascope.pipeline.table import Table

AT_A_TIME = 700
"""Messages of a batch."""


def run(
    _: SparkSession,
    servers: str,
    topic: str,
    folder: str,
    wait_before: str = "",
) -> list[Any]:
    """
    Read what the topic holds, and return the numbers of each batch.

    With the name of a table in `wait_before` the second batch stops before its commit to that table, makes the file `waiting`, and goes on
    only for the dead.
    """
    reports: list[Any] = []

    def done(number: int, report: IngestReport) -> None:
        assert report.balanced
        reports.append([number, report.read, report.kept, report.quarantined, report.duplicates])  # fmt: skip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "advance", _waiting(Path(folder), wait_before, reports))
        source = {
            "kafka.bootstrap.servers": servers,
            "subscribe": topic,
            "maxOffsetsPerTrigger": str(AT_A_TIME),
        }
        ingest_topic(
            source,
            f"{folder}/tables",
            f"{folder}/checkpoint",
            IngestOptions(),
            done=done,
        )
    return reports


def command(_: SparkSession, servers: str, topic: str, folder: str) -> list[str]:
    """Read what the topic holds by the command, which takes this driver's session, and return what it prints."""
    options = [
        "--into",
        f"{folder}/tables",
        "--checkpoint",
        f"{folder}/checkpoint",
        "--once",
    ]
    options += ["--option", f"maxOffsetsPerTrigger={AT_A_TIME}"]
    with redirect_stdout(io.StringIO()) as printed:
        app(["ingest", f"kafka://{servers}/{topic}", *options], standalone_mode=False)
    return printed.getvalue().splitlines()


def _waiting(folder: Path, name: str, reports: list[Any]) -> Any:
    advance = Table.advance
    begun = (
        folder / "tables"
    ).exists()  # by a driver that was killed in the second batch

    def waiting(table: Table, *arguments: Any, **more: Any) -> int:
        if name and (begun or reports) and table.storage.uri.endswith(f"/{name}"):
            (folder / "waiting").touch()
            threading.Event().wait()
        return advance(table, *arguments, **more)

    return waiting
