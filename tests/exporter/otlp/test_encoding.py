"""A push is what the SDK encodes of the same snapshot, and what a scrape of it shows."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from tests.exporter.examples import NOW, snapshot, usage
from tests.exporter.otlp.data_model import metrics_data
from tests.exporter.otlp.messages import metrics, points, pushed, scraped
from tests.exporter.otlp.snapshots import hostile, many, varied

from quotascope.exporter.exposition import own_version
from quotascope.exporter.otlp.encoding import Encoder, PushRequest, resource_of, unix_ns
from quotascope.exporter.otlp.push import Starts
from quotascope.exporter.snapshot import Snapshot

BEGAN = unix_ns(NOW - 100)
RESOURCE = resource_of("http://127.0.0.1:9749", "prod", {})


class Pushes:
    def __init__(self, cluster: str | None = None, max_bytes: int = 10**9) -> None:
        self._encoder = Encoder(RESOURCE, cluster, max_bytes, Starts(BEGAN))

    def requests(self, shown: Snapshot, now: float = NOW) -> Iterator[PushRequest]:
        points = self._encoder.points(shown, now)
        yield from self._encoder.requests(points, unix_ns(shown.taken_at))

    def messages(self, shown: Snapshot) -> list[ExportMetricsServiceRequest]:
        parse = ExportMetricsServiceRequest.FromString
        return [parse(each.message.SerializeToString()) for each in self.requests(shown)]

    @property
    def kept(self) -> int:
        by_row = self._encoder._by_row.values()
        return sum(map(len, by_row)) + len(self._encoder._by_labels)


def by_the_sdk(shown: Snapshot, cluster: str | None) -> ExportMetricsServiceRequest:
    return encode_metrics(metrics_data(shown, NOW, RESOURCE, cluster, BEGAN))


@pytest.mark.parametrize("cluster", [None, "prod"])
@pytest.mark.parametrize("make", [varied, hostile, snapshot, lambda: many(50)])
def test_it_is_what_the_sdk_encodes(make: Callable[[], Snapshot], cluster: str | None) -> None:
    """The message is the same, point by point and in the same order, at the first push and at later ones."""
    shown = make()
    pushes = Pushes(cluster)
    for _ in range(2):
        (message,) = pushes.messages(shown)
        assert message == by_the_sdk(shown, cluster)


@pytest.mark.parametrize("name", ["combined_throttled", "split_throttled", "pair_throttled", "tiered_throttled"])
def test_recorded_nodes_are_as_scraped(name: str, request: pytest.FixtureRequest) -> None:
    """Real answers of brokers give the same series both ways."""
    shown: Snapshot = request.getfixturevalue(name)
    assert pushed(Pushes("c").messages(shown)) == scraped(shown, NOW, "c")


def test_counters_are_monotonic_sums() -> None:
    """Cumulative, with a start that moves only when the counter fell; gauges have none."""
    pushes = Pushes()
    found = []
    for value, at in ((7.0, NOW), (8.0, NOW + 60), (2.0, NOW + 120)):
        shown = varied(value)
        later = snapshot(*shown.entities, nodes=shown.nodes, limits=shown.limits, taken_at=at)
        named = {each.name: each for each in metrics(pushes.messages(later))}
        found.append(named["kafka.quota.throttling_errors"])
    assert all(each.sum.is_monotonic for each in found)
    assert {each.sum.aggregation_temporality for each in found} == {AGGREGATION_TEMPORALITY_CUMULATIVE}
    spans = [(p.start_time_unix_nano, p.time_unix_nano) for m in found for p in points(m)]
    first, second, third = (unix_ns(NOW + after) for after in (0, 60, 120))
    assert spans == [(first, first), (first, second), (second, third)]


def test_requests_are_cut_to_size() -> None:
    """Each has resource and scope; none is longer than allowed nor much shorter than it could be; no point is lost or sent twice."""
    shown = many(3_000)
    requests = list(Pushes(max_bytes=100_000).requests(shown))
    sizes = [each.message.ByteSize() for each in requests]
    assert max(sizes) <= 100_000
    assert min(sizes[:-1]) > 98_000
    assert pushed(each.message for each in requests) == scraped(shown, NOW)
    for request in requests:
        assert request.points == sum(len(list(points(each))) for each in metrics([request.message]))
        (whole,) = request.message.resource_metrics
        assert "service.name" in {pair.key for pair in whole.resource.attributes}
        assert whole.scope_metrics[0].scope.name == "quotascope"
    # a name longer than a request is left to the receiver to judge
    long = snapshot(usage(user="y" * 150_000, usage=1.0), usage(usage=2.0))
    assert pushed(Pushes(max_bytes=100_000).messages(long)) == scraped(long, NOW)


def test_what_is_gone_is_forgotten() -> None:
    """Clients that come and go do not pile up."""
    pushes = Pushes()
    kept = set()
    for first in range(0, 5_000, 500):
        pushes.messages(many(500, first))
        kept.add(pushes.kept)
    assert len(kept) == 1


def test_the_resource_names_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, version, instance and cluster; variables and then the configuration go before it."""
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    attributes = resource_of("http://127.0.0.1:9749", "prod", {}).attributes
    own = {
        "service.name": "quotascope",
        "service.version": own_version(),
        "service.instance.id": f"{socket.gethostname()}:9749",
        "kafka.cluster.alias": "prod",
        "telemetry.sdk.language": "python",
    }
    assert own.items() <= attributes.items()
    monkeypatch.setenv("OTEL_SERVICE_NAME", "quotas")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=a,team=kafka")
    attributes = resource_of("http://127.0.0.1:9749", None, {"service.instance.id": "b"}).attributes
    assert {"service.name": "quotas", "service.instance.id": "b", "team": "kafka"}.items() <= attributes.items()
    assert "kafka.cluster.alias" not in attributes
