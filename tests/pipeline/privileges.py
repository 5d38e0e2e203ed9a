"""Files that a user may not read, though the tests may run as root."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def without_privileges() -> Iterator[None]:
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter, as pytest's own is closed to all other users."""
    with TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
