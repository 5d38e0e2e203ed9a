"""Memory and CPU time of a process and all below it, read from /proc while they work."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

EVERY_SECONDS: Final = 0.25
"""A look takes some ms, for it goes through all processes of the machine."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")


@dataclass(slots=True)
class _Process:
    name: str
    peak: int
    """Most bytes resident since the watch began, as the kernel counts it: nothing is missed between two looks."""
    before: float
    """CPU seconds when it was first seen; 0 when it was born under watch."""
    after: float


@dataclass(slots=True)
class Used:
    """Used memory and CPU time; complete when the watch has ended."""

    processes: dict[int, _Process] = field(default_factory=dict)
    together: int = 0
    """Most bytes resident at one look, of all Python processes below the root: the workers."""

    def peak(self, name: str) -> int:
        """Bytes of the largest process whose name begins so; 0 when there was none."""
        processes = self.processes.values()
        return max((process.peak for process in processes if process.name.startswith(name)), default=0)

    @property
    def cpu(self) -> float:
        """CPU seconds of all of them; of a process that ended, up to the last look."""
        return sum(process.after - process.before for process in self.processes.values())


@contextmanager
def watch(root: int) -> Iterator[Used]:
    """Watch a process and those below it, until the block ends."""
    used, over = Used(), threading.Event()
    for pid in _tree(root):
        # 5: the kernel's peak of the resident set starts again from zero
        (_PROC / str(pid) / "clear_refs").write_text("5")
    _look(root, used, born=False)

    def keep_looking() -> None:
        while not over.wait(EVERY_SECONDS):
            _look(root, used, born=True)

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield used
    finally:
        over.set()
        thread.join()
        _look(root, used, born=True)


def _look(root: int, used: Used, *, born: bool) -> None:
    together = 0
    for pid in _tree(root):
        with suppress(OSError, KeyError):  # it may end while it is looked at
            name, cpu = _stat(pid)
            status = _status(pid)
            process = used.processes.setdefault(pid, _Process(name, 0, 0.0 if born else cpu, cpu))
            process.name, process.after = name, cpu
            process.peak = max(process.peak, status["VmHWM"])
            together += status["VmRSS"] * (pid != root and name.startswith("python"))
    used.together = max(used.together, together)


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    pids = [root]
    for pid in pids:
        pids.extend(children.get(pid, ()))
    return pids


def _stat(pid: int) -> tuple[str, float]:
    """Name and CPU seconds."""
    head, _, tail = (_PROC / str(pid) / "stat").read_text().rpartition(")")
    fields = tail.split()
    return head.partition("(")[2], (int(fields[11]) + int(fields[12])) / _TICKS


def _status(pid: int) -> dict[str, int]:
    """Resident bytes now, and at most."""
    lines = (_PROC / str(pid) / "status").read_text().splitlines()
    pairs = (line.split() for line in lines if line.startswith(("VmHWM", "VmRSS")))
    return {name.rstrip(":"): int(kib) * 1024 for name, kib, _ in pairs}
