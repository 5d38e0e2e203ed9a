"""How pushing goes: counted for the families about it, logged when it changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

import structlog

from ..snapshot import PushHealth

log = structlog.get_logger()


class Outcome(StrEnum):
    """What became of a push."""

    SUCCESS = "success"
    PARTIAL = "partial"
    """The receiver rejected some points."""
    FAILURE = "failure"
    """Some points did not reach the receiver, or it took none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a receiver answered to one request."""

    taken: bool
    """Whether it took the request, at least in part."""
    rejected_points: int = 0
    """Points of a request that was taken otherwise."""
    reason: str = ""
    """Why not, or not all; or the remark of a receiver that took everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one push came to."""

    accepted: int = 0
    """Points, as the next two."""
    rejected: int = 0
    """By a receiver that took others of the same request."""
    lost: int = 0
    """The receiver was not reached, or refused the request."""
    reason: str = ""
    """Why some were not accepted; free of secrets."""

    @property
    def outcome(self) -> Outcome:
        """The whole in one word."""
        if self.lost or (self.reason and not self.accepted and not self.rejected):
            return Outcome.FAILURE
        return Outcome.PARTIAL if self.rejected else Outcome.SUCCESS


class Ledger:
    """Adds up reports. ``receiver`` is how log lines call the other side."""

    def __init__(self, receiver: str) -> None:
        self.receiver = receiver
        self._pushes: Counter[Outcome] = Counter()
        self._points = Counter(accepted=0, rejected=0, lost=0)
        self._last: Outcome | None = None
        self._reason = ""

    @property
    def failing(self) -> bool:
        """Whether the last push failed."""
        return self._last is Outcome.FAILURE

    @property
    def health(self) -> PushHealth:
        """Everything so far, with the zeros that ``increase()`` needs."""
        return PushHealth(
            exports_total={each.value: self._pushes[each] for each in Outcome},
            points_total=dict(self._points),
            error=self._reason or None,
        )

    def begin_anew(self, receiver: str) -> None:
        """Go on counting with another receiver, whose first answer is logged."""
        self.receiver = receiver
        self._last, self._reason = None, ""

    def add(self, report: Report) -> None:
        """Count a push; one that went otherwise than the last is logged."""
        outcome = report.outcome
        self._pushes[outcome] += 1
        self._points.update(
            accepted=report.accepted, rejected=report.rejected, lost=report.lost
        )
        self._reason = "" if outcome is Outcome.SUCCESS else report.reason
        before, self._last = self._last, outcome
        if outcome is before:
            return
        line = log.bind(receiver=self.receiver)
        if outcome is Outcome.SUCCESS:
            line.info("metrics are pushed", points=report.accepted)
        elif outcome is Outcome.PARTIAL:
            line.warning(
                "the receiver rejects some points",
                rejected=report.rejected,
                error=report.reason,
            )
        else:
            line.warning("metrics cannot be pushed", error=report.reason)
