"""Commands of the runbooks on a real broker."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.alerts.commands import COMMANDS
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.tools import run_tool
from tests.cluster.traffic import Traffic
from tests.commands import run
from tests.integration.exporter import settings_for, write_config

pytestmark = pytest.mark.real

KEYS = {"producer_byte_rate": 1e9, "consumer_byte_rate": 1e9}
KEYS |= {"request_percentage": 1e4, "controller_mutation_rate": 1e4}
ENTITIES: list[dict[str, str | None]] = [{"user": "alice"}, {"user": None}, {"client-id": "app1"}]
ENTITIES.append({"user": "alice", "client-id": "app1"})
REPLICATION = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
DYNAMIC = (*REPLICATION, "max.connection.creation.rate")
NEEDS_AN_AUTHORIZER = "kafka-acls.sh"


@pytest.fixture
def scene(kafka: Cluster, quotas: Quotas, traffic: Traffic) -> Iterator[Cluster]:
    """Set everything that runbooks change or remove on the broker; remove it afterwards."""
    traffic.topic()
    quotas.set(*((entity, KEYS) for entity in ENTITIES))
    quotas.set(({"ip": "192.0.2.7"}, {"connection_creation_rate": 1000.0}))
    added = ",".join(f"{key}=1000000" for key in DYNAMIC)
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    run_tool(kafka, "kafka-configs.sh", "--alter", "--add-config", added, *broker)
    yield kafka
    # settings that a test removed cannot be removed again: set them first
    run_tool(kafka, "kafka-configs.sh", "--alter", "--add-config", added, *broker)
    removal = ("--alter", "--delete-config", ",".join(DYNAMIC))
    run_tool(kafka, "kafka-configs.sh", *removal, *broker)


def kind(command: str) -> str:
    """Return a command without its values: one of each kind is tried, as each starts a JVM."""
    words = shlex.split(command)
    values = {
        value for option, value in pairwise(words) if option in {"--add-config", "--delete-config", "--entity-name"}
    }
    return " ".join(word for word in words if word not in values)


TRIED = sorted({kind(command): command for command in COMMANDS}.values())


def test_commands(scene: Cluster, guarded_kafka: Cluster, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Every command succeeds: Kafka's tools on the broker, quotascope with a configuration for it."""
    config = tmp_path / "quotascope.yaml"
    write_config(config, settings_for(scene.brokers, scene.admin))
    # settings can be removed only once
    for command in sorted(TRIED, key=lambda line: "--delete-config" in line):
        with subtests.test(msg=command):
            program, *arguments = shlex.split(command)
            cluster = guarded_kafka if program == NEEDS_AN_AUTHORIZER else scene
            if program == "quotascope":
                arguments = [str(config) if argument == "/etc/quotascope.yaml" else argument for argument in arguments]
                process = run(*arguments)
                assert process.returncode == 0, process.stdout + process.stderr
            else:
                position = arguments.index("--bootstrap-server")
                assert arguments[position + 1] == "broker-1:9092"
                del arguments[position : position + 2]
                run_tool(cluster, program, *arguments)
