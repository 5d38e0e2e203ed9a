"""Limits recommended from the samples of a Prometheus server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf
from typing import Final

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType, spelled
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pages.words import percent, seconds
from quotascope.quotas import QuotaSet, RuleChange, difference, unnamed

from ..losses import MOST_MISSING
from ..recommend.advice import Recommendation, recommendations, target, without_overruled, without_system_users
from ..recommend.coverage import ShortLog
from ..recommend.need import Need
from ..recommend.policy import Policy, RuleShape, steps_of
from ..table import Progress
from .evidence import SEEN_BY_S, Entity, Evidence, Sight, needs_of, worst
from .past import NoSamples, Past

LEAST_GAP: Final = 0.01
"""Part of the period without samples from which on figures are marked as lower bounds."""
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The limit of an entity today."""

    state: str
    """`set`, `unlimited`, `no rule`, or `unknown`."""
    limit: float | None = None
    """Limit in Kafka's unit, infinite if the entity is unlimited; None without a rule, or if it is unknown."""
    rule: str | None = None
    """The rule that sets the limit, with its level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastLimit:
    """The recommended limit of an entity and quota type, and the evidence for it."""

    entity: QuotaEntity
    kind: QuotaType
    recommendation: Recommendation | None
    """The recommended limit, which is the same for all nodes; None if no sample shows a need."""
    evidence: Evidence
    """Largest value of every figure on any node."""
    node: str
    """Node with the highest need."""
    interval_s: float
    """Longest scrape interval of the entity's nodes, in seconds."""
    sight: Sight
    coverage: float
    """Part of the period with samples, from 0 to 1, of the entity's node with the fewest."""
    present: Present

    @property
    def held_back(self) -> bool:
        """True if the entity was throttled in the period: without the quota it would have used more."""
        return self.evidence.throttled_s > 0

    @property
    def throttled_share(self) -> float:
        """Throttled part of the active time, from 0 to 1."""
        return min(1.0, self.evidence.throttled_s / self.evidence.active_s) if self.evidence.active_s else 0.0

    @property
    def is_lower_bound(self) -> bool:
        """True if the limit may be too low: samples are missing, or the entity was held back."""
        return self.held_back or self.coverage < 1 - LEAST_GAP

    @property
    def refusal(self) -> str | None:
        """The reason why the recommendation has no command."""
        if self.sight in {Sight.BURSTS, Sight.UNSEEN}:
            return f"a scrape every {self.interval_s:.0f} s does not see its bursts: scrape every {SEEN_BY_S:.0f} s"
        if self.coverage < 1 - MOST_MISSING:
            return f"{percent(1 - self.coverage)} of the period have no samples of its node"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAdvice:
    """Limits that are recommended from samples. None of them was applied."""

    past: Past
    policy: Policy
    shape: RuleShape | None
    """Entities that were added up; None for the entities that brokers measure."""
    configured: QuotaSet | None
    """Quotas as configured; None if they are unknown."""
    limits: Sequence[PastLimit]
    mutations: Sequence[tuple[QuotaEntity, float]]
    """Entities with controller mutations, whose limits are unknown, and their active seconds."""
    idle: int
    """Number of pairs of entity and quota type without usage."""
    left_out: Sequence[str] = field(default=())
    """Reasons why other entities have no limit, one sentence each."""

    @property
    def refused(self) -> Sequence[PastLimit]:
        """Limits that have no command."""
        return [limit for limit in self.limits if limit.refusal is not None]

    @property
    def target(self) -> QuotaSet:
        """Configured quotas, overridden by all limits that have a command."""
        return self.target_of([limit for limit in self.limits if limit.refusal is None])

    @property
    def changes(self) -> tuple[RuleChange, ...]:
        """Changes from the configured quotas to the recommended ones."""
        return self._changes(self.limits)

    @property
    def commanded(self) -> tuple[RuleChange, ...]:
        """Changes that have a command."""
        return self._changes([limit for limit in self.limits if limit.refusal is None])

    @property
    def refusals(self) -> Sequence[str]:
        """Reasons why limits have no command, or entities no limit, one sentence each."""
        named = (f"{name_of(limit.entity)}, {limit.kind.quota_key}: {limit.refusal}" for limit in self.refused)
        return [*self.left_out, *named]

    def target_of(self, limits: Sequence[PastLimit]) -> QuotaSet:
        """Return the configured quotas, overridden by limits."""
        return target(self.configured, [limit.recommendation for limit in limits if limit.recommendation is not None])

    def _changes(self, limits: Sequence[PastLimit]) -> tuple[RuleChange, ...]:
        """Return the changes from the configured quotas to some limits."""
        return difference(self.configured or QuotaSet(), self.target_of(limits))


def name_of(entity: QuotaEntity) -> str:
    """Return the names of an entity as one line."""
    return spelled(entity.user, entity.client_id)


