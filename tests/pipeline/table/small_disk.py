"""
A table on a disk that gets full; run in a mount namespace of its own, where it may mount one.

::

    unshare --mount python -m tests.pipeline.table.small_disk FOLDER

It prints what it saw as JSON.
"""

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.pipeline.table.rows import LAYOUT, SCHEMA, amounts, append, batch

from quotascope.pipeline.errors import NotWritten
from quotascope.pipeline.table import Table

SIZE_KB = 1_024


def main(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_KB}k", "tmpfs", folder], check=True)
    table = Table.create(str(folder / "table"), SCHEMA, LAYOUT)
    append(table, "first", batch(0))
    append(table, "next", batch(1))
    seen: dict[str, object] = {}

    ballast = _fill(folder)
    seen["data"] = _refused(lambda: append(table, "large", batch(3, 20_000)))
    seen["left_by_data"] = len(_parquet(folder)) - len(table.files())
    ballast.unlink()

    staged = table.stage(batch(2))
    ballast = _fill(folder)
    seen["commit"] = _refused(lambda: table.advance("second", staged, after=None, epoch=0))
    ballast.unlink()

    ballast = _fill(folder)
    seen["compaction"] = _refused(table.compact)
    fresh = Table.open(table.storage.uri)
    seen["whole"] = amounts(fresh.read()) == list(range(2_000))
    ballast.unlink()

    seen["again"] = [append(fresh, "first", batch(0)), append(fresh, "second", batch(2))]
    seen["compacted"] = fresh.compact() > 0
    fresh.clean(0)
    seen["rows"] = fresh.read().num_rows
    seen["left"] = len(_parquet(folder)) - len(fresh.files())
    sys.stdout.write(json.dumps(seen))


def _refused(change: Callable[[], object]) -> str | None:
    try:
        change()
    except NotWritten as error:
        return str(error)
    return None


def _fill(folder: Path) -> Path:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (4_096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return ballast


def _parquet(folder: Path) -> list[Path]:
    return list(folder.glob("table/day=*/**/*.parquet"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
