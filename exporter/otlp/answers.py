"""What a receiver says to one request."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)

from ..untrusted import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whether a request was taken, and how much of it."""

    taken: bool
    rejected_points: int = 0
    """Points of a request that was taken otherwise."""
    reason: str = ""
    """Why not, or not all; what a receiver may remark all the same."""


class Answers:
    """Holds the last answer; the SDK's exporters tell no more than success or failure."""

    def __init__(self) -> None:
        self._last: Answer | None = None

    def note(self, answer: Answer) -> None:
        """Remember an answer."""
        self._last = answer

    def take(self) -> Answer:
        """The last answer, once."""
        answer, self._last = self._last, None
        return answer or Answer(taken=False, reason="the request was not sent")


def answer_of(response: ExportMetricsServiceResponse) -> Answer:
    """The answer that a response holds: all, or what is called a partial success."""
    partial = response.partial_success
    return Answer(
        taken=True,
        rejected_points=max(0, partial.rejected_data_points),
        reason=shown(partial.error_message),
    )


def answer_in(body: bytes) -> Answer:
    """The same from bytes; whatever cannot be read rejects nothing."""
    try:
        return answer_of(ExportMetricsServiceResponse.FromString(body))
    except DecodeError:
        return Answer(taken=True)
