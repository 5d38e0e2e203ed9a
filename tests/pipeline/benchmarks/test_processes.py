import os
import subprocess
import sys

from benchmarks.pipeline.processes import Used, watch

GROW = "held = b'x' * (64 << 20); sum(range(3_000_000)); input()"


def test_child_is_seen() -> None:
    """Memory and CPU time of a process that was born and ended under watch are reported."""
    command = [sys.executable, "-c", GROW]
    with (
        watch(os.getpid()) as used,
        subprocess.Popen(command, stdin=subprocess.PIPE) as child,
    ):
        while peak(used, child.pid) < 64 << 20:
            assert child.poll() is None
        child.communicate(b"\n")
    assert used.peak("python") >= 64 << 20
    assert used.cpu > 0


def peak(used: Used, pid: int) -> int:
    """Bytes, 0 of a process that was not seen yet."""
    return used.processes[pid].peak if pid in used.processes else 0


def test_peak_begins_with_the_watch() -> None:
    """What a process held before the watch, and holds no more, does not count."""
    mine = os.getpid()
    held = os.urandom(1 << 20) * 128
    with watch(mine) as before:
        pass
    del held
    with watch(mine) as after:
        pass
    assert peak(before, mine) - peak(after, mine) > 100 << 20
