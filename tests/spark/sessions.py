"""Starts Spark so that it is quick, quiet and on loopback only."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests import class_data
from tests.spark.versions import RUNNING, classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2,4]"
"""Two cores, and four attempts at each task, as on a cluster."""
CLUSTER = "local-cluster[1,2,1024]"
"""One executor in a process of its own, with two cores and a GiB."""
OURS = "ours"
"""The session that the commands make, on LOCAL; it takes its configuration as spark-submit would."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that does not live long."""
QUIET = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _QUICK,
    "spark.default.parallelism": "2",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.python.worker.reuse": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def environment(folder: Path, version: str = RUNNING) -> dict[str, str]:
    """Variables that Spark reads when it starts its JVM; its temporary files go into that folder."""
    options = (*class_data.using(classes(version)), f"-Djava.io.tmpdir={folder}")
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": " ".join(options),
        "SPARK_USER": "spark",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }


def start(folder: Path, master: str = LOCAL, conf: Mapping[str, str] | None = None) -> "SparkSession":
    """
    A session in this process, or for `sc://…` one of Spark Connect.

    Stop it with `end`, before another one starts.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - not before it is wanted

    if master.startswith("sc://"):  # the server has its configuration
        return SparkSession.builder.remote(master).getOrCreate()
    own = {
        "spark.executor.extraJavaOptions": f"{_QUICK} -Djava.io.tmpdir={folder}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    every = {**QUIET, **own, **(conf or {})}
    if master == OURS:
        given = {"spark.master": LOCAL, **every}
        confs = [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in given.items()]
        os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*confs, "pyspark-shell"])
        return ours()
    builder = SparkSession.builder.master(master).appName("tests")
    for key, value in every.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def ours() -> "SparkSession":
    """The session that the commands make; nothing says which Python the workers run."""
    from quotascope.pipeline.spark.session import session  # noqa: PLC0415 - brings Spark in

    os.environ.pop("PYSPARK_PYTHON", None)
    return session()


def end(session: "SparkSession", seconds: float = 60) -> None:
    """Stop the session and its JVM, so that nothing is left for the interpreter's own end."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    session.stop()
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(seconds)
        SparkContext._gateway = SparkContext._jvm = None
