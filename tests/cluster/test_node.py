"""Nodes of a test cluster live no longer than wanted, and each has ports of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.ports import free_port

STARTER = """
import os, pathlib, sys
from tests.cluster.cluster import Cluster, Layout
cluster = Cluster(Layout.COMBINED, pathlib.Path(sys.argv[1]))
node = cluster.nodes[1]
node.format()
node.start()
print(node.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.real
def test_a_node_dies_with_the_run_that_started_it(tmp_path: Path) -> None:
    """A test run that is killed leaves no broker behind."""
    started = subprocess.run(
        [sys.executable, "-c", STARTER, str(tmp_path / "cluster")],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert started.returncode == -9
    process = Path("/proc") / started.stdout.strip()
    ended = tmp_path / "ended"
    wait = f"while [ -e {process} ]; do sleep 0.1; done; touch {ended}"
    subprocess.run(["timeout", "20", "sh", "-c", wait], check=True)
    assert ended.exists()


def test_no_port_is_given_twice() -> None:
    """No port is returned twice, so that it is still free when its node starts."""
    ports = [free_port() for _ in range(1_000)]
    assert len(set(ports)) == len(ports)
