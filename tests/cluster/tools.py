"""Kafka's own command line, run against a test cluster."""

import subprocess
from typing import Final

from .cluster import Cluster
from .node import java

CLASSES: Final = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
}


def run_tool(cluster: Cluster, script: str, *arguments: str) -> str:
    """Run what the script of that name runs, as the super user of the plaintext listener, and return its output."""
    command = java(CLASSES[script], "--bootstrap-server", cluster.admin, *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
