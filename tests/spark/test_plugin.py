"""The plugin brings home the throttle times of Kafka clients in an executor's JVM, whatever the version of Spark."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.clients.real import BrokerAccount, Login
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark import losses
from tests.spark.connector import jobs
from tests.spark.java_udf import jars
from tests.spark.process import SparkProcess, spark_process
from tests.spark.table import CLUSTER_ROWS, watched

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener import attach
from quotascope.spark_listener.jvm import PLUGIN, REPORTER, write_jar

pytestmark = pytest.mark.real

RATE = 3_000.0
RECORDS = 20
"""Of a thousand bytes, in batches of at most five, by each of two producers: over ten seconds' worth of the quota."""
CLIENT = Client("alice", 'same \u2713 "id"', "write")


def write(spark: SparkSession, topic: str, settings: str) -> None:
    """Run two tasks at once, each with a producer, under a listener that is closed as soon as they end."""
    spark.udf.registerJavaFunction("writes", "Writes", "int")
    with attach(spark, http_enabled=False):
        tasks = spark.range(0, 2, 1, 2).selectExpr(f"writes('{topic}', {RECORDS}, '{settings}')")
        tasks.write.format("noop").mode("overwrite").save()


def counted(cluster: SparkProcess) -> ClientTotals:
    """The counts of the client, of which there are no others."""
    counts_by_query = [
        (query, counts) for query, (client, *counts) in cluster.call(jobs.reported) if Client(*client) == CLIENT
    ]
    assert [query for query, _ in counts_by_query] == [""]
    return ClientTotals(CLIENT, *counts_by_query[0][1])


def test_executor_reports_to_the_driver(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, local_cluster: SparkProcess
) -> None:
    """Two clients of one id at once are both counted exactly, and stay counted when the executor dies."""
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


BAD = ("WARN", "ERROR", "FATAL")
LOG4J = """rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = debug
"""
"""A level of its own for PySpark's gateway keeps Spark from setting all loggers to WARN, as it does in shells."""


def test_log_of_a_job(kafka: Cluster, traffic: Traffic, tmp_path: Path) -> None:
    """
    The plugin adds one line at INFO that says where the metrics are, and nothing above it.

    That holds of the plugin itself and of Kafka's own reporter of metrics.
    """
    settings = Login(kafka.sasl).java() | {"client.id": "etl"}
    text = "\\n".join(f"{key}={value}" for key, value in settings.items())
    write_jar(tmp_path / "plugin.jar")
    (tmp_path / "log4j2.properties").write_text(LOG4J)
    conf = {
        "spark.jars": f"{jars(tmp_path)},{tmp_path / 'plugin.jar'}",
        "spark.plugins": PLUGIN,
        "spark.log.level": "INFO",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={tmp_path / 'log4j2.properties'}",
        "spark.quotascope.jvm.intervalSeconds": "0.1",
    }
    with spark_process(tmp_path / "spark", conf=conf) as driver:
        driver.call(write, traffic.topic(), text)
        found = driver.call(jobs.reported)
    assert [Client(*client).client_id for _, (client, *_) in found] == ["etl"]
    lines = driver.output().splitlines()
    ours = [line for line in lines if "quotascope" in line and " INFO " in line and "kafkaThrottledMs" in line]
    assert len(ours) == 1, ours
    above = [line for line in lines if any(f" {level} " in line for level in BAD)]
    caused = [line for line in above if re.search(r"quotascope|JmxReporter|JMX|Kafka", line)]
    assert caused == []
    assert [line for line in lines if "at io.quotascope" in line] == []
