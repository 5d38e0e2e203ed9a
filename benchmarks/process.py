"""Numbers of a process in /proc."""

import os
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE_MIB: Final = os.sysconf("SC_PAGE_SIZE") / 2**20


def resident_mib(pid: int) -> float:
    """Return the resident memory."""
    return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE_MIB


def peak_mib(pid: int) -> float:
    """Return the largest resident memory that it had."""
    lines = (_PROC / str(pid) / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def descriptors(pid: int) -> int:
    """Return the number of open descriptors."""
    return len(os.listdir(_PROC / str(pid) / "fd"))  # noqa: PTH208 - only counted


def threads(pid: int) -> int:
    """Return the number of threads."""
    return int(_stat(pid)[17])


def cpu_seconds(pid: int | None) -> float:
    """Return the used CPU time, children that it has waited for included; 0 of a process that is not there."""
    try:
        return 0.0 if pid is None else sum(map(int, _stat(pid)[11:15])) / _TICKS
    except OSError:
        return 0.0


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _stat(pid: int) -> list[str]:
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
