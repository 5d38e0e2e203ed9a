"""Where in a table the numbers of each entity are, and which limit it is under: worked out once for a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Final

from quotascope.metrics import QuotaType

from ..beans import BeanTable, Layout
from ..limits import Limits, NodeSettings
from ..mapping import USAGE, Meaning
from ..snapshot import Entity
from .interpretation import CallbackTags, Found, Interpreter, Tags
from .standing import NO_RULES, Standing, standing_of

NOWHERE: Final = -1
"""The place of a number that is not in the table; a NaN is kept there."""

_TYPES: Final = tuple(QuotaType)


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
    more: dict[Meaning, int] = field(default_factory=dict)
    """Numbers that only some quota types or only our own engine have."""


@dataclass(slots=True, kw_only=True)
class CallbackPlaces:
    """The places of the numbers of one entity of a custom quota callback."""

    usage: int = NOWHERE
    throttle_time: int = NOWHERE


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


class Planner:
    """Keeps the plan of one node for as long as its layout and limits stay the same."""

    def __init__(self, node_id: str) -> None:
        self._node_id = node_id
        self._interpreter = Interpreter()
        self._plan: Plan | None = None

    def sees_callback(self, layout: Layout) -> bool:
        """Whether a custom quota callback is at work, by the tags of beans."""
        return self._interpreter.sees_callback(layout)

    def plan(self, layout: Layout, limits: Limits | None) -> Plan:
        """The plan for a layout. Entities outlive a change of layout, but not one of limits."""
        plan = self._plan
        known: Mapping[Tags, Places] = {}
        if plan is not None and plan.serves(limits):
            plan.limits = limits
            if plan.layout is layout:
                return plan
            known = plan.entities
        self._plan = self._made(layout, limits, known)
        return self._plan

    def _made(
        self, layout: Layout, limits: Limits | None, known: Mapping[Tags, Places]
    ) -> Plan:
        plan = Plan(node_id=self._node_id, layout=layout, limits=limits)
        for place, found in enumerate(self._interpreter.found_in(layout)):
            if found is None:
                continue
            if found.callback is not None:
                _add_to_callback(plan, place, found.callback, found.attribute.meaning)
                continue
            if found.tags is None:
                _add_to_node(plan.node, place, found)
                continue
            places = plan.entities.get(found.tags)
            if places is None:
                places = _places(plan, found.tags, known.get(found.tags))
                plan.entities[found.tags] = places
            _add_to_entity(places, place, found.attribute.meaning)
        # In the order in which they are shown; for then nobody has to sort them at each collection.
        plan.entities = dict(sorted(plan.entities.items(), key=_in_order))
        return plan


def _in_order(item: tuple[Tags, Places]) -> tuple[int, str, str]:
    quota_type, user, client_id = item[0]
    return _TYPES.index(quota_type), user, client_id


def _places(plan: Plan, tags: Tags, known: Places | None) -> Places:
    return Places(
        entity=known.entity if known else _entity(plan, *tags),
        tags=tags,
        divisor=USAGE[tags[0]].divisor,
        standing=known.standing if known else standing_of(tags, plan.limits),
    )


def _entity(plan: Plan, quota_type: QuotaType, user: str, client_id: str) -> Entity:
    limits = plan.limits
    rules = NO_RULES if limits is None else limits.rules.get(quota_type, NO_RULES)
    resolution = rules.limit(user, client_id)
    limit = burst = None
    if resolution is not None and resolution.bound is not None:
        limit = resolution.bound / USAGE[quota_type].divisor
        if quota_type is QuotaType.CONTROLLER_MUTATION:
            burst = limit * _burst_seconds(plan)
    return Entity(
        broker=plan.node_id,
        quota_type=quota_type,
        user=user,
        client_id=client_id,
        resolution=resolution,
        limit=limit,
        burst_tokens=burst,
    )


def _burst_seconds(plan: Plan) -> float:
    # No Admin API tells the settings of a node that is only a controller; those of the brokers are the best guess.
    nodes = plan.limits.nodes if plan.limits else {}
    settings = nodes.get(plan.node_id) or next(iter(nodes.values()), NodeSettings())
    return settings.controller_quota_samples * settings.controller_quota_window_seconds


def _add_to_entity(places: Places, place: int, meaning: Meaning) -> None:
    if meaning is Meaning.USAGE:
        places.usage = place
    elif meaning is Meaning.THROTTLE_TIME:
        places.throttle_time = place
    else:
        places.more[meaning] = place


def _add_to_callback(
    plan: Plan, place: int, tags: CallbackTags, meaning: Meaning
) -> None:
    places = plan.callbacks.setdefault(tags, CallbackPlaces())
    if meaning is Meaning.USAGE:
        places.usage = place
    else:
        places.throttle_time = place


def _add_to_node(node: NodePlaces, place: int, found: Found) -> None:
    quota_type = found.attribute.quota_type
    match found.attribute.meaning:
        case Meaning.DELAY_QUEUE_SIZE if quota_type is not None:
            node.delay_queue_size[quota_type] = place
        case Meaning.EXEMPT_REQUEST_TIME:
            node.exempt_request_time = place
        case Meaning.ACTIVE_CONTROLLER:
            node.active_controller = place
        case Meaning.STARTED_AT:
            node.started_at = place
        case meaning:
            node.more.setdefault(meaning, {})[found.about] = place
