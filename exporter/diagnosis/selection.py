"""Which quota entities are shown, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import NO_RULE, Level, QuotaType

from ..snapshot import TYPES, Columns, Floats, Usages
from ..snapshot.layout import node_order

NEAR: Final = 0.8
"""The utilization from which on an entity counts as close to its limit."""
_LEVELS: Final = list(Level)
_Key: TypeAlias = NDArray[Any]


class Order(StrEnum):
    """By what entities are sorted: numbers from the greatest down, names and levels from the first up."""

    URGENCY = "urgency"
    """The throttled by throttle time; those from ``NEAR`` on by utilization; those whose utilization is unknown; the others by utilization; the unlimited."""
    USED = "used"
    """The part of the limit, or of the burst of mutations, where that is more."""
    DELAY = "delay"
    """Throttle time."""
    NAME = "name"
    """User, then client-id."""
    USAGE = "usage"
    """Amounts have the unit of their quota type: one type after the other."""
    LIMIT = "limit"
    """As ``usage``."""
    TOKENS = "tokens"
    """What is left of the burst; the emptiest bucket first."""
    LEVEL = "level"
    """The place of the rule that decides among Kafka's eight."""
    TYPE = "type"
    BROKER = "broker"


class Show(StrEnum):
    """Which entities are shown."""

    LIMITED = "limited"
    """All but unlimited entities; of these, the throttled ones, such as by a mutation quota."""
    NEAR = "near"
    """Those that use 80 % of a limit or more, and those that were throttled."""
    THROTTLED = "throttled"
    ALL = "all"
    """Those without a limit as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A choice of entities and their order."""

    order: Order = Order.URGENCY
    backwards: bool = False
    """Whether the order is reversed."""
    show: Show = Show.LIMITED
    quota_type: QuotaType | None = None
    """None for all."""
    text: str = ""
    """Only users and client-ids that contain it, ignoring case."""
    broker: str = ""
    """Only what the node of this id reports; empty for all."""


def matching(measured: Usages, selection: Selection) -> Usages:
    """The entities that a selection shows, in the order of the snapshot."""
    columns = measured.columns
    layout = columns.layout
    wanted = _SHOWN[selection.show](columns)
    if selection.quota_type is not None:
        wanted = wanted & (layout.types == TYPES.index(selection.quota_type))
    if selection.broker:
        here = [node == selection.broker for node in layout.nodes]
        wanted = wanted & np.array(here, np.bool_)[layout.node_numbers]
    found = measured.where(wanted)
    if selection.text:
        text, entities = selection.text.casefold(), layout.entities[found.rows]
        rows = [
            row
            for row, entity in zip(found.rows, entities, strict=True)
            if text in entity.user.casefold() or text in entity.client_id.casefold()
        ]
        found = Usages(columns, np.array(rows, np.intp))
    return found


def in_order(usages: Usages, selection: Selection, most: int | None = None) -> Usages:
    """The first ``most`` entities of a selection; what has no number comes last in either direction."""
    columns, order = usages.columns, selection.order
    keys = _KEYS[order](usages)
    if selection.backwards:
        keys = [-key for key in keys]
    rows = usages.rows[np.lexsort(keys[::-1])]
    if selection.backwards and order in _NUMBERS:
        unknown = np.isnan(_NUMBERS[order](columns))
        by_name = in_order(usages.where(unknown), Selection(order=Order.NAME))
        rows = np.concatenate([rows[~unknown[rows]], by_name.rows])
    return Usages(columns, rows[:most])


def most_pressing(usages: Usages, most: int | None = None) -> Usages:
    """Up to ``most`` entities that are throttled or use something of a limit: the longest throttled first, then those closest to their limit."""
    columns = usages.columns
    pressing = usages.where(_was_throttled(columns) | (columns.used > 0))
    return in_order(pressing, Selection(order=Order.DELAY), most)


