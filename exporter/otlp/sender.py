"""One push from beginning to end, in a thread of its own: encode, send, hear the answers."""

from __future__ import annotations

import logging
from typing import Protocol

from opentelemetry.sdk.metrics.export import MetricsData

from ..config import OtlpProtocol
from ..snapshot import Snapshot
from .answers import Answers
from .columns import FastColumns, unix_ns
from .encoded import EncodedMetrics
from .encoding import Encoder
from .grpc_exporter import GrpcExporter
from .http_exporter import HttpExporter
from .ledger import Report
from .settings import Target


class _Exporter(Protocol):
    answers: Answers

    def export(self, metrics_data: MetricsData) -> object: ...

    def shutdown(self) -> None: ...


class Sender:
    """
    Sends one snapshot after the other through an exporter of the SDK.

    Args:
        target: The receiver.
        encoder: Makes the requests.
        columns: Reads the snapshots.

    """

    def __init__(self, target: Target, encoder: Encoder, columns: FastColumns) -> None:
        # What they would log, the answers say; and they quote whatever a server says.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL + 1)
        self._exporter = exporter_of(target)
        self._encoder = encoder
        self._columns = columns

    def send(self, snapshot: Snapshot, now: float) -> Report:
        """
        Push a snapshot; after a request that failed the others are not tried.

        ``now`` is the Unix time in seconds that ages refer to.
        """
        columns = self._columns.of(snapshot, now)
        families = self._encoder.points(columns, unix_ns(snapshot.taken_at))
        lost = sum(points.left for points in families)
        accepted = rejected = size = 0
        reason = ""
        for request in self._encoder.requests(families):
            self._exporter.export(EncodedMetrics.of(request))
            answer = self._exporter.answers.take()
            reason = answer.reason or reason
            if not answer.taken:
                break
            refused = min(answer.rejected_points, request.points)
            accepted += request.points - refused
            rejected += refused
            lost -= request.points
            size += len(request.body)
        return Report(
            accepted=accepted,
            rejected=rejected,
            lost=lost,
            sent_bytes=size,
            reason=reason,
        )

    def close(self) -> None:
        """End what is under way and close the connections."""
        self._exporter.shutdown()


def exporter_of(target: Target) -> _Exporter:
    """The exporter for a receiver."""
    if target.protocol is OtlpProtocol.GRPC:
        return GrpcExporter(target)
    return HttpExporter(target)
