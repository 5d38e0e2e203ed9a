"""Which quota entities are looked at, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from heapq import nlargest, nsmallest
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import Level, QuotaType

from .snapshot import TYPES, Columns, EntityUsage, Floats, Usages
from .trails import used_part

NEAR: Final = 0.8
"""The part of a limit from which on somebody is close to it."""
_TYPES: Final = list(QuotaType)
_LEVELS: Final = list(Level)


class Order(StrEnum):
    """By what entities are sorted: numbers from the greatest down, names and levels from the first up."""

    USED = "used"
    """The part of the limit, or of the burst of mutations, where that is more."""
    DELAY = "delay"
    """Throttle time."""
    NAME = "name"
    """User, then client id."""
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
    """All but those that are known to be unlimited; of these, the ones that were throttled for another's limit."""
    NEAR = "near"
    """Those that use 80 % of a limit or more, and those that were throttled."""
    THROTTLED = "throttled"
    ALL = "all"
    """Those without a limit as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What somebody wants to see."""

    order: Order = Order.USED
    backwards: bool = False
    """Whether the order is turned round."""
    show: Show = Show.LIMITED
    quota_type: QuotaType | None = None
    """None for all."""
    text: str = ""
    """Only users and client ids that hold it, in either case of letters."""
    broker: str = ""
    """Only what the node of this id tells; empty for all."""


def matching(measured: Usages, selection: Selection) -> Usages:
    """Those that are wanted, in their order."""
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
    """The first ``most`` of them; what has no number comes last in either direction."""
    count = len(usages) if most is None else most
    if (
        not selection.backwards
        and 0 < count < len(usages)
        and selection.order in _FIRST
    ):
        # rows are made only of those that the first number does not rule out already
        number = _FIRST[selection.order](usages.columns)
        usages = usages.where(
            number >= np.partition(number[usages.rows], -count)[-count]
        )
    key = _KEYS[selection.order]
    places = range(len(usages))
    if not selection.backwards:
        first = nsmallest(count, places, key=lambda at: key(usages[at]))
    else:
        has_number = _HAS_NUMBER.get(selection.order, _always)
        known = [at for at in places if has_number(usages[at])]
        first = nlargest(count, known, key=lambda at: key(usages[at]))
        rest = set(places).difference(known)
        first += nsmallest(
            count - len(first), sorted(rest), key=lambda at: _by_name(usages[at])
        )
    return Usages(usages.columns, usages.rows[first])


def _was_throttled(columns: Columns) -> NDArray[np.bool_]:
    return columns.throttle_time > 0


def _is_limited(columns: Columns) -> NDArray[np.bool_]:
    may_be = ~np.isnan(columns.layout.limits) | columns.layout.limits_unknown
    return may_be | _was_throttled(columns)


_SHOWN: Final[dict[Show, Callable[[Columns], NDArray[np.bool_]]]] = {
    Show.LIMITED: _is_limited,
    Show.NEAR: lambda columns: _was_throttled(columns) | (columns.used >= NEAR),
    Show.THROTTLED: _was_throttled,
    Show.ALL: lambda columns: np.ones(len(columns), np.bool_),
}


def _always(_: EntityUsage) -> bool:
    return True


def _by_used(usage: EntityUsage) -> tuple[float, float]:
    return -(used_part(usage) or 0.0), -usage.throttle_time_seconds


def _by_delay(usage: EntityUsage) -> tuple[float, float]:
    return -usage.throttle_time_seconds, -(used_part(usage) or 0.0)


def _by_name(usage: EntityUsage) -> tuple[str, str, int, tuple[int, str]]:
    entity = usage.entity
    return entity.user, entity.client_id, _place(usage), _node(usage)


def _by_usage(usage: EntityUsage) -> tuple[int, bool, float]:
    return _place(usage), usage.usage is None, -(usage.usage or 0.0)


def _by_limit(usage: EntityUsage) -> tuple[int, bool, float]:
    limit = usage.entity.limit
    return _place(usage), limit is None, -(limit or 0.0)


def _by_tokens(usage: EntityUsage) -> tuple[bool, float]:
    return usage.tokens is None, usage.tokens or 0.0


def _by_level(usage: EntityUsage) -> tuple[int, Any]:
    rule = usage.entity.resolution
    place = _LEVELS.index(Level.NONE if rule is None else rule.level)
    return place, _by_name(usage)


def _by_type(usage: EntityUsage) -> tuple[int, Any]:
    return _place(usage), _by_used(usage)


def _by_node(usage: EntityUsage) -> tuple[Any, ...]:
    return _node(usage), _by_used(usage)


def _place(usage: EntityUsage) -> int:
    return _TYPES.index(usage.entity.quota_type)


def _node(usage: EntityUsage) -> tuple[int, str]:
    """Ids of nodes are numbers: 9 comes before 10."""
    broker = usage.entity.broker
    return len(broker), broker


_KEYS: Final[dict[Order, Callable[[EntityUsage], Any]]] = {
    Order.USED: _by_used,
    Order.DELAY: _by_delay,
    Order.NAME: _by_name,
    Order.USAGE: _by_usage,
    Order.LIMIT: _by_limit,
    Order.TOKENS: _by_tokens,
    Order.LEVEL: _by_level,
    Order.TYPE: _by_type,
    Order.BROKER: _by_node,
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
