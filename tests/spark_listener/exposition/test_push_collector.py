"""A real OpenTelemetry Collector takes what a driver pushes, and shows Prometheus what the driver's own page shows."""

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.collector.collector import Collector, collecting
from tests.exporter.otlp.collected import received
from tests.integration import web
from tests.integration.eventually import eventually
from tests.spark_listener.exposition.jobs import Key, hostile, job, reported

pytestmark = pytest.mark.real

OWN = ("instance", "job")
"""Labels that say who pushed, as a scrape adds them."""


@pytest.fixture
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """A Collector of its own, for it remembers series."""
    folder = tmp_path_factory.mktemp("otlp") / "collector"
    with collecting(folder) as collector:
        yield collector


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_prometheus_sees_the_same_behind_it(collector: Collector, protocol: str) -> None:
    """Names, labels and values are equal, series by series, whatever the names hold."""
    endpoint = collector.grpc if protocol == "grpc" else collector.http
    properties = {
        "spark.app.name": "nightly",
        "spark.driver.host": "127.0.0.1",
        "spark.quotascope.cluster": "prod",
        "spark.quotascope.otlp.endpoint": endpoint,
        "spark.quotascope.otlp.protocol": protocol,
    }
    jobs = [job(), hostile()]
    reporting = reported(properties, lambda: jobs)
    assert reporting.url is not None
    scraped = series(web.ask(reporting.url).text)
    reporting.close()
    assert reporting.problems == ()
    shown = eventually(lambda: shown_by(collector, len(scraped)))
    assert shown == scraped


def shown_by(collector: Collector, count: int) -> dict[Key, float]:
    """What it shows to Prometheus, when that is as much as it should be."""
    found = series(collector.page())
    assert len(found) == count
    return found


def series(page: str) -> dict[Key, float]:
    """A page's series, without what it says of who pushed."""
    return {
        (sample.name, tuple(sorted((k, v) for k, v in sample.labels.items() if v and k not in OWN))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name != "target_info"
    }


def test_it_understands_the_driver(collector: Collector) -> None:
    """Units, sums that began with the job, and the driver as an instance."""
    properties = {"spark.driver.host": "127.0.0.1", "spark.quotascope.otlp.endpoint": collector.http}
    reported(properties, lambda: [job()]).close()
    named = {metric["name"]: metric for metric in received(collector)}
    throttled = named["spark.kafka_throttled"]
    assert throttled["unit"] == "s"
    assert throttled["sum"]["isMonotonic"] is True
    (whole, *_) = collector.requests()[0]["resourceMetrics"]
    resource = {pair["key"]: pair["value"]["stringValue"] for pair in whole["resource"]["attributes"]}
    assert resource["service.instance.id"] == "app-1"
