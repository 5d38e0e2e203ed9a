"""Starts a server of Spark Connect, of the newest version, as `sbin/start-connect-server.sh` does."""

import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.ports import free_port
from tests.integration.child import tether
from tests.spark import sessions
from tests.spark.process import variables
from tests.spark.versions import NEWEST

MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ConnectServer:
    url: str
    """What clients call it."""
    page: str
    """Spark's metrics for Prometheus."""
    popen: "subprocess.Popen[bytes]"

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str] | None = None) -> Iterator[ConnectServer]:
    """A server in a process of its own, with two cores and an event log in `folder`, until the block ends."""
    port, ui = free_port(), free_port()
    home = Path(sysconfig.get_path("purelib"), "pyspark")
    (folder / "logs").mkdir(parents=True)
    properties = {
        **sessions.QUIET,
        "spark.connect.grpc.binding.address": _HERE,
        "spark.connect.grpc.binding.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{folder}/logs",
        "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
        "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
        "spark.metrics.namespace": "server",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui),
        **(conf or {}),
    }
    pairs = [part for pair in properties.items() for part in ("--conf", "=".join(pair))]
    submit = [str(home / "bin" / "spark-submit"), "--class", MAIN]
    with (folder / "server.log").open("wb") as log:
        popen = subprocess.Popen(
            [*tether(), *submit, "--master", sessions.CLUSTER, *pairs],
            env={**variables(NEWEST, folder), "SPARK_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    with popen:
        try:
            _wait(popen, port, folder / "server.log")
            page = f"http://{_HERE}:{ui}/metrics/prometheus"
            yield ConnectServer(f"sc://{_HERE}:{port}", page, popen)
        finally:
            popen.kill()


def _wait(popen: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and popen.poll() is None:
        with suppress(OSError), socket.create_connection((_HERE, port), 1):
            return
        time.sleep(0.1)
    raise AssertionError(f"no server:\n{log.read_text(errors='replace')[-4000:]}")
