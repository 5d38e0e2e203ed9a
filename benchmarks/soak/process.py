"""What /proc shows of a process."""

import os
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE_MIB: Final = os.sysconf("SC_PAGE_SIZE") / 2**20


def resident_mib(pid: int) -> float:
    """Its resident memory."""
    return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE_MIB


def descriptors(pid: int) -> int:
    """How many it has open."""
    return len(os.listdir(_PROC / str(pid) / "fd"))  # noqa: PTH208 - only counted


def threads(pid: int) -> int:
    """How many it has."""
    return int(_stat(pid)[17])


def cpu_seconds(pid: int | None) -> float:
    """What it has used, children that it has waited for included; 0 of one that is not there."""
    try:
        return 0.0 if pid is None else sum(map(int, _stat(pid)[11:15])) / _TICKS
    except OSError:
        return 0.0


def catches(pid: int, number: int) -> bool:
    """Whether it has a handler for a signal."""
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _stat(pid: int) -> list[str]:
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
