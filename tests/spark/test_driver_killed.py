"""A driver that is killed leaves its JVM alone with no driver to report to."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.eventually import eventually, some
from tests.spark.process import SparkProcess, spark_process

from quotascope.spark_listener import Listener, attach

pytestmark = pytest.mark.real

EVENTS = 20
"""Of some tasks, after which the driver is killed."""


def jvm(spark: SparkSession) -> int:
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def busy(spark: SparkSession, started: str) -> None:
    """Attach, and run a job of more tasks than are waited for."""
    listener = attach(spark, interval_seconds=0.1)
    assert listener.source == "pull"
    while not listener.collect().events:
        spark.range(1).count()
    before = listener.snapshot().events
    threading.Thread(target=_touch, args=(listener, before, started), daemon=True).start()
    many = spark.range(0, 1_000_000, 1, 100_000).selectExpr("uuid()")
    many.write.format("noop").mode("overwrite").save()


def _touch(listener: Listener, before: int, started: str) -> None:
    while listener.snapshot().events < before + EVENTS:
        time.sleep(0.05)
    Path(started).touch()


def kill(driver: SparkProcess, started: Path, pid: int) -> str:
    """Kill the driver's Python in the middle of its job, and give what was written after that until the JVM was gone."""
    driver.send([f"{busy.__module__}:busy", [str(started)], {}])
    eventually(lambda: some([started] * started.exists()), seconds=120)
    before = len(driver.output())
    os.kill(driver.pid, signal.SIGKILL)
    driver.popen.wait(60)
    eventually(lambda: some([pid] * (not _runs(pid))), seconds=120)
    return driver.output()[before:]


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_killed_driver_leaves_no_noise(tmp_path: Path) -> None:
    """The JVM ends by itself, and logs nothing of a listener that does not answer."""
    with spark_process(tmp_path) as driver:
        pid = driver.call(jvm)
        written = kill(driver, tmp_path / "started", pid)
    assert "py4j" not in written
    assert "quotascope" not in written
    assert "listener" not in written.lower()
