"""Which quota entities are shown, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import nlargest, nsmallest
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import NO_RULE, Level, QuotaType

from ..snapshot import TYPES, Columns, EntityUsage, Floats, Usages
from .trails import used_part

NEAR: Final = 0.8
"""The utilization from which on an entity counts as close to its limit."""
_TYPES: Final = list(QuotaType)
_LEVELS: Final = list(Level)


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
    count = len(usages) if most is None else most
    if selection.order is Order.URGENCY:
        number = urgency(usages.columns)[usages.rows]
        ascending = number if selection.backwards else -number
        first = np.argsort(ascending, kind="stable")[:count]
        return Usages(usages.columns, usages.rows[first])
    if not selection.backwards and 0 < count < len(usages) and selection.order in _FIRST:
        # rows are made only of those that the first number does not rule out already
        number = _FIRST[selection.order](usages.columns)
        usages = usages.where(number >= np.partition(number[usages.rows], -count)[-count])
    key = _KEYS[selection.order]
    places = range(len(usages))
    if not selection.backwards:
        chosen = nsmallest(count, places, key=lambda at: key(usages[at]))
    else:
        has_number = _HAS_NUMBER.get(selection.order)
        known = [at for at in places if not has_number or has_number(usages[at])]
        chosen = nlargest(count, known, key=lambda at: key(usages[at]))
        rest = set(places).difference(known)
        chosen += nsmallest(count - len(chosen), sorted(rest), key=lambda at: _by_name(usages[at]))
    return Usages(usages.columns, usages.rows[chosen])


def most_pressing(entities: Sequence[EntityUsage], most: int) -> list[EntityUsage]:
    """Up to ``most`` entities: the longest throttled first, then those closest to their limit."""

    def pressure(usage: EntityUsage) -> tuple[float, float]:
        used = max(usage.utilization or 0.0, usage.burst_used or 0.0, 0.0)
        return usage.throttle_time_seconds or 0.0, used

    pressing = [usage for usage in entities if any(pressure(usage))]
    return sorted(pressing, key=pressure, reverse=True)[:most]


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


def _type(usage: EntityUsage) -> int:
    return _TYPES.index(usage.entity.quota_type)


def _node(usage: EntityUsage) -> tuple[int, str]:
    """Ids of nodes are numbers: 9 comes before 10."""
    broker = usage.entity.broker
    return len(broker), broker


def _by_used(usage: EntityUsage) -> tuple[float, float]:
    return -(used_part(usage) or 0.0), -(usage.throttle_time_seconds or 0.0)


def _by_name(usage: EntityUsage) -> tuple[str, str, int, tuple[int, str]]:
    entity = usage.entity
    return entity.user, entity.client_id, _type(usage), _node(usage)


def _by_number(number: Callable[[EntityUsage], float | None]) -> Callable[[EntityUsage], tuple[int, bool, float]]:
    """One type after the other, for each has its own unit; the greatest number first, what has none last."""

    def key(usage: EntityUsage) -> tuple[int, bool, float]:
        value = number(usage)
        return _type(usage), value is None, -(value or 0.0)

    return key


_KEYS: Final[dict[Order, Callable[[EntityUsage], Any]]] = {
    Order.USED: _by_used,
    Order.DELAY: lambda usage: (-(usage.throttle_time_seconds or 0.0), _by_used(usage)),
    Order.NAME: _by_name,
    Order.USAGE: _by_number(lambda usage: usage.usage),
    Order.LIMIT: _by_number(lambda usage: usage.entity.limit),
    Order.TOKENS: lambda usage: (usage.tokens is None, usage.tokens or 0.0),
    Order.LEVEL: lambda usage: (_LEVELS.index((usage.entity.resolution or NO_RULE).level), _by_name(usage)),
    Order.TYPE: lambda usage: (_type(usage), _by_used(usage)),
    Order.BROKER: lambda usage: (_node(usage), _by_used(usage)),
}

_FIRST: Final[dict[Order, Callable[[Columns], Floats]]] = {
    Order.USED: lambda columns: np.nan_to_num(columns.used, nan=0.0),
    Order.DELAY: lambda columns: np.nan_to_num(columns.throttle_time, nan=0.0),
}
"""The number that these orders begin with, the greatest first."""

_HAS_NUMBER: Final[dict[Order, Callable[[EntityUsage], bool]]] = {
    Order.USED: lambda usage: used_part(usage) is not None,
    Order.USAGE: lambda usage: usage.usage is not None,
    Order.LIMIT: lambda usage: usage.entity.limit is not None,
    Order.TOKENS: lambda usage: usage.tokens is not None,
}
