"""A folder with enough room, gone afterwards."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

GIB: Final = 1 << 30
_SPARE: Final = 4 * GIB


class NoRoom(Exception):
    """The disk is too full for what is to be written; the message says how much is missing, and where."""


@contextmanager
def room_for(size: int) -> Iterator[Path]:
    """Yield a folder below the user's cache, where that many bytes can be written. Raises `NoRoom`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache /= "quotascope"
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free
    if free < size + _SPARE:
        missing = (size + _SPARE - free) / GIB
        raise NoRoom(
            f"{cache} needs {missing:.1f} GiB more than are free: use a smaller --scale, or set XDG_CACHE_HOME"
        )
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-", dir=cache) as name:
        yield Path(name)


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
