"""Whether discovery finds nodes."""

from __future__ import annotations

from collections.abc import Iterator

from ..snapshot import Snapshot
from .result import Result, Verdict


def discoveries(snapshot: Snapshot) -> Iterator[Result]:
    """One result for each way of finding nodes."""
    for each in snapshot.discoveries:
        bad = each.error is not None
        yield Result(
            check="discovery",
            subject=each.name,
            verdict=Verdict.BROKEN if bad else Verdict.FINE,
            text=each.error or f"Finds {each.targets} nodes.",
            advice="docs/discovery.md says what it needs." if bad else "",
        )
