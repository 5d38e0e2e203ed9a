"""A listener on a real driver, in the session that the tests share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyspark
import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from tests.integration.eventually import eventually, some
from tests.spark import attached
from tests.spark.process import JobFailed, SparkProcess
from tests.spark.sessions import CLUSTER, LOCAL
from tests.spark.settling import settle
from tests.spark.versions import RUNNING
from tests.spark_listener.recordings import Remembered

from quotascope.spark_listener import Listener, attach, enable, enabling
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.settings import KEYS, PREFIX
from quotascope.spark_listener.sources import bus, pull
from quotascope.spark_listener.sources.choice import _jvm_names
from quotascope.spark_listener.sources.pull import PullSource

pytestmark = pytest.mark.real
ATTEMPTS = 4
OF_JOB = 2
"""Events of a job with one stage, without its tasks."""


def versions(spark: SparkSession) -> list[str | None]:
    return [spark.version, pyspark.__version__, spark.sparkContext.master]


def mistake(_: SparkSession) -> None:
    raise ValueError("no such thing")


def test_shared_sparks_are_of_the_version_under_test(spark: SparkSession, local_cluster: SparkProcess) -> None:
    """The version is the same here and in another process, which lives on after a job that failed."""
    with pytest.raises(JobFailed, match="no such thing"):
        local_cluster.call(mistake)
    assert versions(spark) == [RUNNING, RUNNING, LOCAL]
    assert local_cluster.call(versions) == [RUNNING, RUNNING, CLUSTER]


def test_waiting_for_tasks_that_go_on_fails() -> None:
    """Tasks that still run fail the wait before the bus is waited for, or a later case would see their events."""
    spark = MagicMock()
    executors = spark.sparkContext._jsc.sc().statusStore().executorList
    executors.return_value.size.return_value = 1
    executor = executors.return_value.apply.return_value
    executor.id.return_value, executor.activeTasks.return_value = "driver", 3
    with pytest.raises(AssertionError, match=r"still run.*'driver': 3"):
        settle(spark, seconds=0)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty.assert_not_called()
    executor.activeTasks.return_value = 0
    settle(spark, seconds=0)


@pytest.fixture
def listened(spark: SparkSession) -> Iterator[Callable[..., Listener]]:
    """Attach with these options; whatever a test leaves attached is ended."""
    listeners: list[Listener] = []

    def begin(**options: Any) -> Listener:
        listener = attach(spark, http_enabled=False, **options)
        listeners.append(listener)
        return listener

    settle(spark)
    yield begin
    for listener in listeners:
        listener.end()


def _fail(spark: SparkSession) -> None:
    """A task of the JVM that fails in each of its attempts."""
    with pytest.raises(Exception, match="refused"):
        spark.sql("select assert_true(id < 0, 'refused') from range(0, 1, 1, 1)").collect()


def _queue_threads(spark: SparkSession) -> int:
    jvm: Any = spark.sparkContext._jvm
    threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
    name = f"spark-listener-group-{bus.QUEUE}"
    return sum(thread.getName() == name for thread in threads)


@pytest.mark.parametrize("source", ["pull", "callbacks"])
def test_events_arrive(source: str, spark: SparkSession, listened: Callable[..., Listener]) -> None:
    """
    Each event is counted once, failures by cause, and the source is reported.

    When the listener is closed, the last events are counted; it leaves no handler, and no queue with its thread.
    """
    assert _queue_threads(spark) == 0
    listener = listened(source=source)
    assert _queue_threads(spark) == 1
    attached.tasks(spark, 20)
    _fail(spark)
    settle(spark)
    job = listener.collect()
    assert (job.failures[FailureCause.OTHER], job.retries[FailureCause.OTHER]) == (ATTEMPTS, ATTEMPTS - 1)
    assert job.events == (OF_JOB + 2 * 20) + (OF_JOB + 2 * ATTEMPTS)
    assert (job.lost_events, job.sources, job.problems) == (0, (source,), ())
    assert 0 <= job.lag_seconds < 60
    assert listener.source == source
    _fail(spark)
    listener.close()
    job = listener.snapshot()
    assert (job.failures[FailureCause.OTHER], job.lost_events) == (2 * ATTEMPTS, 0)
    assert _queue_threads(spark) == 0
    _fail(spark)
    settle(spark)
    after = listener.snapshot()
    assert (after.failures, after.events) == (job.failures, job.events)


WHERE = """
from pyspark.sql import SparkSession
from quotascope.spark_listener import attach
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
listener = attach(spark)
print(listener.url)
spark.stop()
"""


def test_a_job_without_logging_says_where_its_metrics_are(tmp_path: Path) -> None:
    """A job without logging of Python says where its metrics are in one line at INFO of Spark's own log."""
    job = tmp_path / "job.py"
    job.write_text(WHERE)
    command = [Path(sys.executable).with_name("spark-submit"), job]
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, env=environ)
    url = done.stdout.strip()
    assert url.startswith("http://")
    (line,) = [line for line in done.stderr.splitlines() if url in line]
    assert "INFO" in line
    assert f"events by pull, metrics: {url}" in line


