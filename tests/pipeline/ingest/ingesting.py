"""Ingest as the tests run it: files of lines, and the tables that come of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.pipeline.ingest.accounts import balanced
from tests.pipeline.log_lines import captured, values

from quotascope.pipeline.ingest import IngestOptions, IngestReport, IngestTables, ingest
from quotascope.pipeline.ingest.committing import RUNS
from quotascope.pipeline.table import Table

LINES = captured()
NAMED = IngestOptions(broker="1")
PLAIN = [text for text in LINES if b'"isForwarded":false' in text]


def log(folder: Path, *lines: bytes, name: str = "a.log") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(text + b"\n" for text in lines))
    return str(path)


def read(folder: Path, *paths: str, options: IngestOptions = NAMED) -> IngestReport:
    """Ingest into the tables of a test, whose counts must balance."""
    report = ingest(paths, str(folder / "tables"), options)
    assert balanced(report)
    assert sum(report.reasons.values()) == report.quarantined
    return report


def tables(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Return the rows of a test's tables; no request is there twice."""
    requests, quarantine = (table.read() for table in IngestTables.create(str(folder / "tables")))
    identities = requests["identity"].to_pylist()
    assert len(identities) == len(set(identities))
    return requests, quarantine


def reported(requests: pa.Table) -> list[Any]:
    """
    Return the clients' requests and their total charges.

    A controller's line that came a chunk before its client's is there, too.
    """
    clients = requests.filter(pc.invert(requests["forwarded"]))
    charged = ("mutations_charged", "partitions_created", "partitions_added", "partitions_deleted")
    identities = sorted(values(clients, "identity"))
    return [identities, *(pc.sum(requests[name]).as_py() for name in charged)]


def another_run(table: Table) -> None:
    """Commit nothing as another run does, so that a run that began before has to look again."""
    last_epoch = table.last_epoch(RUNS)
    table.advance(RUNS, [], after_epoch=last_epoch, epoch=0 if last_epoch is None else last_epoch + 1)
