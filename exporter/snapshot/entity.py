"""A quota entity on a node, and its usage."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from math import inf, isfinite

from quotascope.metrics.kafka.entities import QuotaType, Resolution


class ThrottleCause(StrEnum):
    """The quota that a throttle comes from, as far as the evidence goes."""

    OWN = "own"
    CONTROLLER_MUTATION = "controller_mutation"
    UNKNOWN = "unknown"
    """A request throttle without evidence for either."""


class LimitState(StrEnum):
    """The presence of a limit: the three states are never shown alike."""

    LIMITED = "limited"
    UNLIMITED = "unlimited"
    """The configured quotas are known, and none of them applies."""
    UNKNOWN = "unknown"
    """The configured quotas are not known, or a custom quota callback decides instead of them."""


_serials = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """
    A quota entity on a node, and its limit.

    Snapshots share the object as long as neither the beans nor the limits change, so values that depend on the entity
    alone may be cached by it.
    """

    broker: str
    """Node id of the broker or controller."""
    quota_type: QuotaType
    user: str
    """Decoded user name; empty when the quota does not distinguish users."""
    client_id: str
    """Client-id; empty when the quota does not distinguish clients."""
    resolution: Resolution | None = None
    """The configured rule that sets the limit; ``NO_RULE`` if none applies, None if the rules are unknown."""
    limit: float | None = None
    """bytes/s, threads or mutations/s by quota type; None when unlimited or unknown, as ``limit_state`` says."""
    burst_tokens: float | None = None
    """Controller mutations under a limit only: size of the bucket."""
    tags: tuple[str, ...] | None = None
    """
    Of a custom quota callback instead of user and client-id: values in the order of the callback's labels. None for
    Kafka's own quotas.
    """
    stands_in: bool = False
    """True for an entity that stands for folded entities, to keep the number of series in bounds."""
    serial: int = field(default_factory=_serials.__next__, compare=False, repr=False)
    """Identity of the entity. It stays when the entity is made again under another limit, so state is kept by it."""

    @property
    def limit_state(self) -> LimitState:
        """The state of the limit: whether it is known, unlimited or unknown."""
        if self.limit is not None:
            return LimitState.LIMITED
        return LimitState.UNKNOWN if self.resolution is None else LimitState.UNLIMITED


@dataclass(slots=True, kw_only=True)
class EntityUsage:
    """
    The usage of a quota entity on a node: a row of ``Columns``, which has the units, with None instead of NaN.

    It is never changed. It is not frozen, since a frozen object takes longer to make.
    """

    entity: Entity
    usage: float | None = None
    throttle_time_seconds: float | None = 0.0
    """
    Average throttle time of the last 30 to 60 s, 0 for no throttle.

    None if no throttle is measured: the agent's rules or its dialect leave the column out, or the entity is of
    controller mutations under KRaft and no request throttle is known to refer to it (``decided_by``).
    """
    tokens: float | None = None
    cause: ThrottleCause | None = None
    """None when the entity was not throttled."""
    decided_by: Entity | None = None
    """
    The entity of controller mutations whose quota causes this request throttle; its throttle time is at least as long.

    If its bucket is not measured, its broker is empty, and its rule and limit follow from the configured quotas. None
    for any other throttle, and if the entity is unknown.
    """
    reported_utilization: float | None = None
    detailed: bool = True

    @property
    def throttled(self) -> bool:
        """Return whether the entity is known to have been throttled lately."""
        return (self.throttle_time_seconds or 0.0) > 0

    @property
    def referring(self) -> bool:
        """Return whether a quota of controller mutations throttles the entity instead of its own."""
        return self.cause is ThrottleCause.CONTROLLER_MUTATION

    @property
    def held_back(self) -> bool:
        """Return whether its own limit throttles the entity, so that its usage is a lower bound of its demand."""
        limit = self.entity.limit
        if limit is None or not isfinite(limit) or self.cause is ThrottleCause.CONTROLLER_MUTATION:
            return False
        if self.throttle_time_seconds is None and self.tokens is None:
            return self.usage is not None and self.usage >= limit
        return self.throttled or (self.tokens or 0.0) < 0

    @property
    def utilization(self) -> float | None:
        """
        Usage divided by limit; None without usage or limit, and for a limit of 0.

        It is negative if Kafka reports a negative usage, as after an unrecorded fetch.
        """
        limit = self.entity.limit
        if self.usage is None or limit is None or limit <= 0:
            return None
        return self.usage / limit

    @property
    def burst_used(self) -> float | None:
        """1 - tokens / burst: 1 is an empty bucket, above 1 is debt. None without tokens."""
        burst = self.entity.burst_tokens
        if self.tokens is None or burst is None or burst <= 0:
            return None
        return 1 - self.tokens / burst

    @property
    def used(self) -> float | None:
        """The same as ``utilization``, but infinite for any usage under a limit of 0."""
        return part_used(self.usage, self.entity.limit)

    @property
    def pressure(self) -> float | None:
        """The larger of ``used`` and ``burst_used``; None without either. At 1 and above it is throttled or refused."""
        ratios = self.used, self.burst_used
        return max((ratio for ratio in ratios if ratio is not None), default=None)


def part_used(usage: float | None, limit: float | None) -> float | None:
    """
    Return usage divided by limit.

    It is infinite for any usage under a limit of 0, which violates the limit. It is None without usage or limit, for an
    infinite limit, and for no usage under a limit of 0.
    """
    if usage is None or limit is None or limit == inf:
        return None
    if limit == 0:
        return inf if usage > 0 else None
    return usage / limit


def finite(value: float | None) -> float | None:
    """Return a value that JSON can hold: None for infinity and NaN."""
    return value if value is not None and isfinite(value) else None
