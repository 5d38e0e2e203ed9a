"""Selects the quota entities that a view shows, and sorts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import NO_RULE, Level, QuotaType

from ..names import contains
from ..snapshot import CAUSES, TYPES, Columns, Floats, ThrottleCause, Usages
from ..snapshot.layout import node_order

_LEVELS: Final = list(Level)
_MUTATION_CAUSE: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
_Key: TypeAlias = NDArray[Any]


class Order(StrEnum):
    """The sort keys of entities: numbers from the greatest down, names and levels from the first up."""

    URGENCY = "urgency"
    """
    Throttled entities by throttle time; entities near their limit by utilization; entities with an unknown utilization;
    other entities by utilization; unlimited entities.
    """
    USED = "used"
    """Usage divided by limit."""
    DELAY = "delay"
    """Throttle time."""
    NAME = "name"
    """User, then client-id."""
    USAGE = "usage"
    """Amounts have the unit of their quota type: one type after the other."""
    LIMIT = "limit"
    """The limit, ordered as ``usage`` is."""
    TOKENS = "tokens"
    """The rest of the burst; the emptiest bucket first."""
    LEVEL = "level"
    """The place of the rule that decides among Kafka's eight."""
    TYPE = "type"
    BROKER = "broker"


class Show(StrEnum):
    """The entities that are shown."""

    LIMITED = "limited"
    """All entities but unlimited ones that are not throttled. A mutation quota may throttle an unlimited entity."""
    NEAR = "near"
    """Entities with a utilization at which the alert fires, and throttled entities."""
    THROTTLED = "throttled"
    ALL = "all"
    """All entities, those without a limit as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A choice of entities and their order."""

    near_limit: float
    """The utilization from which on an entity counts as close to its limit (`SharedThresholds.near_limit`)."""
    order: Order = Order.URGENCY
    backwards: bool = False
    """True if the order is reversed."""
    show: Show = Show.LIMITED
    quota_type: QuotaType | None = None
    """None for all."""
    text: str = ""
    """Only users and client-ids that contain it, ignoring case."""
    broker: str = ""
    """Only what the node of this id reports; empty for all."""


def matching(measured: Usages, selection: Selection) -> Usages:
    """Return the entities that a selection shows, in the order of the snapshot."""
    columns = measured.columns
    layout = columns.layout
    mask = _SHOWN[selection.show](columns, selection.near_limit)
    if selection.quota_type is not None:
        mask = mask & (layout.types == TYPES.index(selection.quota_type))
    if selection.broker:
        is_chosen_node = np.array([node == selection.broker for node in layout.nodes], np.bool_)
        mask = mask & is_chosen_node[layout.node_numbers]
    usages = measured.where(mask)
    if selection.text:
        text, entities = selection.text.casefold(), layout.entities[usages.rows]
        rows = [
            row
            for row, entity in zip(usages.rows, entities, strict=True)
            if contains(entity.user, text) or contains(entity.client_id, text)
        ]
        usages = Usages(columns, np.array(rows, np.intp))
    return usages


def in_order(usages: Usages, selection: Selection, max_count: int | None = None) -> Usages:
    """Return the first ``max_count`` usages in the order of a selection; all for None. Missing numbers come last."""
    columns, order = usages.columns, selection.order
    keys = _KEYS[order](usages, selection.near_limit)
    if selection.backwards:
        keys = [-key for key in keys]
    rows = usages.rows[np.lexsort(keys[::-1])]  # lexsort takes the most significant key last
    if selection.backwards and order in _NUMBERS:
        # the reversed keys put missing numbers first, but they come last in either direction
        is_missing = np.isnan(_NUMBERS[order](columns))
        by_name = in_order(usages.where(is_missing), Selection(near_limit=selection.near_limit, order=Order.NAME))
        rows = np.concatenate([rows[~is_missing[rows]], by_name.rows])
    return Usages(columns, rows[:max_count])


def most_pressing(usages: Usages, near_limit: float, max_count: int | None = None) -> Usages:
    """Return the ``max_count`` most urgent usages of entities that are throttled or use a part of a limit or burst."""
    columns = usages.columns
    pressing = usages.where(_was_throttled(columns) | (columns.pressure > 0))
    return in_order(pressing, Selection(near_limit=near_limit), max_count)


def urgency(columns: Columns, near_limit: float) -> Floats:
    """Return the urgency of each entity, a number that is greater for a more urgent entity."""
    used, throttle_time = columns.pressure, columns.throttle_time
    is_unlimited = np.isnan(columns.layout.limits) & ~columns.layout.limits_unknown
    rank = np.select([throttle_time > 0, used >= near_limit, is_unlimited, np.isnan(used)], [4.0, 3.0, 0.0, 2.0], 1.0)
    size = np.nan_to_num(np.where(throttle_time > 0, throttle_time, used), nan=0.0)
    # the part within a rank is below 1, so that no entity gets into the next rank
    urgencies: Floats = rank + np.clip(size / (1 + np.abs(size)), 0.0, 1 - 1e-9)
    return urgencies


