"""One quota entity on one node, and what it used."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from math import inf, isfinite

from quotascope.metrics import QuotaType, Resolution


class ThrottleCause(StrEnum):
    """Which quota a throttle comes from, as far as the evidence goes."""

    OWN = "own"
    CONTROLLER_MUTATION = "controller_mutation"
    UNKNOWN = "unknown"
    """A request throttle without evidence for either."""


class LimitState(StrEnum):
    """Whether an entity has a limit: the three are never shown alike."""

    LIMITED = "limited"
    UNLIMITED = "unlimited"
    """The configured quotas are known, and none of them applies."""
    UNKNOWN = "unknown"
    """The configured quotas are not known, or a custom quota callback decides instead of them."""


_serials = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """
    A quota entity as one node sees it, and the limit it is under.

    The same object from one snapshot to the next, as long as neither the beans
    nor the limits change: whatever was derived from it may be kept under its
    identity.
    """

    broker: str
    """Node id of the broker or controller."""
    quota_type: QuotaType
    user: str
    """Decoded user name; empty when the quota does not distinguish users."""
    client_id: str
    """Client-id; empty when the quota does not distinguish clients."""
    resolution: Resolution | None = None
    """The configured rule that decides, ``NO_RULE`` when none applies, None when the rules are unknown."""
    limit: float | None = None
    """bytes/s, threads or mutations/s by quota type; None when unlimited or unknown, as ``limit_state`` says."""
    burst_tokens: float | None = None
    """Controller mutations under a limit only: size of the bucket."""
    tags: tuple[str, ...] | None = None
    """Of a custom quota callback instead of user and client-id: values in the order of the callback's labels. None for Kafka's own quotas."""
    stands_in: bool = False
    """Whether it stands for entities that are folded, to keep the number of series in bounds."""
    serial: int = field(default_factory=_serials.__next__, compare=False, repr=False)
    """Which entity it is, the same when it is made again under another limit: what is kept of it by row is found by this."""

    @property
    def limit_state(self) -> LimitState:
        """What a missing ``limit`` means."""
        if self.limit is not None:
            return LimitState.LIMITED
        return LimitState.UNKNOWN if self.resolution is None else LimitState.UNLIMITED


@dataclass(slots=True, kw_only=True)
class EntityUsage:
    """
    What one quota entity used on one node: a row of ``Columns``, which say the units, with None for NaN.

    Not frozen, because many of them are made; never changed once made.
    """

    entity: Entity
    usage: float | None = None
    throttle_time_seconds: float | None = 0.0
    """
    Average throttle of the last 30 to 60 s, 0 when there was none.

    None where no throttle is measured: the agent's rules or its dialect leave the column out, or controller mutations under
    KRaft, of which the broker that forwards the request counts the delay as request throttle.
    """
    tokens: float | None = None
    cause: ThrottleCause | None = None
    """None when the entity was not throttled."""
    throttled_seconds_total: float | None = None
    throttled_requests_total: float | None = None
    refused_mutations_total: float | None = None
    reported_utilization: float | None = None
    detailed: bool = True

    @property
    def throttled(self) -> bool:
        """Whether it is known that it was throttled lately."""
        return (self.throttle_time_seconds or 0.0) > 0

    @property
    def utilization(self) -> float | None:
        """Usage divided by limit, None without either; negative when an unrecorded fetch made the usage so."""
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
        """
        The larger of the parts of the limit and of the burst that are used; at 1 and above it is throttled or refused. None without either.

        Unlike ``utilization``, which is a metric, it is infinite for any usage of a limit of 0 (`part_used`).
        """
        parts = part_used(self.usage, self.entity.limit), self.burst_used
        return max((part for part in parts if part is not None), default=None)


def part_used(usage: float | None, limit: float | None) -> float | None:
    """
    Usage divided by limit; infinite for any usage of a limit of 0, which violates it.

    None without either, for an infinite limit, and for no usage of a limit of 0.
    """
    if usage is None or limit is None or limit == inf:
        return None
    if limit == 0:
        return inf if usage > 0 else None
    return usage / limit


def finite(value: float | None) -> float | None:
    """A number of JSON, which has neither infinity nor NaN: None for these."""
    return value if value is not None and isfinite(value) else None
