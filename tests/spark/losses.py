"""Jobs that lose what they cannot help losing: executors, shuffle files, tasks that are cancelled."""

import os
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from pyspark import StatusTracker, TaskContext
from pyspark.sql import SparkSession
from tests.spark.failures import _silent
from tests.spark.settling import settle

TASKS = 2


def executor_killed(spark: SparkSession) -> None:
    """Kill the executor while both of its tasks run; needs a cluster."""
    once = Path(mkdtemp(prefix="executor-"))

    def work(rows: Iterable[int]) -> Iterable[int]:
        task = TaskContext.get()
        assert task is not None
        if task.attemptNumber() == 0:
            (once / str(task.partitionId())).touch()
            while len([*once.iterdir()]) < TASKS:
                time.sleep(0.05)
            _kill_executor()
        return rows

    spark.sparkContext.parallelize(range(4), TASKS).mapPartitions(work).count()


def _kill_executor() -> None:
    os.kill(_executor(), signal.SIGKILL)
    time.sleep(60)


def _executor() -> int:
    """The JVM above this Python worker; never a driver's, which has a gateway."""
    pid = os.getppid()
    while True:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if any(word.endswith(b"ExecutorBackend") for word in command):
            return pid
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        pid = int(status.split()[1])
        assert pid > 1, "no executor above this worker"


def shuffle_lost(spark: SparkSession) -> None:
    """Remove the files of a shuffle between two jobs, so that the second has to make them again."""
    pairs = spark.sparkContext.parallelize(range(100), 2).map(_pair)
    grouped = pairs.groupByKey(1)
    grouped.count()
    folder = Path(os.environ["SPARK_LOCAL_DIRS"])
    files = [*folder.rglob("shuffle_*.data")]
    assert files, f"no shuffle files in {folder}"
    for file in files:
        file.unlink()
    grouped.count()


def shuffle_lost_with_executor(spark: SparkSession) -> None:
    """Kill the executor while it reads a shuffle, so that both stages run again; needs a cluster."""
    once = Path(mkdtemp(prefix="shuffle-")) / "killed"

    def killed_once(rows: Iterable[object]) -> Iterable[object]:
        if not once.exists():
            once.touch()
            _kill_executor()
        return rows

    pairs = spark.sparkContext.parallelize(range(100), 2).map(_pair)
    pairs.groupByKey(1).mapPartitions(killed_once).count()


def _pair(number: int) -> tuple[int, int]:
    return number % 10, number


def cancelled(spark: SparkSession) -> None:
    """Cancel both tasks while they run."""
    job = threading.Thread(target=_cancelled, args=(spark,))
    job.start()
    tracker = spark.sparkContext.statusTracker()
    while not _running(tracker, 2):
        time.sleep(0.05)
    spark.sparkContext.cancelJobGroup("cancelled")
    job.join()
    settle(spark)


def _cancelled(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("cancelled", "to be cancelled", interruptOnCancel=True)
    with suppress(Exception):
        context.parallelize(range(2), 2).mapPartitions(_sleep).count()


def _running(tracker: StatusTracker, tasks: int) -> bool:
    reported = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in reported if stage) >= tasks


def _sleep(rows: Iterable[int]) -> Iterable[int]:
    time.sleep(60)
    return rows


def killed(spark: SparkSession) -> None:
    """Kill an attempt at one task while it runs."""
    reported = Path(mkdtemp(prefix="killed-")) / "task"
    job = threading.Thread(target=_waiting, args=(spark, reported))
    job.start()
    while not reported.exists():
        time.sleep(0.05)
    context = spark.sparkContext._jsc.sc()
    context.killTaskAttempt(int(reported.read_text()), True, "by hand")  # noqa: FBT003 - the JVM's
    job.join()


def _waiting(spark: SparkSession, reported: Path) -> None:
    """Run two tasks; the first attempt at the first one writes its id and waits."""

    def work(rows: Iterable[int]) -> Iterable[int]:
        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == 0 and task.attemptNumber() == 0:
            being_written = reported.with_suffix(".part")
            being_written.write_text(str(task.taskAttemptId()))
            being_written.rename(reported)
            time.sleep(60)
        return rows

    spark.sparkContext.parallelize(range(4), 2).mapPartitions(work).count()


def speculated(spark: SparkSession) -> None:
    """The copy of a slow task wins while another task runs; the original is killed. Needs two hosts and speculation."""
    numbers = spark.sparkContext.parallelize(range(6), 6)
    numbers.mapPartitionsWithIndex(_slow_at_first).count()
    settle(spark)


def _slow_at_first(at: int, rows: Iterable[int]) -> Iterable[int]:
    task = TaskContext.get()
    assert task is not None
    original = task.attemptNumber() == 0
    time.sleep({3: 120 if original else 0.1, 5: 6}.get(at, 0.1))
    return rows


def jvm_quota(spark: SparkSession) -> None:
    """A function in the JVM raises the Java client's error 89."""
    _refused(spark, "quota")


def jvm_timeout(spark: SparkSession) -> None:
    """A consumer in the JVM gets no answer in time."""
    with _silent() as address:
        _refused(spark, address)


def _refused(spark: SparkSession, how: str) -> None:
    spark.udf.registerJavaFunction("refused", "Refused", "long")
    rows = spark.range(0, 4, 1, 2).selectExpr(f"refused(id, '{how}')")
    rows.write.format("noop").mode("overwrite").save()
