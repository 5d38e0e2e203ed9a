"""
All examples that `--help` prints, as they are printed, against a real broker, its agents, exporters and a Grafana.

Names of files and hosts alone are replaced.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import COMMANDS
from tests.cluster.certificates import make_certificates
from tests.cluster.cluster import Cluster
from tests.cluster.ports import free_port
from tests.cluster.quotas import Quotas
from tests.cluster.users import USERS
from tests.commands import COMMAND
from tests.dashboards import fake_grafana
from tests.exporter.web.serving import HASH, PASSWORD
from tests.integration.backfilled import HOUR_S, Backfill, backfilled
from tests.integration.eventually import eventually, some
from tests.integration.exporter import Exporter, settings_for, write_config
from tests.integration.preloaded import preloaded
from tests.pipeline.runs.prometheus import answering
from tests.prometheus.releases import OLDEST

from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.shadow import ShadowStream
from quotascope.quotas.candidates import read_candidates
from quotascope.spark_listener.job import Job, write_summary

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
REQUESTS = ROOT / "tests/pipeline/captures/kafka-4.3.1-request.log.gz"
RULES = Path(__file__).parents[1] / "cluster" / "jmx_exporter.yml"
EVENTS = ROOT / "tests/spark_listener/recorded/4.3.0/logs"
_EXAMPLE = re.compile(r"(?:\w+=\S+ )?(?:quotascope|zcat|spark-submit) ")
_ENDLESS = re.compile(r"quotascope (?:serve|demo)\b")
"""Commands that run until a signal."""
_CODES = {"doctor": {0, 1}, "quotas diff": {0, 2}, "rules check": {1}, "shadow status": {0, 3, 4}}
"""Exit codes that stand for what was found, not for a failure."""
_SUBMIT = """\
import os, sys
words = sys.argv[1:]
while words[0].startswith("--"):
    option, value = words.pop(0), words.pop(0)
    if option in {"--py-files", "--jars"} and not os.path.exists(value):
        sys.exit(f"{value} is missing")
    if option not in {"--py-files", "--jars", "--master", "--packages", "--conf"}:
        sys.exit(f"{option} is unknown")
if any(word.startswith("kafka://") for word in words):  # tests/spark/pipeline has the stream
    words.append("--help")