def urgency(columns: Columns) -> Floats:
    """The place of each entity in the order of urgency as a number, the most urgent the greatest."""
    used, throttle = columns.used, columns.throttle_time
    unlimited = np.isnan(columns.layout.limits) & ~columns.layout.limits_unknown
    rank = np.select([throttle > 0, used >= NEAR, unlimited, np.isnan(used)], [4.0, 3.0, 0.0, 2.0], 1.0)
    within = np.nan_to_num(np.where(throttle > 0, throttle, used), nan=0.0)
    # below 1, so that no number leads from one rank to the next
    numbers: Floats = rank + np.clip(within / (1 + np.abs(within)), 0.0, 1 - 1e-9)
    return numbers


def _was_throttled(columns: Columns) -> NDArray[np.bool_]:
    return columns.throttle_time > 0


_SHOWN: Final[dict[Show, Callable[[Columns], NDArray[np.bool_]]]] = {
    Show.LIMITED: lambda columns: (
        ~np.isnan(columns.layout.limits) | columns.layout.limits_unknown | _was_throttled(columns)
    ),
    Show.NEAR: lambda columns: _was_throttled(columns) | (columns.used >= NEAR),
    Show.THROTTLED: _was_throttled,
    Show.ALL: lambda columns: np.ones(len(columns), np.bool_),
}


_NUMBERS: Final[dict[Order, Callable[[Columns], Floats]]] = {
    Order.USED: lambda columns: columns.used,
    Order.DELAY: lambda columns: columns.throttle_time,
    Order.USAGE: lambda columns: columns.usage,
    Order.LIMIT: lambda columns: columns.layout.limits,
    Order.TOKENS: lambda columns: columns.tokens,
}
"""The numbers that these orders are about; NaN where there is none."""


def _of(usages: Usages, order: Order) -> tuple[_Key, _Key]:
    """Which of some entities have no number of an order, and the numbers; 0 for none."""
    numbers = _NUMBERS[order](usages.columns)[usages.rows]
    return np.isnan(numbers).astype(np.int8), np.nan_to_num(numbers, nan=0.0)


def _fullest(usages: Usages) -> list[_Key]:
    return [-_of(usages, Order.USED)[1], -_of(usages, Order.DELAY)[1]]


def _greatest(usages: Usages, order: Order) -> list[_Key]:
    """One type after the other, for each has its own unit; the greatest number first, what has none last."""
    without, numbers = _of(usages, order)
    return [_types(usages), without, -numbers]


def _types(usages: Usages) -> _Key:
    return usages.columns.layout.types[usages.rows]


def _nodes(usages: Usages) -> _Key:
    """The place of each entity's node: 9 comes before 10."""
    layout = usages.columns.layout
    places = {node: place for place, node in enumerate(sorted(layout.nodes, key=node_order))}
    return np.array([places[node] for node in layout.nodes], np.intp)[layout.node_numbers[usages.rows]]


def _names(usages: Usages) -> _Key:
    """The place of each entity by user, then client-id; of equal names the rows of a layout are in the order of type and node."""
    names = [(entity.user, entity.client_id) for entity in usages.columns.layout.entities[usages.rows]]
    places = np.empty(len(names), np.intp)
    places[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return places


def _levels(usages: Usages) -> _Key:
    entities = usages.columns.layout.entities[usages.rows]
    return np.array([_LEVELS.index((entity.resolution or NO_RULE).level) for entity in entities], np.intp)


_KEYS: Final[dict[Order, Callable[[Usages], list[_Key]]]] = {
    Order.URGENCY: lambda usages: [-urgency(usages.columns)[usages.rows]],
    Order.USED: _fullest,
    Order.DELAY: lambda usages: _fullest(usages)[::-1],
    Order.NAME: lambda usages: [_names(usages)],
    Order.USAGE: lambda usages: _greatest(usages, Order.USAGE),
    Order.LIMIT: lambda usages: _greatest(usages, Order.LIMIT),
    Order.TOKENS: lambda usages: [*_of(usages, Order.TOKENS)],
    Order.LEVEL: lambda usages: [_levels(usages), _names(usages)],
    Order.TYPE: lambda usages: [_types(usages), *_fullest(usages)],
    Order.BROKER: lambda usages: [_nodes(usages), *_fullest(usages)],
}
"""What orders are sorted by, a number for each entity, the weightiest first: the least comes first."""
