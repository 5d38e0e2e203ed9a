"""From what entities need on each broker to one limit for all brokers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.quotas import Entity, QuotaSet

from .need import Need
from .policy import Policy
from .steps import limit_of, rounded_up, steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """A limit for one entity; every broker enforces it by itself."""

    entity: QuotaEntity
    kind: QuotaType
    limit: float
    """Bytes/s, percent of one thread, or mutations/s; with headroom, rounded up to three digits."""
    lowest: float
    """The lowest limit that keeps the share, before headroom."""
    broker: str
    """The broker that needs the most."""
    hour: int | None
    """The hour of the week that needs the most; None if seasons are not told apart, or any limit would do."""
    requests: int
    """On all brokers, those that such a quota checks."""

    @property
    def key(self) -> str:
        """The configuration key that sets it."""
        return self.kind.quota_key


def recommendations(needs: Iterable[Need], policy: Policy) -> list[Recommendation]:
    """One for each entity and quota type, in the order of names."""
    grouped: dict[tuple[QuotaEntity, QuotaType], list[Need]] = {}
    for need in needs:
        grouped.setdefault((need.entity, need.kind), []).append(need)
    made = [_recommendation(each, policy) for each in grouped.values()]
    return sorted(made, key=_in_order)


def quotas_of(made: Iterable[Recommendation]) -> QuotaSet:
    """The recommended limits as quotas."""
    quotas: dict[Entity, dict[str, float]] = {}
    for each in made:
        quotas.setdefault(each.entity, {})[each.key] = each.limit
    return QuotaSet(quotas)


def _recommendation(needs: Sequence[Need], policy: Policy) -> Recommendation:
    highest = max(needs, key=lambda need: need.steps)
    kind = highest.kind
    wanted = math.ceil(round(highest.steps * (1 + policy.headroom), 6))
    floor = steps_of(kind, policy.floors[kind]) if kind in policy.floors else 1
    return Recommendation(
        entity=highest.entity,
        kind=kind,
        limit=limit_of(kind, rounded_up(max(wanted, floor))),
        lowest=limit_of(kind, highest.steps),
        broker=highest.broker,
        hour=highest.hour,
        requests=sum(need.requests for need in needs),
    )


def _in_order(made: Recommendation) -> tuple[str, str, int]:
    names = (made.entity.user, made.entity.client_id)
    user, client_id = (name if isinstance(name, str) else "" for name in names)
    return user, client_id, list(QuotaType).index(made.kind)