os.execv(sys.executable, [sys.executable, *words])
"""
"""
Program in the place of `spark-submit`: it looks at the options, and runs the application in this Python, without a JVM.
"""

THROTTLES = {
    "kafka_quota_shadow_throttle_time_seconds": ("alice", 40, {"": 30.0}),
    "kafka_quota_throttle_time_seconds": ("alice", 40, {"": 29.0}),
}
"""Series of a Prometheus about a shadow and about brokers: sums of throttle times, and numbers of samples."""
SET = b"2026-11-23 14"
"""The hour since which limits are set that were a shadow."""


def _examples(command: Any) -> list[str]:
    lines = [line.strip() for line in (command.epilog or "").splitlines()]
    return [line for line in lines if _EXAMPLE.match(line)]


EXAMPLES = {example: path for path, command in COMMANDS for example in _examples(command)}
"""Each once, with a command that prints it."""


def test_every_command_has_examples() -> None:
    """Each command has an example, so that each is run here."""
    assert [path for path, command in COMMANDS if not _examples(command)] == []


@dataclass(frozen=True)
class Place:
    """A folder with what the examples name, and what stands for its files and hosts."""

    folder: Path
    environ: Mapping[str, str]
    names: Mapping[str, str]

    def command(self, example: str, folder: Path) -> str:
        """Return the example with our names, for a copy of the folder."""
        for theirs, ours in self.names.items():
            example = example.replace(theirs, ours)
        return example.replace(str(self.folder), str(folder))


@pytest.fixture(scope="module")
def place(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return the folder of everything that the examples read; each runs in a copy of its own."""
    folder = tmp_path_factory.mktemp("examples")
    places = "etc/quotascope etc/kafka etc/prometheus var/log/kafka var/log/spark bin hdfs/kafka hdfs/logs kubernetes"
    for subfolder in places.split():
        (folder / subfolder).mkdir(parents=True)
    agents = kafka.brokers[0].agents
    certificates = make_certificates(folder)
    (folder / "pw").write_text(PASSWORD)
    (folder / "pw-kafka").write_text(USERS["admin"])
    (folder / "token").write_text(fake_grafana.TOKEN)
    tls = {"cert_file": str(certificates.server), "key_file": str(certificates.server_key)}
    web = {"tls_server_config": tls, "basic_auth_users": {"me": HASH}}
    (folder / "etc/quotascope/web.yaml").write_text(yaml.safe_dump(web))
    settings = settings_for(kafka.brokers, kafka.admin)
    write_config(folder / "etc/quotascope.yaml", settings)
    _write_data(folder)
    grafana = fake_grafana.FakeGrafana()
    with ExitStack() as running:
        running.enter_context(fake_grafana.serving(grafana))
        prometheus = running.enter_context(answering(THROTTLES))
        past = f"http://{running.enter_context(backfilled(folder / 'prometheus', _past())).address}"
        server = {"address": "127.0.0.1", "port": 0, "web_config_file": str(folder / "etc/quotascope/web.yaml")}
        guarded = Exporter(folder / "guarded", {**settings, "server": server})
        running.callback(guarded.child.end)
        shadow = {"file": str(folder / "candidates.yaml")}
        exporter = Exporter(folder / "shadowed", {**settings, "shadow": shadow})
        running.callback(exporter.child.end)
        eventually(lambda: some(guarded.log("ready")))
        eventually(lambda: some(exporter.log("ready")))
        environ = {
            **{name: text for name, text in os.environ.items() if not name.startswith("QUOTASCOPE_")},
            "PATH": os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "SSL_CERT_FILE": str(kafka.certificates.ca),
            "COLUMNS": "100",
        }  # fmt: skip
        _write_samples(folder, past)
        running.enter_context(preloaded(folder / "bin/quotascope", environ))
        yield Place(
            folder,
            environ,
            {
                "https://quotascope:9749": guarded.url.replace("127.0.0.1", "localhost"),
                "http://quotascope:9749": exporter.url,
                "broker-1:9092": kafka.admin,
                "broker-1:9093": kafka.sasl_ssl,
                "--sasl-username me --sasl-password-file pw": "--sasl-username admin --sasl-password-file pw-kafka",
                "http://broker-1:8778/jolokia": agents.jolokia,
                "http://{host}:8778/jolokia": agents.jolokia.replace("127.0.0.1", "{host}"),
                "http://broker-1:9404/metrics": agents.jmx_exporter,
                "http://{host}:9404/metrics": agents.jmx_exporter.replace("127.0.0.1", "{host}"),
                "https://grafana.corp": grafana.url,
                "http://localhost:3000": grafana.url,
                'verify "half of it" --prometheus http://prometheus:9090': (
                    f'verify "half of it" --prometheus {prometheus}'
                ),
                "http://prometheus:9090": past,
                "https://mimir:8080/prometheus": past,
                "GRAFANA_TOKEN=…": f"GRAFANA_TOKEN={fake_grafana.TOKEN}",
                "https://collector:4317": f"http://127.0.0.1:{free_port()}",
                " --port 9749": f" --port {free_port()}",
                " --port 9750": f" --port {free_port()}",
                " :9750": f" :{free_port()}",
                "--replication-factor 3": "--replication-factor 1",  # of one broker
                # others create the topic with one partition
                "kafka-request-log --partitions": "kafka-request-log-of-its-own --partitions",
                " /etc/": f" {folder}/etc/",
                " /var/": f" {folder}/var/",
                "hdfs:///": f"{folder}/hdfs/",
            }
        )  # fmt: skip


def _past() -> Iterator[Backfill]:
    """Yield what a Prometheus has of a client and a node, six hours in November and the last six."""
    november, now = int(datetime(2026, 11, 23, tzinfo=UTC).timestamp()), int(time.time()) // HOUR_S * HOUR_S
    times = sorted({at for begin in (november, now - 6 * HOUR_S) for at in range(begin, begin + 6 * HOUR_S, 10)})
    node = {"job": "kafka", "instance": "broker-1:9404", "cluster": "prod-eu"}
    values = {"Produce_byte_rate": 1e6, "Produce_throttle_time": 250.0, "Request_request_time": 5.0}
    for name, value in values.items():
        samples = [(at, value if at % HOUR_S > HOUR_S / 2 else 0.0) for at in times]
        yield Backfill(f"kafka_server_{name}", {**node, "user": "orders"}, samples)
    counters: dict[str, tuple[dict[str, str], float]] = {
        "kafka_quota_team_produced_bytes_total": ({"team": "all"}, 1e6),
        "kafka_quota_team_seen_seconds_total": ({}, 1.0),
    }
    of_exporter = {"job": "quotascope", "instance": "quotascope:9749", "cluster": "prod-eu"}
    for name, (labels, rate) in counters.items():
        samples = [(at, rate * (at - times[0])) for at in times]
        yield Backfill(name, {**of_exporter, **labels}, samples)
    yield Backfill("quotascope_build_info", of_exporter, [(at, 1.0) for at in times])
    yield Backfill("kafka_server_app_info_StartTimeMs", {**node, "id": "1"}, [(at, 1.7e12) for at in times])


def _write_samples(folder: Path, prometheus: str) -> None:
    """Write a table of the samples of a Prometheus, and a dump of its blocks."""
    server = f'--prometheus {prometheus} --selector job="kafka" --days 30'
    command = f"{COMMAND} ingest-prometheus {server} --into {folder / 'samples'}"
    subprocess.run(command.split(), check=True, timeout=120)
    dump = subprocess.check_output([OLDEST.program("promtool"), "tsdb", "dump", folder / "prometheus/data"])
    (folder / "november.txt.gz").write_bytes(gzip.compress(dump))


