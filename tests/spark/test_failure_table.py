"""Each way in which attempts are lost, for real, and the cause that is found for it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark import losses, two_hosts
from tests.spark.process import SparkProcess, spark_process
from tests.spark.table import ALONE, CLUSTER_ROWS, LOCAL_ROWS, Row, watched

pytestmark = pytest.mark.real


def _name(row: Row) -> str:
    return row.case.__name__


@pytest.mark.parametrize("row", LOCAL_ROWS, ids=_name)
def test_cause_is_found(row: Row, spark: SparkSession) -> None:
    """Failures and retries are counted once each, under their cause, and no event is lost."""
    assert watched(spark, _name(row)) == row.counts()


@pytest.mark.parametrize("row", CLUSTER_ROWS, ids=_name)
def test_cause_is_found_on_a_cluster(row: Row, local_cluster: SparkProcess) -> None:
    """Where executors are processes of their own: what happens to them, and in their JVM."""
    assert local_cluster.call(watched, _name(row)) == row.counts()


def test_cause_of_a_repeated_stage_is_found(tmp_path: Path) -> None:
    """Its tasks begin again with their first attempt; they are retries all the same."""
    with spark_process(tmp_path) as driver:
        assert driver.call(watched, _name(ALONE)) == ALONE.counts()


@pytest.mark.timeout(600)  # five JVMs start, on a machine that may be busy
def test_loser_of_a_speculation_is_no_failure(tmp_path: Path) -> None:
    """Nor is the copy that wins a retry: nothing went wrong."""
    with spark_process(tmp_path) as driver:
        assert driver.call(two_hosts.watched) == Row(case=losses.speculated).counts()
