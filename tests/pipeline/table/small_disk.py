"""
A table on a disk that gets full; run in a mount namespace of its own, where it may mount one.

::

    unshare --mount python -m tests.pipeline.table.small_disk FOLDER
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.pipeline.table.rows import LAYOUT, SCHEMA, amounts, append, batch

from quotascope.pipeline.errors import NotWritten
from quotascope.pipeline.table import Table

SIZE_KB = 1_024


def main(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_KB}k", "tmpfs", folder], check=True)
    table = Table.create(str(folder / "table"), SCHEMA, LAYOUT)
    append(table, "first", batch(0))
    append(table, "next", batch(1))
    with full(folder), refused():
        append(table, "large", batch(3, 20_000))
    assert written(folder) == len(table.files())

    staged = table.stage(batch(2))
    with full(folder), refused():
        table.advance("second", staged, after_epoch=None, epoch=0)
    with full(folder):
        with refused():
            table.compact()
        fresh = Table.open(table.storage.uri)
        assert amounts(fresh.read()) == list(range(2_000))

    assert [append(fresh, "first", batch(0)), append(fresh, "second", batch(2))] == [0, 1_000]
    assert fresh.compact() > 0
    fresh.clean(0)
    assert fresh.read().num_rows == 3_000
    assert written(folder) == len(fresh.files())


@contextmanager
def full(folder: Path) -> Iterator[None]:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (4_096, 1):
            with suppress(OSError):
                while file.write(b"x" * size):
                    pass
    yield
    ballast.unlink()


@contextmanager
def refused() -> Iterator[None]:
    with pytest.raises(NotWritten, match=r"nothing was committed.*No space left on device") as raised:
        yield
    assert str(raised.value).isprintable()


def written(folder: Path) -> int:
    return len(list(folder.glob("table/day=*/**/*.parquet")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
