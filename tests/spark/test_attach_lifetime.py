"""A listener on drivers that are busy, stopped, or started by spark-submit."""

import subprocess
from pathlib import Path

import pyspark
import pytest
from tests.spark import attached
from tests.spark.process import spark_process, variables
from tests.spark.sessions import LOCAL, QUIET
from tests.spark.versions import RUNNING

from quotascope.spark_listener import run

pytestmark = pytest.mark.real
OF_JOB = 4
"""JobStart, StageSubmitted, StageCompleted, JobEnd; each task has a start and an end more."""
JOB = """\
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(0, 10, 1, 10).write.format("noop").mode("overwrite").save()
print("arguments", sys.argv[1:], __name__)
"""
HOOKED = "import quotascope.spark_listener.hook\n" + JOB


def test_busy_driver_loses_nothing(tmp_path: Path) -> None:
    """6,200 tasks while Python does not rest, with room for 1,000 events in Spark's queue and in ours."""
    capacity = "spark.scheduler.listenerbus.eventqueue.quotascope.capacity"
    conf = {capacity: str(attached.CAPACITY)}
    with spark_process(tmp_path, conf=conf) as driver:
        reported = driver.call(attached.busy)
    events = OF_JOB + 2 * attached.BUSY_TASKS
    assert reported == {
        "app": "tests",
        "events": events,
        "lost": 0,
        "ended": True,
        "problems": [],
        "was busy": True,
    }


def test_stopped_application_is_known_to_its_end(tmp_path: Path) -> None:
    """
    Nothing was fetched before it was stopped: the last fetch finds all, ApplicationEnd too.

    The next application has a listener of its own, and one that no one closes ends with its application.
    """
    with spark_process(tmp_path) as driver:
        reported = driver.call(attached.stopped_and_started)
    last = 1
    assert reported == [
        {
            "app": app,
            "events": OF_JOB + 2 * 10 + last,
            "lost": 0,
            "ended": True,
            "problems": [],
        }
        for app in ("first", "second", "third")
    ]


def _submit(folder: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """spark-submit of the version under test, with the listener enabled by a property, and nothing else."""
    conf = {
        **QUIET,
        "spark.quotascope.enabled": "true",
        "spark.quotascope.summaryFile": str(folder / "{app_id}.json"),
    }
    home = Path(pyspark.__file__).parent
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    return subprocess.Popen(
        [str(home / "bin" / "spark-submit"), "--master", LOCAL, *pairs, *arguments],
        env={**variables(RUNNING, folder), "SPARK_HOME": str(home), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _summaries(folder: Path) -> int:
    return len(list(folder.glob("local-*.json")))


def test_job_is_run_without_a_change(tmp_path: Path) -> None:
    """The runner gives it its arguments and its name; the properties do the rest, also without pinned threads."""
    script = tmp_path / "job.py"
    script.write_text(JOB)
    with _submit(tmp_path, str(Path(run.__file__)), str(script), "a b", PYSPARK_PIN_THREAD="false") as submitted:
        output, errors = submitted.communicate(timeout=200)
    assert submitted.returncode == 0, errors
    assert "arguments ['a b'] __main__" in output
    assert _summaries(tmp_path) == 1, errors


def test_hook_is_one_line(tmp_path: Path) -> None:
    """A job that never stops Spark is known to its end all the same: its account is written when Python ends."""
    script = tmp_path / "job.py"
    script.write_text(HOOKED)
    with _submit(tmp_path, str(script)) as submitted:
        output, errors = submitted.communicate(timeout=200)
    assert submitted.returncode == 0, errors
    assert "arguments [] __main__" in output
    assert _summaries(tmp_path) == 1, errors
