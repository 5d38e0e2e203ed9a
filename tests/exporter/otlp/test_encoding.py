"""A push equals the encoding of the SDK and the scrape of the same snapshot, whatever happens between snapshots."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, TypeVar

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
from tests.strategies import examples

from quotascope.exporter.exposition import own_version
from quotascope.exporter.exposition.rows import label_names
from quotascope.exporter.otlp.encoding import Encoder, PushRequest, resource_of, unix_ns
from quotascope.exporter.otlp.push import Starts
from quotascope.exporter.snapshot import CAUSES, Callbacks, Columns, Entity, Floats, Layout, NodeUsage, Snapshot
from quotascope.exporter.snapshot.columns import NAMES
from quotascope.exporter.snapshot.layout import order
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family, FamilyType, families
from quotascope.metrics.catalog.otel_names import otel_name, ucum
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

BEGAN = unix_ns(NOW - 100)
RESOURCE = resource_of("http://127.0.0.1:9749", "prod", {})


class Pushes:
    def __init__(self, cluster: str | None = None, max_bytes: int = 10**9) -> None:
        self._encoder = Encoder(RESOURCE, cluster, max_bytes, Starts(BEGAN))

    def requests(self, state: Snapshot, now_seconds: float = NOW) -> Iterator[PushRequest]:
        points = self._encoder.points(state, now_seconds)
        yield from self._encoder.requests(points, unix_ns(state.taken_at))

    def messages(self, state: Snapshot) -> list[ExportMetricsServiceRequest]:
        parse = ExportMetricsServiceRequest.FromString
        return [parse(request.message.SerializeToString()) for request in self.requests(state)]

    @property
    def kept(self) -> int:
        by_row = self._encoder._by_row.values()
        return sum(map(len, by_row)) + len(self._encoder._by_labels)


def by_the_sdk(state: Snapshot, cluster: str | None) -> ExportMetricsServiceRequest:
    """
    Return the first push of an exporter through the SDK's data model and encoder.

    A label that is empty is left out.
    """
    series = [(name, dict(labels), value) for (name, labels), value in series_of(state, NOW, cluster).items()]
    scope = InstrumentationScope("quotascope", own_version())
    metrics_of_sdk = [
        _metric(family, points_of_family)
        for family in families()
        if (points_of_family := list(_points(family, series, state)))
    ]
    scoped = ScopeMetrics(scope=scope, metrics=metrics_of_sdk, schema_url="")
    whole = ResourceMetrics(resource=RESOURCE, scope_metrics=[scoped], schema_url=RESOURCE.schema_url)
    return encode_metrics(MetricsData(resource_metrics=[whole]))


def _metric(family: Family, points: list[NumberDataPoint]) -> Metric:
    data: Gauge | Sum = Gauge(data_points=points)
    if family.type is FamilyType.COUNTER:
        data = Sum(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(name=otel_name(family), description=family.help, unit=ucum(family), data=data)


def _points(
    family: Family, series: list[tuple[str, dict[str, str], float]], state: Snapshot
) -> Iterator[NumberDataPoint]:
    at_ns = unix_ns(state.taken_at)
    start = BEGAN if family.name.startswith("quotascope_") else at_ns
    names = *label_names(family, state), "cluster"
    for name, labels, value in series:
        if name == family.name:
            yield NumberDataPoint(
                attributes={label: labels[label] for label in names if labels.get(label)},
                start_time_unix_nano=start if family.type is FamilyType.COUNTER else 0,
                time_unix_nano=at_ns,
                value=value,
            )


@pytest.mark.parametrize("cluster", [None, "prod"])
@pytest.mark.parametrize("make", [varied, hostile, snapshot, lambda: many(50)])
def test_it_is_what_the_sdk_encodes(make: Callable[[], Snapshot], cluster: str | None) -> None:
    """The message equals the SDK's, point by point and in order, at the first push and at later ones."""
    state = make()
    pushes = Pushes(cluster)
    for _ in range(2):
        (message,) = pushes.messages(state)
        assert message == by_the_sdk(state, cluster)


@pytest.mark.parametrize("name", ["combined_throttled", "split_throttled", "pair_throttled", "tiered_throttled"])
def test_recorded_nodes_are_as_scraped(name: str, request: pytest.FixtureRequest) -> None:
    """Recorded answers of brokers give the same series in a push and in a scrape."""
    state: Snapshot = request.getfixturevalue(name)
    assert pushed(Pushes("c").messages(state)) == scraped(state, NOW, "c")


