"""docs/clients.md: its examples run, and its table is the catalog's."""

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from kafka import KafkaAdminClient
from tests.cluster.cluster import Cluster
from tests.integration.eventually import eventually

from quotascope.metrics.catalog import client_families

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


def test_the_table_is_the_catalogs() -> None:
    """Every family, with its type, labels and meaning."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `kafka_client_.*$", text, re.MULTILINE)
    expected = [
        f"| `{family.name}` | {family.type.value} | {', '.join(f'`{label}`' for label in family.labels)} | {family.help} |"
        for family in client_families()
    ]
    assert rows == expected


@pytest.mark.real
def test_the_examples_run(kafka: Cluster, tmp_path: Path) -> None:
    """One after the other, as one program, against a real broker; the page that is printed has every client."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    program = tmp_path / "examples.py"
    text = "\n".join(blocks).replace("broker-1:9092", kafka.admin)
    program.write_text(text)
    with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
        shape = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({"orders": shape}, wait_for_metadata=True)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(blocks) == 8
    for client_id, side in (("billing", "write"), ("reports", "read")):
        series = f'kafka_client_throttled_seconds_total{{client_id="{client_id}",side="{side}",user=""}} 0.0'
        assert series in done.stdout
    created = {"invoices", "payments", "refunds"}

    def look() -> None:
        with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
            assert created <= set(cast("Any", admin).list_topics())

    eventually(look)
