"""The plugin brings home the throttle times of Kafka clients in an executor's JVM, whatever the version of Spark."""

import pytest
from pyspark.sql import SparkSession
from tests.clients.real import BrokerAccount, Login
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark import losses
from tests.spark.connector import jobs
from tests.spark.process import SparkProcess
from tests.spark.table import CLUSTER_ROWS, watched

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener import attach
from quotascope.spark_listener.jvm import REPORTER

pytestmark = pytest.mark.real

RATE = 3_000.0
RECORDS = 20
"""Of a thousand bytes, in batches of at most five, by each of two producers: more than ten seconds' worth of the quota."""
CLIENT = Client("alice", 'same \u2713 "id"', "write")


def write(spark: SparkSession, topic: str, settings: str) -> None:
    """Two tasks at once, each with a producer, under a listener that is closed as soon as they end."""
    spark.udf.registerJavaFunction("writes", "Writes", "int")
    with attach(spark, http_enabled=False):
        tasks = spark.range(0, 2, 1, 2).selectExpr(f"writes('{topic}', {RECORDS}, '{settings}')")
        tasks.write.format("noop").mode("overwrite").save()


def counted(cluster: SparkProcess) -> ClientTotals:
    """The counts of the client, of which there are no others."""
    found = [(query, counts) for query, (client, *counts) in cluster.call(jobs.reported) if Client(*client) == CLIENT]
    assert [query for query, _ in found] == [""]
    return ClientTotals(CLIENT, *found[0][1])


def test_executor_reports_to_the_driver(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, local_cluster: SparkProcess
) -> None:
    """Two clients of one id at once are counted both, exactly, and stay counted when the executor dies."""
    quotas.set(({"user": "alice"}, {"producer_byte_rate": RATE}))
    settings = Login(kafka.sasl).java() | {
        "client.id": CLIENT.client_id,
        "batch.size": "5000",
        "metric.reporters": REPORTER,
    }
    text = "\\n".join(f"{key}={value}" for key, value in settings.items())
    broker = BrokerAccount(kafka, "write")
    local_cluster.call(write, traffic.topic(), text)
    broker.agrees_with_estimate(counted(local_cluster))
    totals = counted(local_cluster)
    (killed,) = (row for row in CLUSTER_ROWS if row.case is losses.executor_killed)
    assert local_cluster.call(watched, killed.case.__name__) == killed.counts()
    assert counted(local_cluster)[:4] == totals[:4]
