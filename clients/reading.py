"""
Reading of whole files within bounds.

A named pipe without a writer would hold the reader up for ever, and a device has no end: neither is read, but for
/dev/null, an empty file.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_OPEN_FILES: Final = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Path prefixes of files that this process has open, such as those of a shell's ``<(command)``: these may be pipes."""


def content_of(file: Path, most_bytes: int) -> bytes:
    """
    Return the content of a file.

    Raises:
        OSError: the file cannot be opened or read, is neither a regular file, /dev/null, nor one that is open already,
            or is longer than
            ``most_bytes``.

    """
    with open(file, "rb", opener=_without_waiting) as opened:
        descriptor = opened.fileno()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) and str(file) != os.devnull:
            if not str(file).startswith(_OPEN_FILES) or os.isatty(descriptor):
                raise OSError(errno.EINVAL, "it is not a regular file", str(file))
            os.set_blocking(descriptor, True)
        return bounded(opened, most_bytes)


def bounded(opened: BinaryIO, most_bytes: int) -> bytes:
    """Return the rest of an open file. Raises ``OSError`` when it is longer than ``most_bytes``."""
    content = opened.read(most_bytes + 1)
    if len(content) > most_bytes:
        size = f"{most_bytes >> 20} MiB" if most_bytes >= 1 << 20 else f"{most_bytes >> 10} KiB"
        raise OSError(errno.EFBIG, f"it is larger than {size}, the largest that is read", str(opened.name))
    return content


def _without_waiting(file: str, flags: int) -> int:
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has neither the flag nor such pipes
