"""The plugin brings home the throttle times of Kafka clients in an executor's JVM, whatever the version of Spark."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration.eventually import eventually
from tests.spark import java_udf, losses
from tests.spark.broker_account import BrokerAccount
from tests.spark.connector import jobs
from tests.spark.connector.login import login
from tests.spark.process import SparkProcess, spark_process
from tests.spark.sessions import CLUSTER

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.jvm import PLUGIN, REPORTER, PluginTotals, write_jar

pytestmark = pytest.mark.real

RATE = 3_000.0
RECORDS = 20
"""Of a thousand bytes, in batches of at most five, by each of two producers: more than ten seconds' worth of the quota."""
CLIENT = Client("alice", 'same \u2713 "id"', "write")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """An executor in a process of its own, with the plugin and a function that writes to Kafka."""
    folder = tmp_path_factory.mktemp("plugin")
    write_jar(folder / "plugin.jar")
    names = f"{java_udf.jars(folder, 'Writes')},{folder / 'plugin.jar'}"
    conf = {
        "spark.plugins": PLUGIN,
        "spark.jars": names,
        "spark.quotascope.jvm.intervalSeconds": "0.5",
    }
    with spark_process(folder, master=CLUSTER, conf=conf) as process:
        yield process


def write(spark: SparkSession, topic: str, settings: str) -> None:
    """Two tasks at once, each with a producer."""
    spark.udf.registerJavaFunction("writes", "Writes", "int")
    tasks = spark.range(0, 2, 1, 2).selectExpr(f"writes('{topic}', {RECORDS}, '{settings}')")
    tasks.write.format("noop").mode("overwrite").save()


def stopped(spark: SparkSession) -> list[object]:
    """What the plugin still reports after the application's end."""
    plugin = PluginTotals.of(spark)
    assert plugin is not None
    spark.stop()
    return list(plugin.totals())


def only(answer: list[Any]) -> ClientTotals:
    """The counts of the one client that there is."""
    assert len(answer) == 1
    query, (client, *counts) = answer[0]
    assert query == ""
    return ClientTotals(Client(*client), *counts)


def test_executor_reports_to_the_driver(kafka: Cluster, quotas: Quotas, traffic: Traffic, driver: SparkProcess) -> None:
    """Two clients of one id at once are counted both, exactly, and stay counted when the executor dies and the job ends."""
    quotas.set(({"user": "alice"}, {"producer_byte_rate": RATE}))
    settings = login(kafka, "alice") | {
        "client.id": CLIENT.client_id,
        "batch.size": "5000",
        "metric.reporters": REPORTER,
    }
    text = "\\n".join(f"{key}={value}" for key, value in settings.items())
    broker = BrokerAccount(kafka, "write")
    driver.call(write, traffic.topic(), text)
    eventually(lambda: broker.agrees(only(driver.call(jobs.reported))), seconds=20)
    totals = only(driver.call(jobs.reported))
    assert totals.client == CLIENT
    driver.call(losses.executor_killed)
    later = driver.call(jobs.reported)
    assert only(later)[:4] == totals[:4]
    assert driver.call(stopped) == later


def test_no_plugin_no_totals(spark: SparkSession) -> None:
    """A session without the plugin has no counts of it."""
    assert PluginTotals.of(spark) is None