def _was_throttled(columns: Columns) -> NDArray[np.bool_]:
    """Return the mask of the entities that are known to be throttled."""
    return columns.throttle_time > 0


_SHOWN: Final[dict[Show, Callable[[Columns, float], NDArray[np.bool_]]]] = {
    Show.LIMITED: lambda columns, _: (
        ~np.isnan(columns.layout.limits) | columns.layout.limits_unknown | _was_throttled(columns)
    ),
    Show.NEAR: lambda columns, near_limit: _was_throttled(columns) | (columns.pressure >= near_limit),
    Show.THROTTLED: lambda columns, _: _was_throttled(columns),
    Show.ALL: lambda columns, _: np.ones(len(columns), np.bool_),
}


_NUMBERS: Final[dict[Order, Callable[[Columns], Floats]]] = {
    Order.USED: lambda columns: columns.used,
    Order.DELAY: lambda columns: columns.throttle_time,
    Order.USAGE: lambda columns: columns.usage,
    Order.LIMIT: lambda columns: columns.layout.limits,
    Order.TOKENS: lambda columns: columns.tokens,
}
"""The numbers that orders sort by; NaN where there is none."""


def _is_missing(usages: Usages, order: Order) -> _Key:
    """Return a sort key that puts entities last whose number of an order is missing."""
    numbers = _NUMBERS[order](usages.columns)
    return np.isnan(numbers[usages.rows]).astype(np.int8)


def _numbers(usages: Usages, order: Order) -> _Key:
    """Return a sort key by the number of an order, the least first; a missing number counts as 0."""
    numbers = _NUMBERS[order](usages.columns)
    return np.nan_to_num(numbers[usages.rows], nan=0.0)


def _fullest(usages: Usages) -> list[_Key]:
    """Return sort keys by utilization, then by throttle time, the greatest first."""
    return [-_numbers(usages, Order.USED), -_numbers(usages, Order.DELAY)]


def _greatest(usages: Usages, order: Order) -> list[_Key]:
    """Return sort keys by quota type, as each has its own unit, then by the number of an order, the greatest first."""
    return [_types(usages), _is_missing(usages, order), -_numbers(usages, order)]


def _types(usages: Usages) -> _Key:
    """Return a sort key by quota type."""
    return usages.columns.layout.types[usages.rows]


def _nodes(usages: Usages) -> _Key:
    """Return a sort key by node id, where 9 comes before 10."""
    layout = usages.columns.layout
    places = {node: place for place, node in enumerate(sorted(layout.nodes, key=node_order))}
    place_by_number = np.array([places[node] for node in layout.nodes], np.intp)
    return place_by_number[layout.node_numbers[usages.rows]]


def _referring(usages: Usages) -> _Key:
    """Return a sort key that puts entities last whose throttle is by another entity's quota."""
    return np.asarray(usages.columns.causes[usages.rows] == _MUTATION_CAUSE, np.int8)


def _names(usages: Usages) -> _Key:
    """Return a sort key by user, then client-id; entities with the same names keep their order."""
    names = [(entity.user, entity.client_id) for entity in usages.columns.layout.entities[usages.rows]]
    in_name_order = sorted(range(len(names)), key=names.__getitem__)
    places = np.empty(len(names), np.intp)
    places[in_name_order] = np.arange(len(names))
    return places


def _levels(usages: Usages) -> _Key:
    """Return a sort key by the level of the rule that sets the limit."""
    entities = usages.columns.layout.entities[usages.rows]
    return np.array([_LEVELS.index((entity.resolution or NO_RULE).level) for entity in entities], np.intp)


_KEYS: Final[dict[Order, Callable[[Usages, float], list[_Key]]]] = {
    Order.URGENCY: lambda usages, near_limit: [-urgency(usages.columns, near_limit)[usages.rows], _referring(usages)],
    Order.USED: lambda usages, _: _fullest(usages),
    Order.DELAY: lambda usages, _: [-_numbers(usages, Order.DELAY), -_numbers(usages, Order.USED), _referring(usages)],
    Order.NAME: lambda usages, _: [_names(usages)],
    Order.USAGE: lambda usages, _: _greatest(usages, Order.USAGE),
    Order.LIMIT: lambda usages, _: _greatest(usages, Order.LIMIT),
    Order.TOKENS: lambda usages, _: [_is_missing(usages, Order.TOKENS), _numbers(usages, Order.TOKENS)],
    Order.LEVEL: lambda usages, _: [_levels(usages), _names(usages)],
    Order.TYPE: lambda usages, _: [_types(usages), *_fullest(usages)],
    Order.BROKER: lambda usages, _: [_nodes(usages), *_fullest(usages)],
}
"""Sort keys by order, the most significant first: a number for each entity, of which the least comes first."""
