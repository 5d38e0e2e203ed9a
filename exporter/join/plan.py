"""Where in a table the numbers of each entity are, and which limit it is under: worked out once for a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Final

from quotascope.metrics import QuotaType

from ..beans import BeanTable, Layout
from ..limits import Limits
from ..mapping import Meaning
from ..snapshot import Entity, EntityUsage
from .interpretation import CallbackTags, Tags
from .standing import Standing

NOWHERE: Final = -1
"""The place of a number that is not in the table; a NaN is kept there."""


@dataclass(slots=True, kw_only=True)
class Places:
    """One entity, and the places of its numbers."""

    entity: Entity
    tags: Tags
    divisor: float
    """From Kafka's unit of usage to ours."""
    standing: Standing
    usage: int = NOWHERE
    throttle_time: int = NOWHERE
    unthrottled: float | None = None
    """The throttle time where no number stands for it: 0 where the node measures it, None where it is unknown."""
    more: dict[Meaning, int] = field(default_factory=dict)
    """Numbers that only some quota types or only our own engine have."""
    last: EntityUsage | None = None
    """What it used when that was last asked."""


@dataclass(slots=True, kw_only=True)
class CallbackPlaces:
    """The places of the numbers of one entity of a custom quota callback."""

    usage: int = NOWHERE
    throttle_time: int = NOWHERE
    unthrottled: float | None = None
    """As of ``Places``."""


@dataclass(slots=True, kw_only=True)
class NodePlaces:
    """The places of what a node says of itself."""

    delay_queue_size: dict[QuotaType, int] = field(default_factory=dict)
    exempt_request_time: int = NOWHERE
    active_controller: int = NOWHERE
    started_at: int = NOWHERE
    more: dict[Meaning, dict[str, int]] = field(default_factory=dict)
    """By what else they say, and of which request, listener, address or direction."""


@dataclass(slots=True, kw_only=True, eq=False)
class Plan:
    """All that can be known of a node's table before its numbers."""

    node_id: str
    layout: Layout
    limits: Limits | None
    """None when unknown."""
    entities: dict[Tags, Places] = field(default_factory=dict)
    callbacks: dict[CallbackTags, CallbackPlaces] = field(default_factory=dict)
    node: NodePlaces = field(default_factory=NodePlaces)
    doubled: bool = False
    """Whether two columns say the same of one entity, by two spellings of its name."""

    def serves(self, limits: Limits | None) -> bool:
        """Whether these limits differ from the plan's own in nothing but when they were read."""
        mine = self.limits
        if limits is mine:
            return True
        if limits is None or mine is None:
            return False
        return limits.rules == mine.rules and limits.nodes == mine.nodes


@dataclass(frozen=True, slots=True)
class Numbers:
    """One read of one node, with the plan to find one's way in it."""

    plan: Plan
    values: Sequence[float]
    """The table's numbers, then a NaN."""

    @classmethod
    def read(cls, plan: Plan, table: BeanTable) -> Numbers:
        """The numbers of a table that has the plan's layout."""
        return cls(plan, [*table.values, nan])

    def of(self, places: Places | CallbackPlaces) -> tuple[float, float]:
        """Usage and throttle time in Kafka's units, NaN where there is none."""
        return self.values[places.usage], self.values[places.throttle_time]

    def of_node(self, meaning: Meaning) -> Mapping[str, float]:
        """What the node says of its requests, listeners, addresses or directions in Kafka's units, NaN where it says so."""
        places = self.plan.node.more.get(meaning, {})
        return {about: self.values[place] for about, place in places.items()}
