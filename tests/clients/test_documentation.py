"""
docs/guides/clients.md: its examples run, and its table is the catalog's; docs/guides/other-clients.md.

Its rules join what clients pushed with the quotas that decide.
"""

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from kafka import KafkaAdminClient
from tests.cluster.cluster import Cluster
from tests.integration.eventually import eventually

from quotascope.metrics.catalog import client_families

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_the_catalogs() -> None:
    """The table has every family, with its type, labels and meaning."""
    text = (DOCS / "guides" / "clients.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `kafka_client_.*$", text, re.MULTILINE)
    expected = [
        f"| `{family.name}` | {family.type.value} | {', '.join(f'`{label}`' for label in family.labels)} | "
        f"{family.help} |"
        for family in client_families()
    ]
    assert rows == expected


@pytest.mark.real
def test_the_examples_run(kafka: Cluster, tmp_path: Path) -> None:
    """The examples run as one program against a real broker, and the page that they print has every client."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (DOCS / "guides" / "clients.md").read_text(), re.MULTILINE | re.DOTALL
    )
    program = tmp_path / "examples.py"
    text = "\n".join(blocks).replace("broker-1:9092", kafka.admin)
    program.write_text(text)
    with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
        shape = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({"orders": shape}, wait_for_metadata=True)
    process = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=120)
    assert process.returncode == 0, process.stderr
    assert len(blocks) == 8
    for client_id, side in (("billing", "write"), ("reports", "read")):
        series = f'kafka_client_throttled_seconds_total{{client_id="{client_id}",side="{side}",user=""}} 0.0'
        assert series in process.stdout
    created = {"invoices", "payments", "refunds"}

    def look() -> None:
        with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
            assert created <= set(cast("Any", admin).list_topics())

    eventually(look)


PUSHED = Path(__file__).with_name("kip714.txt")
"""
The page of an OpenTelemetry Collector behind a broker (Kafka 4.3.1) with a plugin that adds client-id and principal.

Java 4.3.1, librdkafka 2.16 and franz-go 1.22.2, each throttled; a broker's plugin forwarded what they pushed.
"""
INFO = "kafka_quota_rule_info"
RULES = {
    "java-billing": (
        'user="alice",client_id="java-billing"',
        {"level": "user_client", "rule_user": "alice", "rule_client_id": "java-billing"},
    ),
    "py-billing": ('user="alice",client_id=""', {"level": "user", "rule_user": "alice"}),
    "go-billing": (
        'user="",client_id="go-billing"',
        {"level": "client", "rule_client_id": "go-billing"},
    ),
}  # fmt: skip
"""
Labels by client: the entity that the broker measures it as, and the rule that decides. Of alice's two clients one has a
rule of its own.
"""
REPORTED = {"java-billing": 2.201, "py-billing": 1.201, "go-billing": 0.022}


@pytest.mark.real
def test_the_rules_join_each_level_of_quotas(tmp_path: Path) -> None:
    """
    Rules of a pair, a user and a client-id are joined.

    Each client has the rule under which the broker measures it.
    """
    (rules,) = re.findall(
        r"^```yaml\n(.*?)^```", (DOCS / "guides" / "other-clients.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "rules.yaml").write_text(rules)
    series = [line.rsplit(" ", 1) for line in PUSHED.read_text().splitlines()]
    for entity, rule in RULES.values():
        labels = ",".join(f'{label}="{text}"' for label, text in rule.items())
        series.append([f'{INFO}{{quota_type="produce",{entity},{labels}}}', "1"])
    users = {"java-billing": "alice", "py-billing": "alice", "go-billing": "ANONYMOUS"}
    record = "client:kafka_produce_throttle_seconds:rule"
    expected = []
    for client, seconds in REPORTED.items():
        label_values = {"user": users[client], "client_id": client, **RULES[client][1]}
        labels = ",".join(f'{label}="{text}"' for label, text in label_values.items())
        expected.append({"labels": f"{record}{{{labels}}}", "value": seconds})
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": f"{value}x5"} for name, value in series],
        "promql_expr_test": [{"expr": record, "eval_time": "5m", "exp_samples": expected}],
    }  # fmt: skip
    tests = tmp_path / "tests.yaml"
    tests.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [case]}))
    process = subprocess.run(["promtool", "test", "rules", str(tests)], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