def _write_data(folder: Path) -> None:
    """
    Write request logs of two days, with requests in each hour.

    Their history, quotas, candidates and decisions of their shadow, event logs of Spark, and a job are written, too.
    """
    log = gzip.decompress(REQUESTS.read_bytes()).splitlines(keepends=True)[:20]
    hours = [f"2026-11-{day} {hour:02}".encode() for day in (22, 23) for hour in range(24)]
    text = b"".join(line.replace(line[1:14], hour, 1) for hour in hours for line in log)
    for path in (
        "var/log/kafka/kafka-request.log",
        "logs/broker-1/a.log",
        "hdfs/logs/kafka/broker-1/a.log",
        "kafka-request.log",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    (folder / "kafka-request.log.gz").write_bytes(gzip.compress(text))
    (folder / "topics.json").write_text('{"orders": 12}')
    (folder / "quotas.yaml").write_text("quotas:\n  - {user: orders, producer_byte_rate: 1048576}\n")
    (folder / "candidates.yaml").write_text(
        "candidates:\n  - name: half of it\n    quotas:\n      - {user: <default>, request_percentage: 100}\n"
    )
    teams = (
        "currency: EUR\nteams:\n  - {team: all, clients: [{user_pattern: .*}], price_per_gb_in: 0.05}\n"
        "  - {team: etl, clients: [{user: orders}]}\n"
    )
    for path in ("etc/quotascope/teams.yaml", "teams.yaml"):
        (folder / path).write_text(teams)
    for path in ("etc/kafka/jmx_exporter.yml", "kafka-2_0_0.yml"):
        shutil.copy(RULES, folder / path)
    (folder / "job.py").write_text("print('a job')\n")
    (folder / "quotascope.jar").touch()
    (folder / "quotascope.zip").touch()
    write_summary(Job("nightly").snapshot(), folder / "summary.json")
    (rolling,) = (EVENTS / "rolling").iterdir()
    (zstd,) = (EVENTS / "zstd").iterdir()
    shutil.copytree(rolling, folder / "var/log/spark/application_1700000000000_0042")
    shutil.copytree(rolling, folder / "eventlog_v2_app-20260101120000-0001")
    shutil.copy(zstd, folder / "app-20260101120000-0001.zstd")
    submit = folder / "bin/spark-submit"
    submit.write_text(f"#!{sys.executable}\n{_SUBMIT}")
    submit.chmod(0o755)
    (folder / "alerts.yaml").write_bytes(subprocess.check_output([COMMAND, "alerts", "config"]))
    usage = str(folder / "usage")
    shadow = ShadowStream(usage, History.create(usage, shards=16), read_candidates(folder / "candidates.yaml"))
    lines_before = b"".join(line for line in text.splitlines(keepends=True) if line[1:14] < SET)
    (folder / "before.log").write_bytes(lines_before)
    ingest_logs([str(folder / "before.log")], usage, IngestOptions(broker="1"))
    shadow.step(map, all_of_it=True)
    ingest_logs([str(folder / "kafka-request.log")], usage, IngestOptions(broker="1"))
    shutil.copytree(usage, folder / "hdfs/kafka/usage")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_works_as_it_is_printed(place: Place, quotas: Quotas, tmp_path: Path, example: str) -> None:
    """An example ends as a success, or with the exit code of its findings."""
    if "quotas remove" in example:  # what is not there cannot be removed
        quotas.set(
            ({"user": "alice", "client-id": "app1"}, {"producer_byte_rate": 1e6}),
            ({"client-id": None}, {"request_percentage": 50.0}),
        )
    copy = shutil.copytree(place.folder, tmp_path / "here")
    script = place.command(example, copy)
    if _ENDLESS.search(example):
        _runs_until_stopped(script.replace("quotascope", str(COMMAND), 1), copy, place.environ)
        return
    process = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=copy, env=place.environ, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
    )  # fmt: skip
    allowed = _CODES.get(EXAMPLES[example].removeprefix("quotascope "), {0})
    assert process.returncode in allowed, f"{script}\n{process.stdout[-2000:]}\n{process.stderr[-2000:]}"
    assert "Traceback" not in process.stderr


def _runs_until_stopped(script: str, folder: Path, environ: Mapping[str, str]) -> None:
    """Assert that a command works, and that it ends with a signal."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {script}"],
        cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
    ) as process:  # fmt: skip
        stop = threading.Timer(30, process.kill)
        stop.start()
        lines = []
        for line in process.stdout or ():
            lines.append(line)
            if re.search(r"\bready\b|Page: http", line):
                process.send_signal(signal.SIGINT)
        process.wait()
        stop.cancel()
    assert process.returncode == 0, "".join(lines)
