"""A throttled job, its broker, and a Prometheus that watches both: what the dashboard of jobs is about."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import yaml
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Traffic
from tests.integration.alerting.hurry import hurried_rules
from tests.integration.exporter import Exporter
from tests.integration.prometheus import Prometheus, running
from tests.integration.spark import work
from tests.spark.connector import provision
from tests.spark.process import SparkProcess, spark_process
from tests.spark.versions import CONNECTOR

from quotascope.spark_listener.jvm import PLUGIN, write_jar

APP: Final = "nightly"
CLUSTER: Final = "paris"
THRESHOLDS: Final = {
    "KafkaQuotaSparkQueryStalled": (r">\s+600\b", "> 10"),
    "KafkaQuotaSparkRetries": (r">\s+3\b", "> 0.5"),
}
"""
Thresholds that are not hurried with the durations: the longest time without progress, and the most events in half an
hour.
"""
RULES: Final[tuple[Rule, ...]] = (
    ({"user": "alice", "client-id": "spark-pair"}, {"producer_byte_rate": 1_000.0}),
    ({"user": "bob"}, {"producer_byte_rate": 1_000.0}),
    ({"client-id": "spark-client"}, {"producer_byte_rate": 1_000.0}),
    ({"user": "ANONYMOUS", "client-id": "spark-anonymous"}, {"producer_byte_rate": 1_000.0}),
    ({"client-id": "spark-clicks"}, {"consumer_byte_rate": 100_000.0}),
    ({"client-id": "spark-backlog"}, {"consumer_byte_rate": 50_000.0}),
    ({"user": "bob", "client-id": "spark-topics"}, {"controller_mutation_rate": 5.0}),
)
"""Rules for a pair, a user and client-ids; the one for ANONYMOUS throttles a client that does not know its user."""
CHANGE: Final[Rule] = ({"user": "alice", "client-id": "spark-pair"}, {"producer_byte_rate": 1_100.0})
"""A limit is changed while Prometheus looks."""
_RECORDS = 30_000
"""Number of records of a thousand bytes: enough for some minutes at these rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    prometheus: Prometheus
    driver: SparkProcess
    entries: Path
    """The folder that Prometheus finds drivers in."""


@contextmanager
def night(kafka: Cluster, exporter: Exporter, folder: Path, scrape: str = "1s") -> Iterator[Night]:
    """
    Yield a running night; its rules are hurried: a minute is a second.

    In the end the job closes its listener, which had no problems and takes its entry away.
    """
    entries = folder / "entries"
    with ExitStack() as stack:
        quotas = stack.enter_context(closing(Quotas(kafka.connection())))
        stack.callback(quotas.clear)
        quotas.set(*RULES)
        traffic = Traffic(kafka)
        driver = stack.enter_context(_driver(folder))
        broker = {
            "sasl": kafka.sasl,
            "plain": kafka.admin,
            "written": traffic.topic(),
            "read": _full_topic(kafka, traffic),
        }
        options = {"app": APP, "file_sd_path": str(entries / "{app_id}.json")}
        driver.call(work.begin, broker, options)
        config = _config(exporter, entries, _rules(folder / "rules"), scrape)
        prometheus = stack.enter_context(running(folder / "prometheus", config))
        quotas.set(CHANGE)
        yield Night(prometheus=prometheus, driver=driver, entries=entries)
        assert driver.call(work.end) == []
        assert list(entries.iterdir()) == []


def _full_topic(kafka: Cluster, traffic: Traffic) -> str:
    """Return a topic in batches of ten records: a fetch is never much more than its quota."""
    topic = traffic.topic()
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.admin, "batch.num.messages": 10})
    for _ in range(_RECORDS):
        producer.produce(topic, bytes(1_000))
    assert producer.flush(60) == 0
    return topic


@contextmanager
def _driver(folder: Path) -> Iterator[SparkProcess]:
    """Yield a driver with the real connector and our plugin, in the version that has both."""
    plugin = folder / "plugin.jar"
    write_jar(plugin)
    jars = [plugin, *provision.jars()]
    conf = {"spark.plugins": PLUGIN, "spark.jars": ",".join(map(str, jars))}
    with spark_process(folder / "driver", version=CONNECTOR, master="local[8,4]", conf=conf) as driver:
        yield driver


def _rules(folder: Path) -> list[str]:
    paths = hurried_rules(folder, "--grafana-url", "https://grafana.example")
    for path in paths:
        rules = yaml.safe_load(path.read_text())
        for rule in (rule for group in rules["groups"] for rule in group["rules"]):
            if rule.get("alert") in THRESHOLDS:
                rule["expr"], times = re.subn(*THRESHOLDS[rule["alert"]], rule["expr"])
                assert times
        path.write_text(yaml.safe_dump(rules))
    return [str(path) for path in paths]


def _config(exporter: Exporter, entries: Path, rules: list[str], scrape: str) -> Mapping[str, Any]:
    brokers = {"targets": [exporter.url.removeprefix("http://")], "labels": {"cluster": CLUSTER}}
    files = {"files": [str(entries / "*.json")], "refresh_interval": "1s"}
    return {
        "global": {"scrape_interval": scrape, "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": rules,
        "scrape_configs": [
            {"job_name": "quotascope", "static_configs": [brokers]},
            {"job_name": "spark", "file_sd_configs": [files]},
        ],
    }
