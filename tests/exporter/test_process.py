from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from quotascope.exporter.process import READY, collect_garbage_rarely, notify

THREADS = """
import re, threading
from pathlib import Path
from quotascope.exporter.process import share_arenas

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


def printed(code: str, environ: Mapping[str, str] = os.environ) -> int:
    return int(subprocess.check_output([sys.executable, "-c", code], env=environ))


def test_threads_share_heaps() -> None:
    """Twelve threads share one heap beside the first, though each would have one of its own by default."""
    assert printed(THREADS) <= 1
    assert printed(THREADS.replace("\nshare_arenas()\n", "\n")) > 2


def test_numpy_starts_no_threads_for_linear_algebra() -> None:
    """
    NumPy starts no threads, unless the environment wants some.

    The command line has not imported NumPy until then.
    """
    code = """
import os, sys
import quotascope.cli.serve
from quotascope.exporter.process import spare_threads
assert "numpy" not in sys.modules
spare_threads()
import numpy
print(len(os.listdir("/proc/self/task")))
"""
    bare = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    assert printed(code, bare) == 1
    threads = printed(code, {**bare, "OPENBLAS_NUM_THREADS": "2"})
    assert threads == min(2, len(os.sched_getaffinity(0)))


def test_a_burst_of_objects_is_not_gone_through() -> None:
    """The objects of a large cluster are made without a single full search."""
    thresholds = gc.get_threshold()
    try:
        collect_garbage_rarely()
        searches = gc.get_stats()[2]["collections"]
        objects = [[number] for number in range(200_000)]
        assert gc.get_stats()[2]["collections"] == searches
        assert len(objects) == 200_000
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@pytest.mark.parametrize(("bound", "named"), [("", ""), ("\0", "@")])
def test_states_are_sent_to_the_service_manager(tmp_path: Path, bound: str, named: str) -> None:
    """A state is one datagram to a path or, for a name that begins with @, to an abstract socket, as in containers."""
    name = f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"{bound}{name}")
        listening.settimeout(60)
        notify(READY, {"NOTIFY_SOCKET": f"{named}{name}"})
        assert listening.recv(100) == b"READY=1"


@pytest.mark.parametrize(
    ("environ", "events"),
    [
        ({}, []),
        ({"NOTIFY_SOCKET": "vsock:2:1"}, []),
        ({"NOTIFY_SOCKET": "/nowhere/gone"}, ["the service manager cannot be notified"]),
    ],
)
def test_without_a_service_manager_nothing_is_sent(environ: dict[str, str], events: list[str]) -> None:
    """Without a service manager, or with another kind of socket, nothing is sent; a missing socket is a warning."""
    with capture_logs() as lines:
        notify(READY, environ)
    assert [line["event"] for line in lines] == events
