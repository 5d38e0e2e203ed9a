"""
The requests of a push, in the generated classes of OTLP, made of what the push before has left.

What is expensive about a point are its attributes, and they hardly ever change: kept is the serialized point
without its numbers. Serialized messages one after the other are the message of all their parts, so that a whole
family is parsed at once, and only times and values are set one by one: 90 ms for 100,000 points, where points that
are built from their attributes take 600 ms, and points kept as objects take 180 ms and 1.5 KiB each.
"""

from __future__ import annotations

import socket
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import isfinite
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp
from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from quotascope.metrics.catalog import Family, FamilyType, families
from quotascope.metrics.catalog.otel_names import otel_name, ucum

from ..exposition import own_version
from ..exposition.families import COLUMNS, PerEntity
from ..exposition.rows import Exposed, encodable, label_names
from ..snapshot import Layout, Snapshot
from .push import Starts

_LENGTHS = 16
"""Upper bound of the bytes of tags and lengths around a metric and its points."""
_GAUGE_NUMBERS, _SUM_NUMBERS = 19, 28
"""
Bytes of time and value, and for sums of the start: 9 each, and one more by which the length before the point may grow.
"""


class Points(NamedTuple):
    """All points of one family."""

    family: Family
    heads: list[bytes]
    """
    Points, each serialized without its numbers, as the only point of a gauge; in a sum they have the same field number.
    """
    values: list[float]
    starts_ns: list[int] | None
    """Unix times in ns since which the points count; None for gauges."""


class PushRequest(NamedTuple):
    """A request and the number of its points."""

    message: service.ExportMetricsServiceRequest
    points: int


