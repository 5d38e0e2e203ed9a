"""Limits recommended from the samples of a Prometheus server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """In Kafka's unit; infinite where it is unlimited."""
    rule: str | None = None
    """The rule that sets it, with its level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastLimit:
    """A limit of an entity, and what it is made of."""

    entity: QuotaEntity
    kind: QuotaType
    recommendation: Recommendation | None
    """The limit for all nodes; None where no sample shows a need."""
    evidence: Evidence
    """Figures of the node that needs most; times are of the node with most."""
    node: str
    interval_s: float
    """Longest scrape interval of its nodes."""
    sight: Sight
    coverage: float
    """Part of the period with samples of its nodes, from 0 to 1: that of the node with fewest."""
    present: Present

    @property
    def held_back(self) -> bool:
        """True if it was throttled in the period: without a quota it would have used more."""
        return self.evidence.throttled_s > 0

    @property
    def throttled_share(self) -> float:
        """Throttled part of its active time."""
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
    """Limits from the past. None of them was applied."""

    past: Past
    policy: Policy
    shape: RuleShape | None
    """Entities that were added up; None for those that brokers measure."""
    configured: QuotaSet | None
    """Quotas as configured; None if they are unknown."""
    limits: Sequence[PastLimit]
    mutations: Sequence[tuple[QuotaEntity, float]]
    """Entities that mutate controllers' partitions, with their active seconds: their limits are unknown."""
    idle: int
    """Number of entities and quota types without usage."""
    left_out: Sequence[str] = field(default=())

    @property
    def refused(self) -> Sequence[PastLimit]:
        """Limits of which no command is made."""
        return [limit for limit in self.limits if limit.refusal is not None]

    @property
    def target(self) -> QuotaSet:
        """Quotas after the changes that may become commands."""
        return self.target_of([limit for limit in self.limits if limit.refusal is None])

    @property
    def changes(self) -> tuple[RuleChange, ...]:
        """Changes from the configured quotas to the recommended ones."""
        return self._changes(self.limits)

    @property
    def commanded(self) -> tuple[RuleChange, ...]:
        """Changes that may become commands."""
        return self._changes([limit for limit in self.limits if limit.refusal is None])

    @property
    def refusals(self) -> Sequence[str]:
        """Reasons why limits become no commands, one sentence each."""
        named = (f"{name_of(limit.entity)}, {limit.kind.quota_key}: {limit.refusal}" for limit in self.refused)
        return [*self.left_out, *named]

    def target_of(self, limits: Sequence[PastLimit]) -> QuotaSet:
        """Return the configured quotas, overridden by limits."""
        return target(self.configured, [limit.recommendation for limit in limits if limit.recommendation is not None])

    def _changes(self, limits: Sequence[PastLimit]) -> tuple[RuleChange, ...]:
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
    Return the lowest limits that keep a policy, by the samples of a server. Changes nothing anywhere.

    Args:
        past: the samples.
        policy: the policy that limits keep.
        shape: entities that are added up on each node; None for those that brokers measure.
        windows: windows of the cluster's client quotas; Kafka's unless given.
        configured: quotas as configured, if they are known.
        present_limits: limits of today as an exporter shows them, where quotas are not known.
        progress: called with the number of queries that are done, and of all: for rates, and for throttle times.

    Raises:
        NoSamples: no client was measured in the period.
        ShortLog: it is less than a day, and the policy does not allow that.

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
    recommended = {(one.entity, one.kind): one for one in recommendations(_needs(evidence_by_entity, policy), policy)}
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
    numbers = [limit.recommendation for limit in candidates.values() if limit.recommendation is not None]
    allowed, of_system = without_system_users(numbers, ())
    allowed, overruled = without_overruled(configured, allowed)
    kept = {(one.entity, one.kind) for one in allowed}
    limits = [
        _with_present(limit, shape, configured, present_limits or {})
        for key, limit in candidates.items()
        if limit.recommendation is None or key in kept
    ]
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
        left_out=(*of_system, *overruled),
    )


def _needs(evidence_by_entity: Mapping[Entity, Mapping[str, Evidence]], policy: Policy) -> Iterator[Need]:
    """Yield what entities need on each node; limits of mutations are in no sample."""
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
    measured = {node: evidence for node, evidence in nodes.items() if evidence.seen_s or evidence.active_s}
    interval_s = max((past.interval_of(node) for node in measured), default=past.interval_s)
    sights = {evidence.sight(past.interval_of(node), windows) for node, evidence in measured.items()}
    evidence = Evidence()
    for of_node in nodes.values():
        evidence = evidence.most(of_node)
    node = max(nodes, key=lambda name: nodes[name].need)
    return PastLimit(
        entity=entity,
        kind=kind,
        recommendation=recommendation,
        evidence=evidence,
        node=node,
        interval_s=interval_s,
        sight=worst(sights),
        coverage=min((past.coverage(name) for name in measured), default=0.0),
        present=Present(state="unknown"),
    )


def _with_present(
    limit: PastLimit, shape: RuleShape | None, configured: QuotaSet | None, present_limits: Mapping[Entity, Present]
) -> PastLimit:
    """Return a limit with that of today, by Kafka's precedence or as an exporter shows it."""
    user, client_id = limit.entity.user, limit.entity.client_id
    names = (user if isinstance(user, str) else None, client_id if isinstance(client_id, str) else None)
    if configured is None:
        present = present_limits.get((limit.kind, *names), limit.present)
    else:
        table = configured.tables()[limit.kind]
        if shape is None:
            decision = table.limit(names[0] or "", names[1] or "")
        else:
            any_other = unnamed(table)
            decision = table.decide(*(any_other if name is None else name for name in names))
        if decision is None or decision.entity is None:
            present = Present(state="no rule")
        else:
            bound = inf if decision.bound is None else decision.bound
            state = "unlimited" if bound == inf else "set"
            present = Present(state=state, limit=bound, rule=decision.entity.rule)
    return replace(limit, present=present)
