"""Kafka's own command line, run against a test cluster."""

import subprocess
from typing import Final

from .cluster import Cluster
from .node import java

CLASSES: Final = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}


def run_tool(cluster: Cluster, script: str, *arguments: str) -> str:
    """Run what the script of that name runs, as the super user of the plaintext listener, and return its output."""
    return run_as_printed(script, "--bootstrap-server", cluster.admin, *arguments)


def run_as_printed(script: str, *arguments: str) -> str:
    """Run what the script of that name runs with these arguments alone, and return its output."""
    return subprocess.run(java(CLASSES[script], *arguments), check=True, capture_output=True, text=True).stdout
