"""
A log that is ingested on a disk that is too small; run in a mount namespace of its own, where it may mount one.

::

    unshare --mount python -m tests.pipeline.ingest.small_disk FOLDER LOG

It prints what it saw as JSON.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.pipeline.ingest.accounts import balanced

from quotascope.pipeline.errors import NotWritten
from quotascope.pipeline.ingest import IngestTables, ingest, local

SMALL_KB = 512


def main(folder: Path, log: str) -> None:
    """Fill a small disk with requests, look at what is there, make it larger, and go on."""
    _mount(folder, f"size={SMALL_KB}k")
    local.BLOCK = 100_000  # type: ignore[misc]
    local.CHUNK = 100  # type: ignore[misc]
    into = str(folder / "tables")
    seen: dict[str, object] = {}
    try:
        ingest([log], into)
    except NotWritten as error:
        seen["reported"] = str(error)
    seen["rows"] = IngestTables.create(into).requests.read().num_rows
    _mount(folder, "remount,size=64m")
    report = ingest([log], into)
    seen["again"] = [report.duplicates, report.kept, balanced(report)]
    seen["all"] = IngestTables.create(into).requests.read().num_rows
    sys.stdout.write(json.dumps(seen))


def _mount(folder: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
