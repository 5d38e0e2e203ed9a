"""A recommendation: one limit for each entity, what setting the limits would change, and which clients they would throttle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.quotas import Entity, QuotaSet, RuleChange, difference, merged

from ..releases import Followed
from .coverage import Coverage, Logged
from .need import Need
from .policy import Policy, limit_of, rounded_up, steps_of
from .protect import Protection

NOW: Final = "as configured"
RECOMMENDED: Final = "recommended"
"""The names of the two candidates."""
_KINDS: Final = {kind.label: kind for kind in QuotaType}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """A limit for one entity; every broker enforces it separately."""

    entity: QuotaEntity
    kind: QuotaType
    limit: float
    """Bytes/s, percent of one thread, or mutations/s; with headroom, rounded up to three digits."""
    lowest: float
    """The lowest limit that keeps the share, before headroom."""
    broker: str
    """The broker that needs the most."""
    hour: int | None
    """The hour of the week that needs the most; None where hours are taken together, or any limit would do."""
    requests: int
    """On all brokers, those that such a quota checks."""
    unsized: int = 0
    """Those of them of unknown size, which may need more."""

    @property
    def key(self) -> str:
        """The configuration key that sets it."""
        return self.kind.quota_key

    @property
    def names(self) -> tuple[str | None, str | None]:
        """User and client id of the entity; None for one that it does not have."""
        user, client_id = self.entity.user, self.entity.client_id
        return (
            user if isinstance(user, str) else None,
            client_id if isinstance(client_id, str) else None,
        )


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
    """The release that throttle times follow."""
    now: QuotaSet | None
    """The quotas as configured; None if they are unknown."""
    recommended: Sequence[Recommendation]
    hits: Sequence[Hit]
    """Clients that would be throttled, the longest first."""
    protection: Protection | None = None
    """What the limits save others; None where they are the lowest that keep a share."""

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

    def now_of(self, made: Recommendation) -> float | None:
        """The quota of the same entity and key as configured; None if there is none, or if it is unknown."""
        now = QuotaSet() if self.now is None else self.now
        return now.get(made.entity, {}).get(made.key)

    def state(self, value: float | None) -> str:
        """Whether a configured quota is "set", infinite and so "unlimited", has "no rule", or is "unknown" because the configured quotas are."""
        if self.now is None:
            return "unknown"
        if value == math.inf:
            return "unlimited"
        return "no rule" if value is None else "set"

    @property
    def target(self) -> QuotaSet:
        """The quotas as they would be."""
        return target(self.now, self.recommended)

    @property
    def changes(self) -> tuple[RuleChange, ...]:
        """From the configured quotas to the recommended ones; quotas of other entities stay as they are."""
        return difference(self.now or QuotaSet(), self.target)


def recommendations(needs: Iterable[Need], policy: Policy) -> list[Recommendation]:
    """From what entities need on each broker to one limit for all brokers; one for each entity and quota type, in the order of names."""
    grouped: dict[tuple[QuotaEntity, QuotaType], list[Need]] = {}
    for need in needs:
        grouped.setdefault((need.entity, need.kind), []).append(need)
    made: list[Recommendation] = []
    for (entity, kind), on_brokers in grouped.items():
        highest = max(on_brokers, key=lambda need: need.steps)
        wanted = math.ceil(round(highest.steps * (1 + policy.headroom), 6))
        floor = steps_of(kind, policy.floors[kind]) if kind in policy.floors else 1
        made.append(
            Recommendation(
                entity=entity,
                kind=kind,
                limit=limit_of(kind, rounded_up(max(wanted, floor))),
                lowest=limit_of(kind, highest.steps),
                broker=highest.broker,
                hour=highest.hour,
                requests=sum(need.requests for need in on_brokers),
                unsized=sum(need.unsized for need in on_brokers),
            )
        )
    types = list(QuotaType)
    return sorted(made, key=lambda each: (*(name or "" for name in each.names), types.index(each.kind)))


def protecting(results: pa.Table, policy: Policy, found: Protection) -> list[Recommendation]:
    """The level found for each entity that it throttles, from its replay (`quotascope.pipeline.replay.RESULTS`), in the order of names."""
    rows: dict[QuotaEntity, list[Mapping[str, Any]]] = {}
    for row in results.to_pylist():
        names = {name: row[name] for name in policy.shape.names}
        rows.setdefault(QuotaEntity(**names), []).append(row)
    broker = max(found.waits, key=lambda wait: wait[1] or 0.0)[0].broker
    made = [
        Recommendation(
            entity=entity,
            kind=QuotaType.REQUEST,
            limit=found.level or math.inf,
            lowest=found.level or math.inf,
            broker=broker,
            hour=None,
            requests=sum(row["requests"] for row in of_entity),
        )
        for entity, of_entity in rows.items()
        if any(row["throttled_requests"] for row in of_entity)
    ]
    return sorted(made, key=lambda each: tuple(name or "" for name in each.names))


def target(now: QuotaSet | None, made: Iterable[Recommendation]) -> QuotaSet:
    """The quotas as they would be: the configured ones, overridden by the recommended ones."""
    quotas: dict[Entity, dict[str, float]] = {}
    for each in made:
        quotas.setdefault(each.entity, {})[each.key] = each.limit
    return merged(now or QuotaSet(), QuotaSet(quotas))


def hits(results: pa.Table, *, now_known: bool = True) -> list[Hit]:
    """
    The clients that are throttled, from a replay of the candidates (`quotascope.pipeline.replay.RESULTS`).

    Args:
        results: of the recommended limits, and of the configured ones if these are known.
        now_known: whether they are.

    """

    def key(row: Mapping[str, Any]) -> tuple[str, str, str]:
        return row["user"], row["client_id"], row["quota_type"]

    rows = results.to_pylist()
    before = {key(row): row["muted_ms"] for row in rows if row["candidate"] == NOW}
    found = [
        Hit(
            user=row["user"],
            client_id=row["client_id"],
            kind=_KINDS[row["quota_type"]],
            limit=row["limit"],
            share=row["throttled_share"],
            muted_ms=row["muted_ms"],
            longest_ms=row["longest_throttle_ms"],
            muted_now_ms=before.get(key(row), 0) if now_known else None,
        )
        for row in rows
        if row["candidate"] == RECOMMENDED and row["throttled_requests"]
    ]
    return sorted(found, key=lambda hit: (-hit.muted_ms, hit.user, hit.client_id))
