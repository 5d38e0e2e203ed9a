"""Metrics that are encoded already, in the data model of the SDK."""

from __future__ import annotations

from dataclasses import dataclass

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics.export import MetricsData

from .encoding import Request


@dataclass(frozen=True)
class EncodedMetrics(MetricsData):
    """What our exporters send as it is; to others it looks empty."""

    message: ExportMetricsServiceRequest
    points: int

    @classmethod
    def of(cls, request: Request) -> EncodedMetrics:
        """The metrics of a request."""
        message = ExportMetricsServiceRequest.FromString(request.body)
        return cls(resource_metrics=[], message=message, points=request.points)
