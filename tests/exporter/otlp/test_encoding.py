"""A push is what the SDK encodes of the same snapshot, and what a scrape of it shows, whatever happens from one snapshot to the next."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from tests.exporter.examples import NOW, limits, snapshot, usage
from tests.exporter.exposition.oracle import series_of
from tests.exporter.otlp.messages import metrics, points, pushed, scraped
from tests.exporter.otlp.snapshots import hostile, many, varied

from quotascope.exporter.exposition import own_version
from quotascope.exporter.exposition.rows import label_names
from quotascope.exporter.otlp.encoding import Encoder, PushRequest, resource_of, unix_ns
from quotascope.exporter.otlp.push import Starts
from quotascope.exporter.snapshot import CAUSES, Callbacks, Columns, Entity, Floats, Layout, NodeUsage, Snapshot
from quotascope.exporter.snapshot.columns import NAMES
from quotascope.exporter.snapshot.layout import order
from quotascope.metrics import DEFAULT, NO_RULE, QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import Family, FamilyType, families
from quotascope.metrics.catalog.otel_names import otel_name, ucum

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
    """The first push of an exporter through the SDK's data model and encoder; a label that is empty is left out."""
    series = [(name, dict(labels), value) for (name, labels), value in series_of(shown, NOW, cluster).items()]
    scope = InstrumentationScope("quotascope", own_version())
    found = [_metric(family, each) for family in families() if (each := list(_points(family, series, shown)))]
    scoped = ScopeMetrics(scope=scope, metrics=found, schema_url="")
    whole = ResourceMetrics(resource=RESOURCE, scope_metrics=[scoped], schema_url=RESOURCE.schema_url)
    return encode_metrics(MetricsData(resource_metrics=[whole]))


def _metric(family: Family, points: list[NumberDataPoint]) -> Metric:
    data: Gauge | Sum = Gauge(data_points=points)
    if family.type is FamilyType.COUNTER:
        data = Sum(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(name=otel_name(family), description=family.help, unit=ucum(family), data=data)


def _points(
    family: Family, series: list[tuple[str, dict[str, str], float]], shown: Snapshot
) -> Iterator[NumberDataPoint]:
    at_ns = unix_ns(shown.taken_at)
    start = BEGAN if family.name.startswith("quotascope_") else at_ns
    names = *label_names(family, shown), "cluster"
    for name, labels, value in series:
        if name == family.name:
            yield NumberDataPoint(
                attributes={each: labels[each] for each in names if labels.get(each)},
                start_time_unix_nano=start if family.type is FamilyType.COUNTER else 0,
                time_unix_nano=at_ns,
                value=value,
            )


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


TEXTS: Final = ("", "a", "b", "\ud800", "\\ud800", '"\\\n{}', "__overflow__", "x" * 200)
"""Names, two of which are the same once they are encoded."""
NODES: Final = ("1", "2", "10")
NUMBERS: Final = (np.nan, np.nan, 0.0, -0.0, 2.5, -1.0, 1e300, np.inf, -np.inf)
OF_USER: Final = QuotaRules({QuotaEntity("a", None): 5.0}).limit("a", "")
OF_CLIENT: Final = QuotaRules({QuotaEntity(DEFAULT, "b"): 3.0}).limit("z", "b")
RESOLUTIONS: Final = (None, NO_RULE, OF_USER, OF_CLIENT)
_Choice = TypeVar("_Choice")


class History:
    """A cluster whose every next moment is drawn."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._one = random.choice
        self._layout = Layout(())
        self._labels = ("tenant",)

    def step(self) -> Snapshot:
        """Some entities go, come, and are made again under another rule; any value may be another one."""
        if self._one((True, False)):
            self._move()
        flags = np.array(self._each((True, True, False)), np.bool_)
        shown = Columns(
            layout=self._layout,
            **{name: self._column() for name in NAMES},
            causes=np.array(self._each(range(len(CAUSES))), np.int8),
            detailed=self._one((None, flags)),
        )
        nodes = self._random.sample(NODES, self._random.randint(0, len(NODES)))
        return snapshot(
            shown=shown,
            nodes=tuple(NodeUsage(broker=node, throttling_errors={"CreateTopics": 1.0}) for node in nodes),
            callbacks=Callbacks(labels=self._labels),
            limits=self._one((None, limits())),
        )

    def _move(self) -> None:
        before = self._layout
        fates = np.array(self._each(("stays", "stays", "goes", "another rule")), str)
        gone = np.flatnonzero(fates != "stays")
        came = [self._entity() for _ in range(self._random.randint(0, 6))]
        came += [
            replace(entity, resolution=self._one(RESOLUTIONS), limit=self._one((None, 0.0, 3.0)))
            for entity in before.entities[fates == "another rule"]
        ]
        self._labels = self._one((self._labels, ("tenant",), ("team",)))
        if self._one((True, False)):
            self._layout = before.changed(gone, came)
        else:  # as where the layouts between were not seen
            self._layout = Layout(sorted([*np.delete(before.entities, gone), *came], key=order))

    def _entity(self) -> Entity:
        tagged = self._one((True, False, False))
        return Entity(
            broker=self._one(NODES),
            quota_type=self._one(tuple(QuotaType)),
            user="" if tagged else self._one(TEXTS),
            client_id="" if tagged else self._one(TEXTS),
            resolution=self._one(RESOLUTIONS),
            limit=self._one((None, 0.0, 3.0)),
            burst_tokens=self._one((None, 0.0, 33.0)),
            tags=(self._one(TEXTS),) if tagged else None,
        )

    def _column(self) -> Floats:
        if self._one((True, False, False)):
            return self._layout.absent
        return np.array(self._each(NUMBERS), np.float64)

    def _each(self, choices: Sequence[_Choice]) -> list[_Choice]:
        return self._random.choices(choices, k=len(self._layout))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), cluster=st.sampled_from((None, "prod", "\udfff")))
def test_any_history_is_as_scraped(seed: int, cluster: str | None) -> None:
    """Names, attributes and values are those of the page, however values, entities, rules, nodes and labels change."""
    history = History(Random(seed))  # noqa: S311 - no secrets here
    resource = resource_of("http://127.0.0.1:9749", cluster and "c", {})
    encoder = Encoder(resource, cluster, 100_000, Starts(1))
    for _ in range(6):
        shown = history.step()
        requests = encoder.requests(encoder.points(shown, NOW), unix_ns(NOW))
        series = pushed(request.message for request in requests)
        assert series == scraped(shown, NOW, cluster)
