"""Each way in which attempts are lost, for real, and the cause that is found for it."""

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark import impatient, losses, two_hosts
from tests.spark.process import SparkProcess, spark_process
from tests.spark.table import ALONE, CLUSTER_ROWS, LOCAL_ROWS, THROTTLED_CASES, Row, ThrottledCase, counted, watched

pytestmark = pytest.mark.real


def _name(row: Row) -> str:
    return row.case.__name__


@pytest.mark.parametrize("row", LOCAL_ROWS, ids=_name)
def test_cause_is_found(row: Row, spark: SparkSession) -> None:
    """Failures and retries are counted once each, under their cause, and no event is lost."""
    assert watched(spark, _name(row)) == row.counts()


@pytest.mark.parametrize("case", THROTTLED_CASES, ids=lambda case: case.__name__)
def test_cause_of_a_client_that_gives_up_while_it_is_throttled(
    case: ThrottledCase, spark: SparkSession, kafka: Cluster, quotas: Quotas, traffic: Traffic
) -> None:
    """A client that a real quota mutes beyond its patience has this cause; without a limit it succeeds."""
    name = f"impatient-{uuid.uuid4().hex[:12]}"
    quotas.set(({"user": "alice", "client-id": name}, impatient.LIMIT))
    topic = traffic.topic()
    row = Row(case=lambda session: case(session, kafka.sasl, name, topic), failures={"kafka_timeout_throttled": 1})
    assert counted(spark, row.case) == row.counts()


@pytest.mark.parametrize("row", [row for row in CLUSTER_ROWS if row.case is not losses.executor_killed], ids=_name)
def test_cause_is_found_on_a_cluster(row: Row, local_cluster: SparkProcess) -> None:
    """Causes are found where executors are processes of their own, and for faults in their JVM."""
    assert local_cluster.call(watched, _name(row)) == row.counts()


@pytest.mark.timeout(600)  # five JVMs start, on a machine that may be busy
def test_cause_of_a_repeated_stage_is_found(tmp_path: Path) -> None:
    """
    Tasks of a repeated stage are retries, although they begin with their first attempt.

    Another Spark in the same driver speculates: the loser is no failure, nor is the copy that wins a retry.
    """
    with spark_process(tmp_path) as driver:
        assert driver.call(watched, _name(ALONE)) == ALONE.counts()
        assert driver.call(two_hosts.watched) == Row(case=losses.speculated).counts()
