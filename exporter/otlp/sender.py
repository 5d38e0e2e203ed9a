"""One push from beginning to end, in a thread of its own: encode, send, and count what was answered."""

from __future__ import annotations

import logging

from ..snapshot import Snapshot
from .encoding import Encoder, unix_ns
from .exporters import exporter_of
from .ledger import Report
from .settings import Target


class Sender:
    """
    Sends one snapshot after the other through an exporter of the SDK.

    Args:
        target: The receiver.
        encoder: Makes the requests.

    """

    def __init__(self, target: Target, encoder: Encoder) -> None:
        # What they would log is in the answers; and they quote whatever a server says.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL + 1)
        self._exporter = exporter_of(target)
        self._encoder = encoder

    def send(self, snapshot: Snapshot, now: float) -> Report:
        """
        Push a snapshot; after a request that failed the others are not tried.

        ``now`` is the Unix time in seconds that ages refer to.
        """
        points = self._encoder.points(snapshot, now)
        lost = sum(len(family.heads) for family in points)
        accepted = rejected = 0
        reason = ""
        for request in self._encoder.requests(points, unix_ns(snapshot.taken_at)):
            answer = self._exporter.send(request)
            reason = answer.reason or reason
            if not answer.taken:
                break
            refused = min(answer.rejected_points, request.points)
            accepted += request.points - refused
            rejected += refused
            lost -= request.points
        return Report(accepted=accepted, rejected=rejected, lost=lost, reason=reason)

    def close(self) -> None:
        """End what is under way and close the connections."""
        self._exporter.shutdown()
