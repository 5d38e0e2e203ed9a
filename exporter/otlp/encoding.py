"""
The protobuf of a push, made of what the last one left.

A point of OTLP is its attributes, which hardly ever change, and 18 or 27 bytes that do. The SDK's encoder
builds objects for each attribute of each point at every push; here the encoded attributes are kept. What
comes out is the message that the SDK makes of its data model of the same snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import Resource

from .columns import Column, EntityColumn
from .heads import Heads
from .identity import scope
from .points import Points
from .protobuf import delimited

# Field numbers of opentelemetry/proto/metrics/v1/metrics.proto.
_RESOURCE_METRICS, _SCOPE_METRICS, _METRICS = 1, 2, 2
_LENGTHS = 32
"""At least the bytes of the tags and lengths around a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An encoded ``ExportMetricsServiceRequest``."""

    body: bytes
    points: int
    """How many it holds."""


class Encoder:
    """
    Encodes one snapshot after the other, keeping what the next one needs again.

    Args:
        resource: Who sends.
        cluster: One more attribute of every point.
        max_bytes: Longest request. A point that is longer by itself is sent alone.

    """

    def __init__(self, resource: Resource, cluster: str | None, max_bytes: int) -> None:
        self._resource, self._scope = _surroundings(resource)
        self._room = max_bytes - len(self._resource) - len(self._scope) - _LENGTHS
        self._heads = Heads(cluster)

    def points(
        self, columns: Iterable[Column | EntityColumn], at_ns: int
    ) -> list[Points]:
        """The points of all families; ``at_ns`` is when they were read, Unix time."""
        self._heads.turn()
        return [self._points(column, at_ns) for column in columns]

    def requests(self, families: Iterable[Points]) -> Iterator[Request]:
        """The requests that hold all points."""
        metrics: list[bytes] = []
        count, room = 0, self._room
        for points in families:
            while points.left:
                metric, taken = points.take(room, at_least=0 if metrics else 1)
                if taken:
                    metrics.append(delimited(_METRICS, metric))
                    count += taken
                    room -= len(metrics[-1])
                else:
                    yield self._request(metrics, count)
                    metrics, count, room = [], 0, self._room
        if metrics:
            yield self._request(metrics, count)

    def _points(self, column: Column | EntityColumn, at_ns: int) -> Points:
        if isinstance(column, Column):
            heads = self._heads.of_series(column)
            values = [value for _, value in column.series]
            return Points(column.family, heads, values, column.starts_ns, at_ns)
        heads, values = self._heads.of_entities(column), column.values
        if column.may_repeat:
            first: dict[bytes, float] = {}
            for head, value in zip(heads, values, strict=True):
                first.setdefault(head, value)
            heads, values = list(first), list(first.values())
        return Points(column.family, heads, values, None, at_ns)

    def _request(self, metrics: list[bytes], points: int) -> Request:
        scoped = delimited(_SCOPE_METRICS, self._scope + b"".join(metrics))
        body = delimited(_RESOURCE_METRICS, self._resource + scoped)
        return Request(body=body, points=points)


def _surroundings(resource: Resource) -> tuple[bytes, bytes]:
    """The SDK's encoding of resource and scope, without anything in them."""
    scoped = ScopeMetrics(scope=scope(), metrics=[], schema_url="")
    whole = ResourceMetrics(
        resource=resource, scope_metrics=[scoped], schema_url=resource.schema_url
    )
    message = encode_metrics(MetricsData([whole])).resource_metrics[0]
    scope_bytes = message.scope_metrics.pop().SerializeToString()
    return message.SerializeToString(), scope_bytes