class Encoder:
    """
    Encodes one snapshot after the other.

    ``cluster`` is one more attribute of every point. A request has ``max_bytes`` at most; a longer point is sent alone.
    """

    def __init__(self, resource: Resource, cluster: str | None, max_bytes: int, starts: Starts) -> None:
        scope = InstrumentationScope("quotascope", own_version())
        scoped = ScopeMetrics(scope=scope, metrics=[], schema_url="")
        whole = ResourceMetrics(resource=resource, scope_metrics=[scoped], schema_url=resource.schema_url)
        empty = encode_metrics(MetricsData([whole])).SerializeToString()
        self._new_message = partial(service.ExportMetricsServiceRequest.FromString, empty)
        self._room = max_bytes - len(empty) - _LENGTHS
        self._common_labels = () if cluster is None else (("cluster", cluster),)
        self._starts = starts
        self._layout = Layout(())
        self._tags: tuple[str, ...] = ()
        self._by_row: dict[object, NDArray[np.object_]] = {}
        """
        Heads by row of ``_layout``, None where none was needed yet; by label names and the function that gives the
        labels.
        """
        self._by_labels: Mapping[object, bytes] = {}
        """Heads of the last snapshot's other series, by label names and labels."""

    def points(self, snapshot: Snapshot, now_seconds: float) -> list[Points]:
        """
        Return the points of a snapshot, the same series that /metrics shows.

        ``now_seconds`` is the Unix time that ages refer to.
        """
        self._move_to(snapshot.columns.layout, snapshot.callbacks.labels)
        view, at_ns = Exposed(snapshot, now_seconds), unix_ns(snapshot.taken_at)
        by_labels, self._by_labels = self._by_labels, {}
        points_of_families = []
        for family in families():
            column, names = COLUMNS.get(family), label_names(family, snapshot)
            series: dict[bytes, float] = {}
            if column is not None:
                series = self._entity_series(column, names, snapshot)
            else:
                for labels, value in view.rows_of(family):
                    if value is not None and isfinite(value):
                        key = names, labels
                        head = by_labels.get(key) or self._head(names, labels)
                        self._by_labels[key] = head
                        series.setdefault(head, value + 0.0)  # turns -0 into 0
            starts = None
            if family.type is FamilyType.COUNTER:
                starts = self._starts.of(family, series, at_ns, snapshot.steady_at)
            points_of_families.append(Points(family, [*series], [*series.values()], starts))
        self._starts.forget(snapshot.steady_at)
        return points_of_families

    def requests(self, all_points: Iterable[Points], at_ns: int) -> Iterator[PushRequest]:
        """Yield the requests that hold all points; ``at_ns`` is the Unix time at which they were read."""
        message, count, room = self._new_message(), 0, self._room
        for points in all_points:
            family = points.family
            described = otlp.Metric(name=otel_name(family), description=family.help, unit=ucum(family))
            around = described.ByteSize() + _LENGTHS
            number_bytes = _GAUGE_NUMBERS if points.starts_ns is None else _SUM_NUMBERS
            # the bytes of all points before each one, and at last of all
            ends = [0, *accumulate(len(head) + number_bytes for head in points.heads)]
            start = 0
            while start < len(points.heads):
                # the points from start to stop are those for which the request has room
                stop = bisect_right(ends, ends[start] + room - around) - 1
                if stop <= start and count:  # not even one: begin another request
                    yield PushRequest(message, count)
                    message, count, room = self._new_message(), 0, self._room
                    continue
                stop = max(stop, start + 1)  # a point that is too long for any request is sent alone
                metric = message.resource_metrics[0].scope_metrics[0].metrics.add()
                metric.CopyFrom(described)
                _fill(metric, points, slice(start, stop), at_ns)
                room -= around + ends[stop] - ends[start]
                count += stop - start
                start = stop
        if count:
            yield PushRequest(message, count)

    def _move_to(self, layout: Layout, tags: tuple[str, ...]) -> None:
        """Keep the heads of entities that have the same rule in another layout, and drop all heads for other tags."""
        if tags != self._tags:  # label names: old ones may never come back
            self._by_row, self._tags = {}, tags
        if layout is self._layout:
            return
        rows = layout.unchanged_in(self._layout)
        # a changed entity has the row -1, at which the appended None stands
        by_row = {key: np.append(heads, [None])[rows] for key, heads in self._by_row.items()}
        self._by_row, self._layout = by_row, layout

    def _entity_series(self, reader: PerEntity, names: tuple[str, ...], snapshot: Snapshot) -> dict[bytes, float]:
        """Return the values of entities by their heads. Of entities that share a series, the first one counts."""
        layout, values = snapshot.columns.layout, reader.values(snapshot)
        part = reader.rows(layout)
        rows = np.flatnonzero(np.isfinite(values[part])) + part.start
        heads_by_row = self._by_row.get((names, reader.labels))
        if heads_by_row is None:
            heads_by_row = self._by_row[names, reader.labels] = np.full(len(layout), None)
        heads = heads_by_row[rows].tolist()
        if None in heads:
            for row in rows[[head is None for head in heads]]:
                heads_by_row[row] = self._head(names, reader.labels(layout.entities[row]))
            heads = heads_by_row[rows].tolist()
        series: dict[bytes, float] = {}
        without_negative_zero = values[rows] + 0.0
        for head, value in zip(heads, without_negative_zero.tolist(), strict=True):
            series.setdefault(head, value)
        return series

    def _head(self, names: Sequence[str], labels: Sequence[str]) -> bytes:
        """Return the start of a point with these labels; an empty label, which means an absent one, is left out."""
        pairs = [*zip(names, labels, strict=True), *self._common_labels]
        attributes = [KeyValue(key=name, value=AnyValue(string_value=encodable(text))) for name, text in pairs if text]
        point = otlp.NumberDataPoint(attributes=attributes)
        return otlp.Gauge(data_points=[point]).SerializeToString()


def _fill(metric: otlp.Metric, points: Points, part: slice, at_ns: int) -> None:
    """Add points to a metric that is described already."""
    data: otlp.Gauge | otlp.Sum = metric.gauge if points.starts_ns is None else metric.sum
    data.MergeFromString(b"".join(points.heads[part]))
    for point, value in zip(data.data_points, points.values[part], strict=True):
        point.time_unix_nano = at_ns
        point.as_double = value
    if points.starts_ns is not None:
        metric.sum.aggregation_temporality = otlp.AGGREGATION_TEMPORALITY_CUMULATIVE
        metric.sum.is_monotonic = True
        for point, start in zip(data.data_points, points.starts_ns[part], strict=True):
            point.start_time_unix_nano = start


def unix_ns(seconds: float) -> int:
    """Return a Unix time in nanoseconds, to the microsecond."""
    return round(seconds * 1e6) * 1000


def resource_of(url: str, cluster: str | None, attributes: Mapping[str, str]) -> Resource:
    """
    Return the resource: quotascope, its version, and which instance of it this is.

    ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` override these, and the configured ``attributes`` override
    both. Host name and the port of the exporter's ``url`` make instances different, and stay over restarts.
    """
    ours = {
        "service.name": "quotascope",
        "service.version": own_version(),
        "service.instance.id": f"{socket.gethostname()}:{urlsplit(url).port}",
    }
    if cluster is not None:
        ours["kafka.cluster.alias"] = cluster
    detected = OTELResourceDetector().detect()
    return Resource.create(ours).merge(detected).merge(Resource(dict(attributes)))
