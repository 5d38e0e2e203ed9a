"""A node of a test cluster lives no longer than wanted, and can be had back."""

import subprocess
import sys
from pathlib import Path

import pytest

from quotascope.clients import open_quota_admin

from .cluster import Cluster, Layout, Plugin

pytestmark = pytest.mark.real

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
    subprocess.run(
        [
            "timeout",
            "20",
            "sh",
            "-c",
            f"while [ -e {process} ]; do sleep 0.1; done; touch {ended}",
        ],
        check=True,
    )
    assert ended.exists()


def test_a_killed_controller_is_replaced_and_comes_back(failover_kafka: Cluster) -> None:
    """Another controller takes over from the active one, and the killed one starts again with its data and ports."""
    admin = open_quota_admin(failover_kafka.connection())
    first = admin.describe_quorum_leader()
    assert first in {101, 102, 103}
    failover_kafka.nodes[first].kill()
    second: int | None = first
    while second in {first, None}:
        second = admin.describe_quorum_leader()
    assert second in {101, 102, 103}
    failover_kafka.nodes[first].start()
    failover_kafka.nodes[first].wait_until_ready()
    assert admin.describe_quorum_leader() == second
    admin.close()


def test_only_the_node_itself_writes_a_request_log(tmp_path: Path) -> None:
    """The tool that formats a node's storage does not know where the log should be, and leaves no file anywhere."""
    special = Plugin(logs_requests=True)
    cluster = Cluster(Layout.COMBINED, tmp_path / "cluster", plugin=special)
    here = set(Path.cwd().iterdir())
    cluster.nodes[1].format()
    assert set(Path.cwd().iterdir()) == here
    assert not cluster.nodes[1].request_log.exists()
