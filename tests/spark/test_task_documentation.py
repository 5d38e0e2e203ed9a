"""docs/spark-tasks.md: its examples run, as one program."""

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from tests.cluster.cluster import Cluster
from tests.spark.process import variables
from tests.spark.versions import RUNNING

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs" / "spark-tasks.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_run(kafka: Cluster, tmp_path: Path) -> None:
    """Against a real broker, on a real Spark; what is printed in the end has every client, and none was throttled."""
    with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
        admin.delete_topics(["orders", "refunds"], raise_errors=False)
        shape = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({"orders": shape}, wait_for_metadata=True)
    program = tmp_path / "job.py"
    program.write_text("\n".join(blocks()).replace("broker-1:9092", kafka.admin))
    done = subprocess.run(
        [sys.executable, str(program)],
        env=variables(RUNNING, tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    assert len(blocks()) == 3
    printed = sorted(done.stdout.splitlines()[-3:])
    assert printed == ["billing write 0 0", "reports read 0 0", "topics admin 0 0"]
