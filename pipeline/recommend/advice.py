"""Recommended limits, the changes from the configured quotas, and the clients that the limits would throttle."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType, Resolution, spelled
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.metrics.kafka.system_users import SYSTEM_USERS
from quotascope.pages.words import percent
from quotascope.quotas import Entity, QuotaSet, RuleChange, difference, merged, overruling_rules, unnamed

from ..losses import MOST_MISSING, Losses
from ..releases import Followed
from .coverage import Coverage, Logged
from .need import Need
from .policy import Policy, limit_of, rounded_up, steps_of
from .protect import Protection

NOW: Final = "as configured"
RECOMMENDED: Final = "recommended"
"""Name of the candidate of recommended limits; `NOW` is the candidate of present quotas."""
_SYSTEM: Final = re.compile(SYSTEM_USERS, re.DOTALL)
_KINDS: Final = {kind.label: kind for kind in QuotaType}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """A limit for one entity; every broker enforces it separately."""

    entity: QuotaEntity
    kind: QuotaType
    limit: float
    """Limit in bytes/s, percent of one thread, or mutations/s; with headroom, rounded up to three digits."""
    lowest: float
    """Lowest limit that keeps the share, before headroom."""
    broker: str
    """Broker that needs the highest limit."""
    hour: int | None
    """Hour of the week that needs the highest limit; None if hours are not looked at, or the lowest limit is enough."""
    requests: int
    """Number of requests that such a quota checks, on all brokers."""
    unsized: int = 0
    """Number of these requests with an unknown size, which may need a higher limit."""

    @property
    def key(self) -> str:
        """Configuration key of the limit."""
        return self.kind.quota_key

    @property
    def names(self) -> tuple[str | None, str | None]:
        """User and client id of the entity; None for a name that it does not have."""
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
    """Limit that would apply to the client."""
    share: float
    """Part of its active time in which it would be throttled."""
    muted_ms: int
    longest_ms: int
    """Longest throttle time of a request."""
    muted_now_ms: int | None
    """Muted time under the quotas as configured; None if they are unknown."""
    held_back: bool = False
    """True if requests were throttled while logged: without a quota the client would have sent more."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Limits, and the consequences of setting them. None of them was applied."""

    source: str
    """Path of the history."""
    coverage: Coverage
    """Extent of the history."""
    policy: Policy
    kafka: Followed
    """Release that throttle times follow."""
    configured: QuotaSet | None
    """Quotas as configured; None if they are unknown."""
    recommended: Sequence[Recommendation]
    hits: Sequence[Hit]
    """Clients that would be throttled, the longest first."""
    losses: Losses = field(default_factory=Losses)
    """Losses of the history."""
    protection: Protection | None = None
    """Effect of the limits on other clients; None if the limits are the lowest that keep a share."""
    left_out: Sequence[str] = ()
    """Reasons why some entities have no limit, one sentence each."""

    @property
    def span_ms(self) -> tuple[int, int]:
        """Times of the history's first and last decision: ms since 1970."""
        return self.coverage.span_ms

    @property
    def held_back(self) -> int:
        """Number of limits of entities that were throttled while the log was written."""
        return sum(self.logged(recommendation).throttled > 0 for recommendation in self.recommended)

    def logged(self, recommendation: Recommendation) -> Logged:
        """Return the counts of the requests of a limit's entity."""
        return self.coverage.of(recommendation.entity)

    def configured_of(self, recommendation: Recommendation) -> float | None:
        """Return the configured quota of a limit's entity and key; None without one, or if quotas are unknown."""
        quotas = QuotaSet() if self.configured is None else self.configured
        return quotas.get(recommendation.entity, {}).get(recommendation.key)

    def applies(self, recommendation: Recommendation) -> Resolution | None:
        """
        Return the configured rule that decides today for the clients of a limit's entity.

        The rule is for clients that no rule names. It is None without a rule, or if quotas are unknown.
        """
        if self.configured is None:
            return None
        table, unnamed_client = self._configured_tables[recommendation.kind]
        user, client_id = (unnamed_client if name is None else name for name in recommendation.names)
        decision = table.decide(user, client_id)
        return None if decision.entity is None else decision

    @cached_property
    def _configured_tables(self) -> Mapping[QuotaType, tuple[RuleTable, str]]:
        """Configured rules by quota type, and a name that no rule of the type has."""
        tables = (self.configured or QuotaSet()).tables()
        return {kind: (table, unnamed(table)) for kind, table in tables.items()}

    def state(self, value: float | None) -> str:
        """
        Return the state of a configured quota (`configured_of`) as a word for programs.

        It is "unknown" if quotas are unknown, and otherwise "set", "unlimited" if it is infinite, or "no rule".
        """
        if self.configured is None:
            return "unknown"
        if value == math.inf:
            return "unlimited"
        return "no rule" if value is None else "set"

    @property
    def target(self) -> QuotaSet:
        """Quotas after the recommended changes."""
        return target(self.configured, self.recommended)

    @property
    def changes(self) -> tuple[RuleChange, ...]:
        """Changes from the configured quotas to the recommended ones; quotas of other entities stay as they are."""
        return difference(self.configured or QuotaSet(), self.target)

    @property
    def commanded(self) -> tuple[RuleChange, ...]:
        """Changes that may become commands: not of entities that lack too many requests."""
        refused = {recommendation.entity for recommendation in self.refused}
        return tuple(change for change in self.changes if change.entity not in refused)

    @property
    def refused(self) -> Sequence[Recommendation]:
        """Limits of entities that lack too many requests for a command."""
        return [recommendation for recommendation in self.recommended if self.losses.too_many(*recommendation.names)]

    @property
    def refusals(self) -> Sequence[str]:
        """Reasons why limits become no commands, one sentence for each entity."""
        shares = {recommendation.names: self.losses.missing(*recommendation.names) for recommendation in self.refused}
        reasons = [
            f"{spelled(*names)}: the log lacks {percent(share)} of its requests, and no command is made of "
            f"more than {percent(MOST_MISSING)}"
            for names, share in shares.items()
        ]
        return [*self.left_out, *reasons]


