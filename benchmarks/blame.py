"""
Blame on real brokers: `python -m benchmarks blame --runs 20`.

A victim sends 50 requests a second to a broker with one or two handler threads, beside one or two aggressors; then the
broker's own request log is ingested, and the largest culprit of the victim's waits has to be the aggressor.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import confluent_kafka
import kafka as kafka_python
from benchmarks.output import say
from tests.cluster.cluster import Cluster, Layout, Plugin, running
from tests.cluster.flood import LOAD, PARTITIONS, WIDE

from quotascope.cli.main import app
from quotascope.pipeline.blame.summing import Blame
from quotascope.pipeline.runs.blame import blame

VICTIM, RATE = "victim", 50
CONNECTIONS = {"large_produces": 6, "small_fetches": 12, "metadata": 12}
"""
Connections of each kind of aggressor, whose name is its client id: as many of its requests are in the queue at most.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Times at which a load began and ended (epoch ms), and the number of requests of each client id."""

    begin_ms: int
    end_ms: int
    sent: dict[str, int]


@contextmanager
def broker(
    threads: int, folder: Path, classes: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Cluster]:
    """
    Yield a broker of the newest release with a number of handler threads.

    Its request log is at `cluster.nodes[1].request_log`.
    """
    settings = {"num.io.threads": str(threads), **settings}
    plugin = Plugin(newest=True, logs_requests=True, classes=classes, settings=settings)
    with running(Layout.COMBINED, folder, plugin=plugin) as cluster:
        with closing(kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
            admin.create_topics(
                {
                    LOAD: {"num_partitions": 2, "replication_factor": 1},
                    WIDE: {"num_partitions": PARTITIONS, "replication_factor": 1},
                },
                wait_for_metadata=True,
            )
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.admin, "log_level": 0})
        for partition in range(PARTITIONS):
            producer.produce(WIDE, bytes(1_000), partition=partition)
        producer.flush(30)
        yield cluster


def loaded(cluster: Cluster, aggressors: Sequence[str], seconds: float, victim: str = "small_produces") -> Load:
    """Let the victim send for so long, and the aggressors (keys of `CONNECTIONS`) as well."""
    begin_ms = time.time_ns() // 1_000_000
    command = [sys.executable, "-m", "tests.cluster.flood"]
    place = [cluster.admin, str(seconds)]
    started = {VICTIM: [*command, victim, VICTIM, *place, "--connections", "16", "--rate", str(RATE)]}
    for kind in aggressors:
        started[kind] = [*command, kind, kind, *place, "--connections", str(CONNECTIONS[kind])]
    floods = {name: subprocess.Popen(command, stdout=subprocess.PIPE) for name, command in started.items()}
    sent = {name: json.loads(flood.communicate(timeout=seconds + 60)[0])["sent"] for name, flood in floods.items()}
    return Load(begin_ms=begin_ms, end_ms=time.time_ns() // 1_000_000, sent=sent)


def culprits_of(log: Path, folder: Path, threads: int | None) -> tuple[Blame, dict[str, float]]:
    """Ingest a request log; return who is blamed, and by client id the s for which the victim waited because of it."""
    call(["ingest", str(log), "--broker", "1", "--into", str(folder)])
    result = blame(str(folder), threads=threads)
    clients, of_groups = result.plan.head.clients
    waits: Counter[str] = Counter()
    for row in result.sums.matrix.to_pylist():
        if clients[of_groups[row["victim"]]][1] == VICTIM:
            culprit = row["culprit"]
            waits["not in the log" if culprit < 0 else clients[of_groups[culprit]][1]] += row["wait_ns"]
    return result, {name: ns / 1e9 for name, ns in waits.most_common()}


def call(arguments: list[str]) -> None:
    """Run the command, quietly."""
    with redirect_stdout(StringIO()):
        app(arguments, standalone_mode=False)


def rounds(threads: int, runs: Sequence[Sequence[str]], seconds: float) -> Iterator[tuple[Sequence[str], Path]]:
    """
    Yield for each run its aggressors, and a log of its requests alone.

    All on one broker, each with a log of its own.
    """
    with TemporaryDirectory() as folder, broker(threads, Path(folder) / "kafka") as cluster:
        log = cluster.nodes[1].request_log
        for number, aggressors in enumerate(runs):
            time.sleep(1)
            begin = log.stat().st_size
            loaded(cluster, aggressors, seconds)
            part = Path(folder) / f"{number}.log"
            with log.open("rb") as lines:
                lines.seek(begin)
                part.write_bytes(lines.read())
            yield aggressors, part


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=15)


def main(options: argparse.Namespace) -> int:
    """Print each run; return 1 if an aggressor was not the first culprit of any run."""
    kinds = [
        ("large_produces",),
        ("small_fetches",),
        ("metadata",),
        ("large_produces", "metadata"),
        ("small_fetches", "large_produces"),
    ]
    wrong = 0
    for threads in (1, 2):
        count = options.runs // 2
        runs = (kinds * count)[:count]
        for aggressors, log in rounds(threads, runs, options.seconds):
            with TemporaryDirectory() as folder:
                result, waits = culprits_of(log, Path(folder), None)
            # of two aggressors, each first culprit is right: that both come before all others is what is asked
            named = [name for name in waits if name != "not in the log"]
            right = set(named[: len(aggressors)]) == set(aggressors)
            wrong += not right
            longest_waits = ", ".join(f"{name} {s:.2f} s" for name, s in list(waits.items())[:4])
            say(
                f"threads {threads} (estimated {result.plan.threads[0]}), {' + '.join(aggressors)}: {'right' if right else 'WRONG'}; {longest_waits}"
            )
    say(f"{options.runs - wrong} of {options.runs} right")
    return int(wrong > 0)
