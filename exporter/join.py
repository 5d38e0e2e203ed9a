"""Usage joined with limits: from tables and rules to one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from .limits import Limits
from .snapshot import LimitsHealth, Snapshot, SourceRead


class Join:
    """Joins what the sources read with the configured limits, and remembers what the next join needs."""

    def snapshot(
        self,
        reads: Sequence[SourceRead],
        limits: Limits | None,
        limits_health: LimitsHealth,
        taken_at: float,
    ) -> Snapshot:
        """The state of the cluster at ``taken_at`` (Unix time in seconds)."""
        raise NotImplementedError