def test_counters_are_monotonic_sums() -> None:
    """Cumulative, with a start that moves only when the counter fell; gauges have none."""
    pushes = Pushes()
    counters = []
    for value, now_seconds in ((7.0, NOW), (8.0, NOW + 60), (2.0, NOW + 120)):
        state = varied(value)
        later = snapshot(*state.entities, nodes=state.nodes, limits=state.limits, taken_at=now_seconds)
        named = {metric.name: metric for metric in metrics(pushes.messages(later))}
        counters.append(named["kafka.quota.throttling_errors"])
    assert all(metric.sum.is_monotonic for metric in counters)
    assert {metric.sum.aggregation_temporality for metric in counters} == {AGGREGATION_TEMPORALITY_CUMULATIVE}
    spans = [(p.start_time_unix_nano, p.time_unix_nano) for m in counters for p in points(m)]
    first_ns, second, third = (unix_ns(NOW + seconds) for seconds in (0, 60, 120))
    assert spans == [(first_ns, first_ns), (first_ns, second), (second, third)]


def test_requests_are_cut_to_size() -> None:
    """Requests have resource and scope, are as long as allowed, and contain each point once."""
    state = many(3_000)
    requests = list(Pushes(max_bytes=100_000).requests(state))
    sizes = [request.message.ByteSize() for request in requests]
    assert max(sizes) <= 100_000
    assert min(sizes[:-1]) > 98_000
    assert pushed(request.message for request in requests) == scraped(state, NOW)
    for request in requests:
        assert request.points == sum(len(list(points(metric))) for metric in metrics([request.message]))
        (whole,) = request.message.resource_metrics
        assert "service.name" in {pair.key for pair in whole.resource.attributes}
        assert whole.scope_metrics[0].scope.name == "quotascope"
    # a name longer than a request is left to the receiver to judge
    long = snapshot(usage(user="y" * 150_000, usage=1.0), usage(usage=2.0))
    assert pushed(Pushes(max_bytes=100_000).messages(long)) == scraped(long, NOW)


def test_what_is_gone_is_forgotten() -> None:
    """Clients that come and go do not pile up."""
    pushes = Pushes()
    series_pushed = set()
    for first_number in range(0, 5_000, 500):
        pushes.messages(many(500, first_number))
        series_pushed.add(pushes.kept)
    assert len(series_pushed) == 1


def test_the_resource_names_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resource has name, version, instance and cluster, overridden by variables and by the configuration."""
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    attributes = resource_of("http://127.0.0.1:9749", "prod", {}).attributes
    expected_own = {
        "service.name": "quotascope",
        "service.version": own_version(),
        "service.instance.id": f"{socket.gethostname()}:9749",
        "kafka.cluster.alias": "prod",
        "telemetry.sdk.language": "python",
    }
    assert expected_own.items() <= attributes.items()
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
    """A cluster whose every next state is drawn."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._one = random.choice
        self._layout = Layout(())
        self._labels = ("tenant",)

    def step(self) -> Snapshot:
        """Return the next state: entities are removed, added or moved to another rule, and values change."""
        if self._one((True, False)):
            self._move()
        flags = np.array(self._each((True, True, False)), np.bool_)
        columns: dict[str, Any] = {name: self._column() for name in NAMES}
        columns_of_state = Columns(
            layout=self._layout,
            **columns,
            causes=np.array(self._each(range(len(CAUSES))), np.int8),
            detailed=self._one((None, flags)),
        )
        nodes = self._random.sample(NODES, self._random.randint(0, len(NODES)))
        return snapshot(
            columns=columns_of_state,
            nodes=tuple(
                NodeUsage(broker=node, numbers={catalog.THROTTLING_ERRORS: {("CreateTopics",): 1.0}}) for node in nodes
            ),
            callbacks=Callbacks(labels=self._labels),
            limits=self._one((None, limits())),
        )

    def _move(self) -> None:
        old_layout = self._layout
        fates = np.array(self._each(("stays", "stays", "goes", "another rule")), str)
        removed = np.flatnonzero(fates != "stays")
        added = [self._entity() for _ in range(self._random.randint(0, 6))]
        added += [
            replace(entity, resolution=self._one(RESOLUTIONS), limit=self._one((None, 0.0, 3.0)))
            for entity in old_layout.entities[fates == "another rule"]
        ]
        self._labels = self._one((self._labels, ("tenant",), ("team",)))
        if self._one((True, False)):
            self._layout = old_layout.changed(removed, added)
        else:  # as where the layouts between were not seen
            self._layout = Layout(sorted([*np.delete(old_layout.entities, removed), *added], key=order))

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


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 2**32), cluster=st.sampled_from((None, "prod", "\udfff")))
def test_any_history_is_as_scraped(seed: int, cluster: str | None) -> None:
    """Pushes have the names, attributes and values of the page for any history of a cluster."""
    history = History(Random(seed))  # noqa: S311 - no secrets here
    resource = resource_of("http://127.0.0.1:9749", cluster and "c", {})
    encoder = Encoder(resource, cluster, 100_000, Starts(1))
    for _ in range(6):
        state = history.step()
        requests = encoder.requests(encoder.points(state, NOW), unix_ns(NOW))
        series = pushed(request.message for request in requests)
        assert series == scraped(state, NOW, cluster)