def test_application_has_one_listener(spark: SparkSession, listened: Callable[..., Listener]) -> None:
    """An application has one listener for all of its sessions, until all have closed it."""
    listener = listened()
    assert attach(spark.newSession()) is listener
    assert attach(spark.sparkContext) is listener
    assert _queue_threads(spark) == 1
    listener.close()
    listener.close()
    assert listener.source == "pull"
    listener.close()
    assert listener.source == "none"
    again = listened()
    assert again is not listener
    assert again.source == "pull"


@contextmanager
def pulled(spark: SparkSession, *, thin: bool = True) -> Iterator[Remembered]:
    """Collect what comes through a queue for a hundred events, until the block is over."""
    settle(spark)
    books = Remembered()
    source = PullSource(spark.sparkContext, books, event_names=_jvm_names(), capacity=100, thin=thin)
    yield books
    settle(spark)
    source.close()


def test_queue_that_is_full_loses_what_it_counts(spark: SparkSession) -> None:
    """Events beyond a full queue are lost without a wait, and exactly counted."""
    with pulled(spark, thin=False) as books:
        attached.tasks(spark, 300)
    assert (len(books.events), books.passed_events) == (100, 0)
    assert len(books.events) + books.lost_events == OF_JOB + 2 * 300


def test_successes_do_not_fill_the_queue(spark: SparkSession) -> None:
    """Successes are counted before the queue, and take no room in it."""
    with pulled(spark) as books:
        attached.tasks(spark, 300)
        _fail(spark)
    assert books.passed_events == 2 * 300 + 1
    assert books.kinds.count("SparkListenerTaskEnd") == ATTEMPTS
    assert books.kinds.count("SparkListenerTaskStart") == ATTEMPTS - 1
    assert books.lost_events == 0


def test_long_text_is_one_event_lost(spark: SparkSession) -> None:
    """An event of over a million characters is lost, and the events around it are not."""
    with pulled(spark) as books, pytest.raises(Exception, match="xxx"):
        spark.sql("select assert_true(id < 0, repeat('x', 1000000)) from range(0, 1, 1, 1)").collect()
    assert books.lost_ends == ATTEMPTS
    assert "SparkListenerTaskEnd" not in books.kinds
    assert books.kinds.count("SparkListenerTaskStart") == ATTEMPTS - 1


def test_long_stage_is_no_attempt(spark: SparkSession) -> None:
    """Where the events of a job and its stage are over a million characters long, no end of an attempt is missed."""
    with pulled(spark) as books:
        spark.sparkContext.setLocalProperty("long", "x" * 1_000_000)
        try:
            attached.tasks(spark, 2)
        finally:
            spark.sparkContext.setLocalProperty("long", "")
    assert (books.lost_events, books.lost_ends) == (1, 0)
    assert books.kinds == ["SparkListenerStageCompleted"]


def test_what_spark_drops_is_lost(spark: SparkSession, listened: Callable[..., Listener]) -> None:
    """Events that Spark's own bounded queues drop are in our count of lost events."""
    listener = listened()
    registry = spark.sparkContext._jsc.sc().listenerBus().metrics().metricRegistry()
    registry.counter(f"queue.{bus.QUEUE}.numDroppedEvents").inc(7)
    assert listener.collect().lost_events == 7


