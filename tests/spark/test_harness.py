"""The Sparks of the tests are what they say."""

from unittest.mock import MagicMock

import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.spark.process import JobFailed, SparkProcess
from tests.spark.sessions import CLUSTER, LOCAL
from tests.spark.settling import settle
from tests.spark.versions import RUNNING

pytestmark = pytest.mark.real


def facts(spark: SparkSession) -> list[str | None]:
    return [spark.version, pyspark.__version__, spark.sparkContext.master]


def mistake(_: SparkSession) -> None:
    raise ValueError("no such thing")


def test_shared_session_runs_python(spark: SparkSession) -> None:
    """The shared session is of the version under test, and its workers import the tests."""
    assert facts(spark) == [RUNNING, RUNNING, LOCAL]
    assert spark.sparkContext.parallelize(range(100), 3).map(_same).count() == 100


def _same(row: int) -> int:
    return row


def test_waiting_for_tasks_that_go_on_fails() -> None:
    """With what still runs, and before the bus is waited for: a later case would see events of this one."""
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


def test_job_that_fails_reports_why(local_cluster: SparkProcess) -> None:
    """An error of a job comes back with its traceback, and the driver lives on."""
    with pytest.raises(JobFailed, match="no such thing"):
        local_cluster.call(mistake)
    assert local_cluster.call(facts) == [RUNNING, RUNNING, CLUSTER]
