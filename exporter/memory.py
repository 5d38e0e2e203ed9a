"""The memory that the exporter may use, and the memory that it needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1 << 20
BYTES_OF_NUMBER: Final = 2 << 10
"""
Memory for each quota value of each node, from the read to the metrics: 542 MiB were measured with 240,000 values, 487
with 200,000.
"""
BASE_BYTES: Final = 200 * MEBIBYTE
"""Memory of the program itself, and of the answers that are being read."""
_UNLIMITED: Final = 1 << 60
"""Number above which version 1 of cgroups means that there is no limit."""


def needed_bytes(numbers: int) -> int:
    """Return the bytes that the exporter needs for so many quota values of all nodes together."""
    return BASE_BYTES + BYTES_OF_NUMBER * numbers


def numbers_within(limit_bytes: int) -> int:
    """Return how many quota values of all nodes together fit into so much memory."""
    return max(0, limit_bytes - BASE_BYTES) // BYTES_OF_NUMBER


def limit_bytes(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """
    Return the least limit of the control groups that this process is in, version 1 or 2.

    Return None where there is none, or it cannot be read. In a container its own group is often at the root.
    """
    limits: list[int] = []
    for line in _read(proc).splitlines():
        # a line is NUMBER:CONTROLLERS:PATH, without controllers in version 2; any other line counts as empty
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        base, file = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):  # the limits of the groups around it hold as well
            text = _read(folder / file).strip()
            if text.isdigit() and int(text) < _UNLIMITED:
                limits.append(int(text))
            if folder == base:
                break
    return min(limits, default=None)


def machine_bytes() -> int:
    """Return the memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _read(path: Path) -> str:
    """Return the text of a file; an empty text if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""