def recommendations(needs: Iterable[Need], policy: Policy) -> list[Recommendation]:
    """
    Return a limit for each entity and quota type, which is the same for all brokers, sorted by names.

    It is the highest need on any broker, plus the headroom, and at least the floor.
    """
    grouped: dict[tuple[QuotaEntity, QuotaType], list[Need]] = {}
    for need in needs:
        grouped.setdefault((need.entity, need.kind), []).append(need)
    limits: list[Recommendation] = []
    for (entity, kind), on_brokers in grouped.items():
        highest = max(on_brokers, key=lambda need: need.steps)
        steps = math.ceil(round(highest.steps * (1 + policy.headroom), 6))
        floor = steps_of(kind, policy.floors[kind]) if kind in policy.floors else 1
        limits.append(
            Recommendation(
                entity=entity,
                kind=kind,
                limit=limit_of(kind, rounded_up(max(steps, floor))),
                lowest=limit_of(kind, highest.steps),
                broker=highest.broker,
                hour=highest.hour,
                requests=sum(need.requests for need in on_brokers),
                unsized=sum(need.unsized for need in on_brokers),
            )
        )
    types = list(QuotaType)
    return sorted(limits, key=lambda limit: (*(name or "" for name in limit.names), types.index(limit.kind)))


def without_system_users(
    limits: Iterable[Recommendation], brokers: Container[QuotaEntity]
) -> tuple[list[Recommendation], list[str]]:
    """
    Leave out limits of entities that the platform itself uses: if they are throttled, all clients wait.

    Return the remaining limits, and the reasons for leaving out the others.
    """
    remaining: list[Recommendation] = []
    reasons: dict[str, str] = {}
    for limit in limits:
        names = spelled(*limit.names)
        if limit.entity in brokers:
            reasons[names] = f"{names}: brokers send requests to each other as it"
        elif any(name is not None and _SYSTEM.fullmatch(name) for name in limit.names):
            reasons[names] = f"{names}: the platform's own programs have such names"
        else:
            remaining.append(limit)
    return remaining, [*reasons.values()]