def advise(  # noqa: PLR0913 - each is named
    past: Past,
    policy: Policy,
    *,
    shape: RuleShape | None = None,
    windows: WindowConfig | None = None,
    configured: QuotaSet | None = None,
    present_limits: Mapping[Entity, Present] | None = None,
    progress: Sequence[Progress | None] = (),
) -> PastAdvice:
    """
    Return the lowest limits that keep a policy, by the samples of a server. Nothing is changed.

    Args:
        past: samples.
        policy: policy that the limits keep.
        shape: entities that are added up on each node; None for the entities that brokers measure.
        windows: windows of the cluster's client quotas; Kafka's defaults if they are left out.
        configured: quotas as configured, if they are known.
        present_limits: limits of today as an exporter reports them, if `configured` is unknown.
        progress: two functions that are called with the number of queries that are done, and of all: for rates, and for
            throttle times.

    Raises:
        NoSamples: no client was measured in the period.
        ShortLog: the period is shorter than a day, and the policy does not allow that.

    """
    if past.seconds < _DAY_S and not policy.short_log:
        raise ShortLog(
            f"{past.address} has samples of {seconds(past.seconds)} only: limits should not be made of less than a "
            "day; --short-log allows it"
        )
    evidence_by_entity = needs_of(past, policy.share, by_hour=policy.by_hour, shape=shape, progress=progress)
    if not evidence_by_entity:
        raise NoSamples(
            f"{past.address}: no client was measured in this period. Brokers measure only where a quota of the type is "
            "configured"
        )
    windows = windows or WindowConfig()
    candidates: dict[tuple[QuotaEntity, QuotaType], PastLimit] = {}
    mutations: list[tuple[QuotaEntity, float]] = []
    idle = 0
    recommended = {
        (recommendation.entity, recommendation.kind): recommendation
        for recommendation in recommendations(_needs(evidence_by_entity, policy), policy)
    }
    for (kind, user, client_id), nodes in evidence_by_entity.items():
        if kind not in policy.kinds or (user, client_id) == (None, None):
            continue
        entity = QuotaEntity(user, client_id)
        if kind is QuotaType.CONTROLLER_MUTATION:
            if active_s := sum(evidence.active_s for evidence in nodes.values()):
                mutations.append((entity, active_s))
            continue
        limit = _limit(past, entity, kind, nodes, windows, recommended.get((entity, kind)))
        if limit.recommendation is None and limit.sight is Sight.WHOLE:
            idle += 1
            continue
        candidates[entity, kind] = limit
    all_recommended = [limit.recommendation for limit in candidates.values() if limit.recommendation is not None]
    allowed, system_users = without_system_users(all_recommended, ())
    allowed, overruled = without_overruled(configured, allowed)
    allowed_keys = {(recommendation.entity, recommendation.kind) for recommendation in allowed}
    limits = []
    for key, limit in candidates.items():
        if limit.recommendation is None or key in allowed_keys:
            present = _present(limit.entity, limit.kind, shape, configured, present_limits or {})
            limits.append(replace(limit, present=present))
    types = list(QuotaType)
    limits.sort(key=lambda limit: (limit.entity.user or "", limit.entity.client_id or "", types.index(limit.kind)))
    return PastAdvice(
        past=past,
        policy=policy,
        shape=shape,
        configured=configured,
        limits=limits,
        mutations=mutations,
        idle=idle,
        left_out=(*system_users, *overruled),
    )


def _needs(evidence_by_entity: Mapping[Entity, Mapping[str, Evidence]], policy: Policy) -> Iterator[Need]:
    """Yield the need of every entity on every node; needs of mutations follow from no sample."""
    for (kind, user, client_id), nodes in evidence_by_entity.items():
        if kind is QuotaType.CONTROLLER_MUTATION or kind not in policy.kinds or (user, client_id) == (None, None):
            continue
        for node, evidence in nodes.items():
            if evidence.need > 0:
                steps = steps_of(kind, evidence.need)
                entity = QuotaEntity(user, client_id)
                yield Need(broker=node, entity=entity, kind=kind, steps=steps, hour=None, requests=0, unsized=0)


def _limit(
    past: Past,
    entity: QuotaEntity,
    kind: QuotaType,
    nodes: Mapping[str, Evidence],
    windows: WindowConfig,
    recommendation: Recommendation | None,
) -> PastLimit:
    """Return the limit of an entity from its evidence by node; the limit of today is still unknown."""
    measured = {node: evidence for node, evidence in nodes.items() if evidence.seen_s or evidence.active_s}
    interval_s = max((past.interval_of(node) for node in measured), default=past.interval_s)
    sights = {evidence.sight(past.interval_of(node), windows) for node, evidence in measured.items()}
    return PastLimit(
        entity=entity,
        kind=kind,
        recommendation=recommendation,
        evidence=reduce(Evidence.maximum, nodes.values(), Evidence()),
        node=max(nodes, key=lambda node: nodes[node].need),
        interval_s=interval_s,
        sight=worst(sights),
        coverage=min((past.coverage(name) for name in measured), default=0.0),
        present=Present(state="unknown"),
    )


def _present(
    entity: QuotaEntity,
    kind: QuotaType,
    shape: RuleShape | None,
    configured: QuotaSet | None,
    present_limits: Mapping[Entity, Present],
) -> Present:
    """Return the limit of today: by Kafka's precedence if quotas are known, else as an exporter reports it."""
    user = entity.user if isinstance(entity.user, str) else None
    client_id = entity.client_id if isinstance(entity.client_id, str) else None
    if configured is None:
        return present_limits.get((kind, user, client_id), Present(state="unknown"))
    table = configured.tables()[kind]
    if shape is None:
        decision = table.limit(user or "", client_id or "")
    else:
        other_name = unnamed(table)  # a sum stands for clients with any other name that no rule has
        decision = table.decide(other_name if user is None else user, other_name if client_id is None else client_id)
    if decision is None or decision.entity is None:
        return Present(state="no rule")
    bound = inf if decision.bound is None else decision.bound
    return Present(state="unlimited" if bound == inf else "set", limit=bound, rule=decision.entity.rule)
