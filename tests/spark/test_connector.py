"""
The throttle times of Spark's own Kafka connector are those that the broker counted: a batch and a stream, read and written.

Batches are as the connector makes them, so that their counts are estimated from the clients' averages; streams have the reporter.
"""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark import failures
from tests.spark.broker_account import BrokerAccount
from tests.spark.connector import jobs
from tests.spark.connector.login import login
from tests.spark.connector.provision import jars
from tests.spark.process import SparkProcess, spark_process
from tests.spark.table import Row
from tests.spark.versions import CONNECTOR

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.jvm import PLUGIN, REPORTER, write_jar

pytestmark = pytest.mark.real

WRITE_RATE = 10_000.0
"""Bytes/s. The quota lets ten seconds' worth through at once, and then makes up for it."""
READ_RATE = 20_000.0
"""A reader is held up for longer: its throttled fetches bring nothing."""
ROWS = 160
COUNTED = {"kafka.metric.reporters": REPORTER}
SMALL = {"kafka.batch.size": "20000", "kafka.max.partition.fetch.bytes": "20000"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """A local Spark of the connector's version, with the plugin."""
    folder = tmp_path_factory.mktemp("connector")
    write_jar(folder / "plugin.jar")
    names = ",".join(str(jar) for jar in (*jars(), folder / "plugin.jar"))
    conf = {"spark.plugins": PLUGIN, "spark.jars": names}
    with spark_process(folder, version=CONNECTOR, conf=conf) as process:
        yield process


@pytest.fixture(scope="module")
def full_topic(kafka: Cluster, traffic: Traffic) -> str:
    """Rows of a thousand bytes in batches of ten: a fetch is never much more than its quota."""
    topic = traffic.topic()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.admin, "batch.num.messages": 10}
    )
    for _ in range(ROWS):
        producer.produce(topic, bytes(1_000))
    producer.flush(20)
    return topic


def limited(kafka: Cluster, quotas: Quotas, user: str) -> jobs.Options:
    """How a user connects who has a low quota from now on."""
    limits = {"producer_byte_rate": WRITE_RATE, "consumer_byte_rate": READ_RATE}
    quotas.set(({"user": user}, limits))
    return {f"kafka.{key}": value for key, value in login(kafka, user).items()} | SMALL


def told(driver: SparkProcess, query: str, client: Client) -> ClientTotals:
    """The plugin's counts of a client."""
    answer = {
        (name, Client(*who)): counts for name, (who, *counts) in driver.call(jobs.told)
    }
    return ClientTotals(client, *answer[query, client])


def test_batch_that_writes(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, driver: SparkProcess
) -> None:
    """The estimate has all that the broker told the producer; who it was nobody knows without the reporter."""
    options = limited(kafka, quotas, "alice")
    topic = traffic.topic()
    broker = BrokerAccount(kafka, "write")
    driver.call(jobs.batch_write, options, topic, ROWS)
    broker.agrees(told(driver, "", Client("", "producer", "write")))


def test_batch_that_gives_up(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, driver: SparkProcess
) -> None:
    """A JVM client notes nothing on its failure: that is a timeout, and beside it the job shows a throttle that was longer."""
    options = limited(kafka, quotas, "mallory") | COUNTED
    options["kafka.client.id"] = "impatient"
    counts = driver.call(jobs.gives_up, options, traffic.topic(), ROWS)
    row = Row(case=failures.python_exception, failures={"kafka_timeout": 1})
    assert counts == row.counts()
    totals = told(driver, "", Client("mallory", "impatient", "write"))
    assert totals.longest_ms > jobs.PATIENCE_MS


def test_batch_that_reads(
    kafka: Cluster, quotas: Quotas, driver: SparkProcess, full_topic: str
) -> None:
    """The estimate has all that the broker told the consumer, under a name that is the same in each run."""
    options = limited(kafka, quotas, "bob")
    broker = BrokerAccount(kafka, "read")
    driver.call(jobs.batch_read, options, full_topic, ROWS)
    client = Client("", "consumer-spark-kafka-relation", "read")
    broker.agrees(told(driver, "", client))


def test_stream_that_reads(
    kafka: Cluster,
    quotas: Quotas,
    driver: SparkProcess,
    full_topic: str,
    tmp_path: Path,
) -> None:
    """The reporter counts all that the broker told the consumer, under its user and its query."""
    options = limited(kafka, quotas, "carol") | COUNTED
    broker = BrokerAccount(kafka, "read")
    query = driver.call(jobs.stream_read, options, full_topic, ROWS, str(tmp_path))
    client = Client("carol", "consumer-spark-kafka-source", "read")
    broker.agrees(told(driver, query, client))


def test_stream_that_writes(
    kafka: Cluster,
    quotas: Quotas,
    traffic: Traffic,
    driver: SparkProcess,
    full_topic: str,
    tmp_path: Path,
) -> None:
    """The reporter counts all that the broker told the producer, under its user and the client id that its quota is for."""
    options = limited(kafka, quotas, "svc:team a") | COUNTED
    options["kafka.client.id"] = "etl"
    source = {
        "kafka.bootstrap.servers": kafka.admin,
        "subscribe": full_topic,
        "startingOffsets": "earliest",
    }
    topic = traffic.topic()
    broker = BrokerAccount(kafka, "write")
    driver.call(jobs.stream_write, options, topic, source, str(tmp_path))
    broker.agrees(told(driver, "", Client("svc:team a", "etl", "write")))


def test_real_time_mode(
    kafka: Cluster,
    quotas: Quotas,
    driver: SparkProcess,
    full_topic: str,
    tmp_path: Path,
) -> None:
    """A batch of minutes shows its throttle times while it runs, and the killed task has not more in the end."""
    options = limited(kafka, quotas, "carol") | COUNTED
    found = driver.call(
        jobs.real_time,
        options,
        full_topic,
        str(tmp_path),
        batch="5 minutes",
        ends=False,
    )
    assert found["trigger"] == 300
    assert 0 < found["running"] <= found["shown"] <= found["truth"]


def test_real_time_batch_that_ends(
    kafka: Cluster, driver: SparkProcess, full_topic: str, tmp_path: Path
) -> None:
    """What was reported while it ran is not counted again."""
    options = {"kafka.bootstrap.servers": kafka.admin}
    found = driver.call(
        jobs.real_time, options, full_topic, str(tmp_path), batch="5 seconds", ends=True
    )
    assert found["trigger"] == 5
    assert found["shown"] == found["truth"] == jobs.ROW_MS * ROWS