def without_overruled(
    configured: QuotaSet | None, limits: Sequence[Recommendation]
) -> tuple[list[Recommendation], list[str]]:
    """
    Leave out limits that would apply to no client, because other rules decide for all clients of the entity.

    Return the remaining limits, and the reasons for leaving out the others.
    """
    overruling = {kind: overruling_rules(table) for kind, table in target(configured, limits).tables().items()}
    remaining: list[Recommendation] = []
    reasons: list[str] = []
    for limit in limits:
        overruling_rule = overruling[limit.kind].get(limit.entity)
        if overruling_rule is None:
            remaining.append(limit)
        else:
            reasons.append(
                f"{spelled(*limit.names)}, {limit.key}: overruled by {overruling_rule.rule} for every client"
            )
    return remaining, reasons


def protecting(results: pa.Table, policy: Policy, protection: Protection) -> list[Recommendation]:
    """
    Return the level that a search found as a limit for every entity that it throttles, sorted by names.

    `results` are those of a replay under that level (`quotascope.pipeline.replay.RESULTS`).
    """
    rows: dict[QuotaEntity, list[Mapping[str, Any]]] = {}
    for row in results.to_pylist():
        names = {name: row[name] for name in policy.shape.names}
        rows.setdefault(QuotaEntity(**names), []).append(row)
    broker = max(protection.waits, key=lambda wait: wait[1] or 0.0)[0].broker
    limits = [
        Recommendation(
            entity=entity,
            kind=QuotaType.REQUEST,
            limit=protection.level or math.inf,
            lowest=protection.level or math.inf,
            broker=broker,
            hour=None,
            requests=sum(row["requests"] for row in of_entity),
        )
        for entity, of_entity in rows.items()
        if any(row["throttled_requests"] for row in of_entity)
    ]
    return sorted(limits, key=lambda limit: tuple(name or "" for name in limit.names))


def target(configured: QuotaSet | None, limits: Iterable[Recommendation]) -> QuotaSet:
    """Return the configured quotas, overridden by the recommended ones."""
    quotas: dict[Entity, dict[str, float]] = {}
    for limit in limits:
        quotas.setdefault(limit.entity, {})[limit.key] = limit.limit
    return merged(configured or QuotaSet(), QuotaSet(quotas))


def hits(results: pa.Table, *, configured_known: bool = True) -> list[Hit]:
    """
    Return the clients that are throttled, from a replay of the candidates (`quotascope.pipeline.replay.RESULTS`).

    Args:
        results: results of the recommended limits, and of the configured ones if these are known.
        configured_known: whether the configured limits are known.

    """

    def key(row: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the client and the quota type of a row, which the rows of both candidates share."""
        return row["user"], row["client_id"], row["quota_type"]

    rows = results.to_pylist()
    muted_ms_now = {key(row): row["muted_ms"] for row in rows if row["candidate"] == NOW}
    throttled = [
        Hit(
            user=row["user"],
            client_id=row["client_id"],
            kind=_KINDS[row["quota_type"]],
            limit=row["limit"],
            share=row["throttled_share"],
            muted_ms=row["muted_ms"],
            longest_ms=row["longest_throttle_ms"],
            muted_now_ms=muted_ms_now.get(key(row), 0) if configured_known else None,
            held_back=(row["held_back_requests"] or 0) > 0,
        )
        for row in rows
        if row["candidate"] == RECOMMENDED and row["throttled_requests"]
    ]
    return sorted(throttled, key=lambda hit: (-hit.muted_ms, hit.user, hit.client_id))
