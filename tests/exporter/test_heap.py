from __future__ import annotations

import subprocess
import sys

THREADS = """
import re, threading
from pathlib import Path
from quotascope.exporter.heap import give_back_memory

give_back_memory()
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


ANSWERS = """
import os
from pathlib import Path
from quotascope.exporter.heap import give_back_memory

give_back_memory()
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
first = b"x" * (8 << 20)
del first  # from now on glibc itself cuts such blocks out of the heap
before = resident()
answers = [(b"x" * (4 << 20), bytes([n]) * 100_000) for n in range(20)]  # something small stays of each
kept = [small for _, small in answers]
del answers
print(resident() - before)
"""


def printed(code: str) -> int:
    """How many heaps of threads a process has besides the first one, or how many MiB it keeps."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_threads_share_heaps() -> None:
    """Twelve threads that take memory do so from one heap beside the first; by themselves they would have one each."""
    assert printed(THREADS) <= 1
    assert printed(THREADS.replace("\ngive_back_memory()\n", "\n")) > 2


def test_answers_are_given_back() -> None:
    """Of 80 MiB of answers nothing stays; by itself glibc would keep them for the small blocks between them."""
    assert printed(ANSWERS) < 8
    assert printed(ANSWERS.replace("\ngive_back_memory()\n", "\n")) > 40
