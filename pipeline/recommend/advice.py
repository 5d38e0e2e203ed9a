"""All that is said about a recommendation: the limits, what they would change, and who would be hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics import QuotaType
from quotascope.quotas import QuotaSet, RuleChange, difference, merged

from ..followed import Followed
from .coverage import Coverage, Logged
from .policy import Policy
from .recommendation import Recommendation, quotas_of

NOW: Final = "as configured"
RECOMMENDED: Final = "recommended"
"""The names of the two candidates."""
_KINDS: Final = {kind.label: kind for kind in QuotaType}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A client that the recommended limits would throttle, by one quota type."""

    user: str
    client_id: str
    kind: QuotaType
    limit: float
    """That decides for it then."""
    share: float
    """Of its time that it would be throttled."""
    muted_ms: int
    longest_ms: int
    muted_now_ms: int | None
    """The same under the quotas as configured; None if they are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Limits, and what setting them would mean. Nothing of it was applied."""

    source: str
    """Where the history is."""
    coverage: Coverage
    """How much of it there is."""
    policy: Policy
    kafka: Followed
    """The release whose throttle times were followed."""
    now: QuotaSet | None
    """The quotas as configured; None if nobody asked."""
    recommended: Sequence[Recommendation]
    changes: Sequence[RuleChange]
    """That lead from the configured quotas to the recommended ones; quotas of others stay as they are."""
    hits: Sequence[Hit]
    """Those that would be throttled, the longest first."""

    @property
    def span_ms(self) -> tuple[int, int]:
        """The history's first and last decision: ms since 1970."""
        return self.coverage.span_ms

    @property
    def held_back(self) -> int:
        """How many of the limits are of entities that were throttled while the log was written."""
        return sum(self.logged(made).throttled > 0 for made in self.recommended)

    def logged(self, made: Recommendation) -> Logged:
        """The requests of a limit's entity; where some were throttled, it may need more than the log shows."""
        return self.coverage.of(made.entity)

    def now_state(self, made: Recommendation) -> str:
        """Whether the entity has a quota of this key: "set", "no rule" where it has none, and "unknown" where nobody asked."""
        if self.now is None:
            return "unknown"
        return "no rule" if self.now_of(made) is None else "set"

    def now_of(self, made: Recommendation) -> float | None:
        """The quota of the same entity and key as configured; None if there is none, or nobody asked."""
        now = QuotaSet() if self.now is None else self.now
        return now.get(made.entity, {}).get(made.key)

    @property
    def target(self) -> QuotaSet:
        """The quotas as they would be."""
        return target(self.now, self.recommended)


def target(now: QuotaSet | None, made: Sequence[Recommendation]) -> QuotaSet:
    """The quotas as they would be: the configured ones, with the recommended ones above."""
    return merged(now or QuotaSet(), quotas_of(made))


def changes(
    now: QuotaSet | None, made: Sequence[Recommendation]
) -> tuple[RuleChange, ...]:
    """What leads there."""
    return difference(now or QuotaSet(), target(now, made))


def hits(results: pa.Table, *, now_known: bool = True) -> list[Hit]:
    """
    Who is throttled, from a replay of the candidates (`quotascope.pipeline.whatif.results.RESULTS`).

    Args:
        results: of the recommended limits, and of the configured ones if these are known.
        now_known: whether they are.

    """
    rows = results.to_pylist()
    before = {_key(row): row["muted_ms"] for row in rows if row["candidate"] == NOW}
    found = [
        _hit(row, before.get(_key(row), 0) if now_known else None)
        for row in rows
        if row["candidate"] == RECOMMENDED and row["throttled_requests"]
    ]
    return sorted(found, key=lambda hit: (-hit.muted_ms, hit.user, hit.client_id))


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["user"], row["client_id"], row["quota_type"]


def _hit(row: Mapping[str, Any], muted_now_ms: int | None) -> Hit:
    return Hit(
        user=row["user"],
        client_id=row["client_id"],
        kind=_KINDS[row["quota_type"]],
        limit=row["limit"],
        share=row["throttled_share"],
        muted_ms=row["muted_ms"],
        longest_ms=row["longest_throttle_ms"],
        muted_now_ms=muted_now_ms,
    )
