"""What the report on a replay shows, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ..followed import Followed
from ..whatif.mode import Mode
from .summary import (
    CandidateSummary,
    GroupSummary,
    Row,
    by_candidate,
    by_group,
    rows_of,
)

_TOLD: Final = {
    Mode.OPEN_LOOP: "open loop",
    Mode.CLOSED_LOOP: "closed loop",
}
_MEANT: Final = {
    Mode.OPEN_LOOP: "Open loop: requests arrive as logged, whatever the throttles. Real clients slow down, so these figures are upper bounds.",
    Mode.CLOSED_LOOP: "Closed loop: a throttled connection sends its next request later, as a muted channel makes it. What comes later is counted when it comes.",
}
_NOTES: Final = (
    "Limits hold for each broker by itself; a drawing shows the broker where the peak was highest.",
    "The area is the highest mean over 11 s, which is about what a broker compares with its limit; the line is the mean.",
    "Where nothing is drawn, no request was logged: the client was idle, or the log has a gap.",
    "A client's share is the time in which it was throttled, as a part of the time in which it was active or throttled.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A replay."""

    source: str
    """Where the history is."""
    span_ms: tuple[int, int]
    """Its first and last decision: ms since 1970."""
    mode: Mode
    kafka: Followed
    """The release whose throttle times were followed."""
    candidates: Sequence[CandidateSummary]
    groups: Sequence[GroupSummary]
    """Clients that share a limit, those that are throttled longest first."""
    rows: Sequence[Row]
    """Of the results, in the same order."""

    @property
    def closed(self) -> bool:
        """Whether throttled clients come later."""
        return self.mode is Mode.CLOSED_LOOP

    @property
    def mode_told(self) -> str:
        """The mode in words."""
        return _TOLD[self.mode]

    @property
    def notes(self) -> Sequence[str]:
        """What a reader must know about these figures, one sentence or two each."""
        return (_MEANT[self.mode], self.kafka.note, *_NOTES)


def account_of(
    results: pa.Table,
    names: Sequence[str],
    source: str,
    span_ms: tuple[int, int],
    mode: Mode,
    kafka: Followed,
) -> Account:
    """
    Add up the results of a replay.

    Args:
        results: `quotascope.pipeline.whatif.results.RESULTS`, brokers added up.
        names: of the candidates, in their order.
        source: where the history is.
        span_ms: its first and last decision.
        mode: of the replay.
        kafka: the release whose throttle times were followed.

    """
    rows = rows_of(results)
    return Account(
        source=source,
        span_ms=span_ms,
        mode=mode,
        kafka=kafka,
        candidates=by_candidate(rows, names),
        groups=by_group(rows),
        rows=rows,
    )
