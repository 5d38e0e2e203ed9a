from __future__ import annotations

import os
import subprocess
import sys

THREADS = """
import re, threading
from pathlib import Path
from quotascope.exporter.heap import share_arenas

share_arenas()
done = threading.Barrier(13)
def work():
    kept = [b"x" * 600 for _ in range(2_000)]  # too large for Python's own allocator
    done.wait()
    done.wait()
    kept.clear()
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
done.wait()
heaps = re.findall(r"^([0-9a-f]+)000000-\\S+ rw", Path("/proc/self/maps").read_text(), re.MULTILINE)
done.wait()
print(sum(int(start + "000000", 16) % (64 << 20) == 0 for start in heaps))
"""


def heaps(code: str) -> int:
    """How many heaps of threads a process has, besides the first one."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_threads_share_heaps() -> None:
    """Twelve threads that take memory do so from one heap beside the first; by themselves they would have one each."""
    assert heaps(THREADS) <= 1
    assert heaps(THREADS.replace("\nshare_arenas()\n", "\n")) > 2


def test_numpy_starts_no_threads_for_linear_algebra() -> None:
    """It would start one for each core, unless the environment wants some; the command line has not imported it until then."""
    code = """
import os, sys
import quotascope.cli.serve
from quotascope.exporter.heap import spare_threads
assert "numpy" not in sys.modules
spare_threads()
import numpy
print(len(os.listdir("/proc/self/task")))
"""
    bare = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    assert _threads(code, bare) == 1
    more = _threads(code, {**bare, "OPENBLAS_NUM_THREADS": "2"})
    assert more == min(2, len(os.sched_getaffinity(0)))


def _threads(code: str, environment: dict[str, str]) -> int:
    command = [sys.executable, "-c", code]
    return int(subprocess.check_output(command, env=environment))
