"""What teams use over the whole cluster, and how much of a broker is promised: parts of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog.teams import Team
from quotascope.metrics.kafka.entities import QuotaType

from .layout import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class TeamSums:
    """
    Sums over the entities of each team on all nodes, whether they are shown one by one or not.

    Sums are by place in ``names``, and NaN where there is nothing to add up. Usage and throttled entities that are
    unknown are left out: the sum is then the least that it can be, as ``usage_complete`` and ``throttled_complete``
    say. A limit that is unknown leaves no sum.
    """

    teams: tuple[Team, ...]
    """The teams as they are configured."""
    names: tuple[str, ...]
    """Names of the teams, then the names for no team and for an unknown one."""
    usage: Mapping[QuotaType, Floats]
    """The sum of the known usages, in the units of ``Entity.limit``."""
    usage_complete: Mapping[QuotaType, NDArray[np.bool_]]
    """
    False where the usage of an entity of the team is unknown on a node, or an entity of an unknown team may be of it.
    """
    allowed: Mapping[QuotaType, Floats]
    """
    The sum of the limits of all entities on all brokers; NaN where an entity is unlimited, or its limit is unknown.
    """
    allowed_known: Mapping[QuotaType, Floats]
    """The sum of the limits that are known, on the brokers that are known to enforce them; NaN as ``allowed``."""
    allowed_complete: Mapping[QuotaType, NDArray[np.bool_]]
    """False where limits are missing from ``allowed_known``, or an entity of an unknown team may be of the team."""
    stranded: Mapping[QuotaType, Floats]
    """
    The part of the limits that holds on brokers without the entity, which no traffic of the last hour could use: the
    limits of all entities on the brokers that would show them and do not. NaN without an entity under a limit, while no
    broker is certain to show all entities, and for controller mutations, which one node limits.
    """
    stranded_complete: Mapping[QuotaType, NDArray[np.bool_]]
    """False where some limits or brokers are unknown, so that ``stranded`` is the least that it can be."""
    fairness: Mapping[QuotaType, Floats]
    """
    Jain's index of the team's usage over all brokers: 1 if all have the same, 1 / brokers if one has all. NaN for
    fewer than two brokers, without usage, where some of the usage or a broker is unknown, and for controller mutations.
    """
    unlimited: Mapping[QuotaType, Floats]
    """The number of entities that are known to be unlimited."""
    throttled: Mapping[QuotaType, Floats]
    """The number of entities that are known to be throttled by this quota on a node."""
    throttled_complete: Mapping[QuotaType, NDArray[np.bool_]]
    """True where ``throttled`` counts all of them, in the same form as ``usage_complete``."""
    entities: Floats
    """The number of users and client-ids, each counted once for all nodes and quota types."""

    budgets: Mapping[QuotaType, Floats]
    """Agreed usage, NaN for a team without a budget."""
    bytes: Mapping[QuotaType, Floats] = field(default_factory=dict)
    """Bytes since the exporter began to count, of quota types of bytes; empty where nothing is counted."""
    seen_seconds: float | None = None
    """Seconds of that time in which all brokers were read; None where nothing is counted."""

    def budget_ratio(self, kind: QuotaType) -> Floats:
        """Return usage divided by budget, which is a lower bound where the usage is one; NaN if either is missing."""
        return self.usage[kind] / self.budgets[kind]


class CapacityOrigin(StrEnum):
    """The origin of the figure for a broker's capacity."""

    CONFIGURED = "configured"
    OBSERVED = "observed"
    """The highest sum of usage of its entities while its request handlers were idle enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sold:
    """How much of a broker its limits promise to the entities that are on it."""

    limits: float
    """The sum of their limits, in the units of ``Entity.limit``; entities without a limit are not in it."""
    capacity: float
    origin: CapacityOrigin

    @property
    def ratio(self) -> float:
        """Sum of the limits divided by capacity."""
        return self.limits / self.capacity


SoldBy: TypeAlias = Mapping[tuple[QuotaType, str], Sold]
"""What is sold, by quota type and broker."""
