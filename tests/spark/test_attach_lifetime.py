"""A listener on drivers that are busy, stopped, killed, or started by spark-submit."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.integration.eventually import eventually, some
from tests.spark import attached
from tests.spark.process import SparkProcess, spark_process, variables
from tests.spark.sessions import LOCAL, QUIET
from tests.spark.versions import RUNNING

from quotascope.spark_listener import Listener, attach, run

pytestmark = pytest.mark.real
OF_JOB = 2
"""StageSubmitted and StageCompleted; each task has a start and an end more."""
JOB = """\
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(0, 10, 1, 10).write.format("noop").mode("overwrite").save()
print("arguments", sys.argv[1:], __name__)
"""


def test_application_is_known_to_its_end(tmp_path: Path) -> None:
    """
    6,200 tasks while Python does not rest lose nothing, with room for 1,000 events in Spark's queue and in ours.

    Of an application that was stopped before anything was fetched, the last fetch finds all, ApplicationEnd too. The
    next application has a listener of its own, and one that no one closes ends with its application.
    """
    capacity = "spark.scheduler.listenerbus.eventqueue.quotascope.capacity"
    with spark_process(tmp_path, conf={capacity: str(attached.CAPACITY)}) as driver:
        busy, stopped = driver.call(attached.busy), driver.call(attached.stopped_and_started)
    known = {"lost": 0, "ended": True, "problems": []}
    assert busy == {"app": "tests", "events": OF_JOB + 2 * attached.BUSY_TASKS, **known, "was busy": True}
    last = 1
    events = OF_JOB + 2 * 10 + last
    assert stopped == [{"app": app, "events": events, **known} for app in ("first", "second", "third")]


@pytest.mark.parametrize(
    ("runner", "hook", "pinned"),
    [
        pytest.param([run.__file__], "", "false", id="by the runner, and without pinned threads"),
        pytest.param([], "import quotascope.spark_listener.hook\n", "true", id="by one line"),
    ],
)
def test_submitted_job_is_watched(runner: list[str], hook: str, pinned: str, tmp_path: Path) -> None:
    """
    Properties attach a listener to a submitted job, which keeps its arguments and name.

    A job that never stops Spark is known to its end all the same: its account is written when Python ends.
    """
    script = tmp_path / "job.py"
    script.write_text(hook + JOB)
    home = Path(pyspark.__file__).parent
    enabled = {"spark.quotascope.enabled": "true", "spark.quotascope.summaryFile": str(tmp_path / "{app_id}.json")}
    pairs = [part for key, value in {**QUIET, **enabled}.items() for part in ("--conf", f"{key}={value}")]
    submitted = subprocess.run(
        [home / "bin" / "spark-submit", "--master", LOCAL, *pairs, *runner, script, "a b"],
        env={**variables(RUNNING, tmp_path), "SPARK_HOME": str(home), "PYSPARK_PIN_THREAD": pinned},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert submitted.returncode == 0, submitted.stderr
    assert "arguments ['a b'] __main__" in submitted.stdout
    assert len(list(tmp_path.glob("local-*.json"))) == 1, submitted.stderr


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
    """Kill the driver's Python in the middle of its job, and return what was written until the JVM was gone."""
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
