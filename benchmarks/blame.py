"""
Who is blamed on real brokers: `python -m benchmarks.blame --runs 20`.

A victim sends 50 requests a second to a broker with one or two handler threads, beside one or two aggressors; then the broker's own request
log is ingested, and the largest culprit of the victim's waits has to be the aggressor.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import kafka as kafka_python
from tests.cluster.cluster import Cluster, Layout, Plugin, running
from tests.cluster.flood import LOAD, PARTITIONS, WIDE

VICTIM, RATE = "victim", 50
CONNECTIONS = {"large_produces": 6, "small_fetches": 12, "metadata": 12}
"""Of each kind of aggressor, whose name is its client id: so many of its requests are in the queue at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What was sent, from when to when (epoch ms), and how many requests of each client id."""

    begin_ms: int
    end_ms: int
    sent: dict[str, int]


@contextmanager
def broker(threads: int, folder: Path) -> Iterator[Cluster]:
    """A broker of the newest release with so many handler threads, and its request log at `cluster.nodes[1].request_log`."""
    plugin = Plugin(newest=True, logs_requests=True, settings={"num.io.threads": str(threads)})  # fmt: skip
    with running(Layout.COMBINED, folder, plugin=plugin) as cluster:
        with closing(kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:  # fmt: skip
            admin.create_topics({LOAD: {"num_partitions": 1, "replication_factor": 1}, WIDE: {"num_partitions": PARTITIONS, "replication_factor": 1}}, wait_for_metadata=True)  # fmt: skip
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.admin, "log_level": 0})  # fmt: skip
        for partition in range(PARTITIONS):
            producer.produce(WIDE, bytes(1_000), partition=partition)
        producer.flush(30)
        yield cluster


def loaded(cluster: Cluster, aggressors: Sequence[str], seconds: float, victim: str = "small_produces") -> Load:  # fmt: skip
    """Let the victim send for so long, and the aggressors (keys of `CONNECTIONS`) as well."""
    begin_ms = time.time_ns() // 1_000_000
    command = [sys.executable, "-m", "tests.cluster.flood"]
    place = [cluster.admin, str(seconds)]
    started = {VICTIM: [*command, victim, VICTIM, *place, "--connections", "16", "--rate", str(RATE)]}  # fmt: skip
    for kind in aggressors:
        started[kind] = [*command, kind, kind, *place, "--connections", str(CONNECTIONS[kind])]  # fmt: skip
    floods = {name: subprocess.Popen(each, stdout=subprocess.PIPE) for name, each in started.items()}  # fmt: skip
    sent = {name: json.loads(flood.communicate(timeout=seconds + 60)[0])["sent"] for name, flood in floods.items()}  # fmt: skip
    return Load(begin_ms=begin_ms, end_ms=time.time_ns() // 1_000_000, sent=sent)