def test_jvm_that_cannot_queue_calls_back(
    spark: SparkSession, listened: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class that the JVM cannot load is noticed when attaching, reported, and replaced by callbacks that work."""
    monkeypatch.setattr(pull, "_QUEUE", "io.quotascope.spark.NoSuchClass")
    listener = listened()
    _fail(spark)
    settle(spark)
    job = listener.collect()
    assert listener.source == "callbacks"
    assert job.failures[FailureCause.OTHER] == ATTEMPTS
    assert job.problems == (("pull", 1),)
    (problem,) = listener.problems
    assert "ClassNotFoundException" in problem.text


def test_driver_without_a_way_to_its_bus_listens_to_queries(
    spark: SparkSession, listened: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has no way to its bus, as on platforms that forbid py4j: streaming queries still report themselves."""

    def refuse(_: object, __: object) -> None:
        raise PermissionError("py4j is not allowed here")

    monkeypatch.setattr(bus.ListenerBus, "__init__", refuse)
    listener = listened()
    assert listener.source == "streaming"
    assert _queries(spark, listener) == {"seen by streaming": 0}
    assert [problem.part for problem in listener.problems] == ["pull", "callbacks"]


def test_queries_come_the_same_way(spark: SparkSession, listened: Callable[..., Listener]) -> None:
    """Progress of streaming queries is among the events of the queue."""
    assert _queries(spark, listened()) == {"seen by pull": 0}


def _queries(spark: SparkSession, listener: Listener) -> dict[str, int]:
    """Run a query for one batch; return the names that were seen, with their restarts."""
    rows = spark.readStream.format("rate").option("numPartitions", 1).load()
    query = rows.writeStream.format("noop").queryName(f"seen by {listener.source}").start()
    eventually(lambda: some([each for each in listener.collect().queries if each.phases]), 60)
    query.stop()
    return {each.name: each.restarts for each in listener.snapshot().queries}


def test_property_of_a_session_enables(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session's property attaches a listener at the next `getOrCreate`; without it none is attached."""
    monkeypatch.setattr(enabling, "_WATCHING", [])
    monkeypatch.setattr(SparkContext, "__init__", SparkContext.__init__)
    builder = SparkSession.Builder
    monkeypatch.setattr(builder, "getOrCreate", builder.getOrCreate)
    assert (enable(), enable(spark)) == (None, None)
    spark.conf.set("spark.quotascope.enabled", "true")
    spark.conf.set("spark.quotascope.http.enabled", "false")
    try:
        SparkSession.builder.getOrCreate()
        listener = enable(spark)
    finally:
        spark.conf.unset("spark.quotascope.enabled")
        spark.conf.unset("spark.quotascope.http.enabled")
    assert listener is not None
    assert listener.source == "pull"
    listener.end()


def test_account_is_left_behind(spark: SparkSession, listened: Callable[..., Listener], tmp_path: Path) -> None:
    """Closing the listener writes its account to the file that a setting names; a failure is a problem."""
    listened(summary_file=str(tmp_path / "{app_id}.json")).close()
    app_id = spark.sparkContext.applicationId
    assert (tmp_path / f"{app_id}.json").exists()
    listener = listened(summary_file=str(tmp_path / "missing" / "account.json"))
    listener.close()
    assert [problem.part for problem in listener.problems] == ["summary"]


def test_spark_hides_the_secret_headers(spark: SparkSession) -> None:
    """Spark hides the headers by its default rule for names, after which the property is named."""
    conf = SparkConf(loadDefaults=False, _jvm=spark._jvm)
    secret, endpoint = f"{PREFIX}otlp.secretHeaders", f"{PREFIX}otlp.endpoint"
    assert {secret, endpoint} <= {*KEYS}
    conf.set(secret, "authorization=Bearer%20geheim")
    conf.set(endpoint, "http://collector:4318")
    shown = conf.toDebugString()
    assert f"{secret}=*********" in shown
    assert "geheim" not in shown
    assert "collector" in shown
