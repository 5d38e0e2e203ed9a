"""A real OpenTelemetry Collector takes what we push, and shows Prometheus what a scrape of ours shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.collector.collector import Collector, collecting
from tests.exporter.examples import NOW
from tests.exporter.otlp.collected import received, series
from tests.exporter.otlp.messages import Key, scraped
from tests.exporter.otlp.snapshots import hostile, many, varied
from tests.integration.eventually import eventually

from quotascope.exporter.config import OtlpProtocol
from quotascope.exporter.otlp.encoding import Encoder, resource_of
from quotascope.exporter.otlp.push import OtlpReceiver, Outcome, PushResult, Starts
from quotascope.exporter.otlp.sender import Sender
from quotascope.exporter.snapshot import Snapshot

pytestmark = pytest.mark.real
PROTOCOLS = list(OtlpProtocol)


@pytest.fixture
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """Yield a Collector for one test, as a Collector remembers series."""
    folder = tmp_path_factory.mktemp("otlp") / "collector"
    with collecting(folder) as collector:
        yield collector


def push(collector: Collector, protocol: OtlpProtocol, state: Snapshot) -> PushResult:
    endpoint = {OtlpProtocol.HTTP: f"{collector.http}/v1/metrics", OtlpProtocol.GRPC: collector.grpc}[protocol]
    resource = resource_of("http://127.0.0.1:9749", "prod", {})
    encoder = Encoder(resource, "prod", 3_000_000, Starts(10**18))
    target = OtlpReceiver(protocol=protocol, endpoint=endpoint, timeout_seconds=60)
    sender = Sender(target, encoder)
    try:
        return sender.send(state, NOW)
    finally:
        sender.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("make", [varied, hostile])
def test_it_gets_what_a_scrape_shows(
    collector: Collector, protocol: OtlpProtocol, make: Callable[[], Snapshot]
) -> None:
    """A Collector gets the same series as a scrape of the same snapshot, whatever the names hold."""
    state = make()
    report = push(collector, protocol, state)
    expected = scraped(state, NOW, "prod")
    assert report.outcome is Outcome.SUCCESS
    assert report.accepted == len(expected)
    assert series(collector) == expected


@pytest.mark.parametrize("make", [varied, hostile])
def test_prometheus_sees_the_same_names_behind_it(collector: Collector, make: Callable[[], Snapshot]) -> None:
    """The Collector's translation to Prometheus, with its defaults, gives our very names, labels and values."""
    state = make()
    push(collector, OtlpProtocol.HTTP, state)
    page = eventually(lambda: shown_by(collector))
    own_labels = {"job": "quotascope", "instance": page_instance(page)}
    expected = {
        (name, tuple(sorted({**dict(labels), **own_labels}.items()))): value
        for (name, labels), value in scraped(state, NOW, "prod").items()
    }
    assert page == expected


def shown_by(collector: Collector) -> dict[Key, float]:
    """Return the Collector's page for Prometheus, without the lines about the resource."""
    series = {
        (sample.name, tuple(sorted((k, v) for k, v in sample.labels.items() if v))): sample.value
        for family in text_string_to_metric_families(collector.page())
        for sample in family.samples
        if sample.name != "target_info"
    }
    assert series
    return series


def page_instance(page: dict[Key, float]) -> str:
    (instance,) = {dict(labels)["instance"] for _, labels in page}
    return instance


def test_types_units_times_and_origin(collector: Collector) -> None:
    """The Collector understands counters as cumulative monotonic sums, and keeps units, times, resource and scope."""
    push(collector, OtlpProtocol.GRPC, varied())
    (request,) = collector.requests()
    (whole,) = request["resourceMetrics"]
    resource = {pair["key"]: pair["value"]["stringValue"] for pair in whole["resource"]["attributes"]}
    assert resource["service.name"] == "quotascope"
    assert resource["service.instance.id"].endswith(":9749")
    assert resource["kafka.cluster.alias"] == "prod"
    assert whole["scopeMetrics"][0]["scope"]["name"] == "quotascope"
    named = {metric["name"]: metric for metric in received(collector)}
    assert named["kafka.quota.produce"]["unit"] == "By/s"
    errors = named["kafka.quota.throttling_errors"]
    assert errors["unit"] == "{error}"
    assert errors["sum"]["isMonotonic"] is True
    assert errors["sum"]["aggregationTemporality"] == 2
    (point,) = errors["sum"]["dataPoints"]
    assert point["timeUnixNano"] == point["startTimeUnixNano"] == str(int(NOW) * 10**9)


def test_a_hundred_thousand_points_arrive(collector: Collector) -> None:
    """All of 100,000 points arrive, beyond the SDK's limit of attribute sets and a Collector's 4 MiB over gRPC."""
    state = many(25_000)
    report = push(collector, OtlpProtocol.GRPC, state)
    assert report.outcome is Outcome.SUCCESS
    assert report.accepted > 100_000
    assert len(collector.requests()) > 3
    assert series(collector) == scraped(state, NOW, "prod")
