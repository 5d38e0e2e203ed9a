"""All that is read, and how to find in it what a column means."""

from __future__ import annotations

from typing import Final

from ..beans import Column
from .attribute import Attribute
from .callback import CALLBACK
from .client_quotas import CLIENT_QUOTAS
from .neighbours import CONNECTIONS, TRANSFERS
from .node import NODE

ATTRIBUTES: Final[tuple[Attribute, ...]] = (
    *CLIENT_QUOTAS,
    *CALLBACK,
    *NODE,
    *CONNECTIONS,
    *TRANSFERS,
)
"""A source asks for these and hands over nothing else."""

_BY_PLACE: Final[dict[tuple[str, str, str], list[Attribute]]] = {}
for _attribute in ATTRIBUTES:
    _BY_PLACE.setdefault(
        (_attribute.domain, _attribute.type, _attribute.name), []
    ).append(_attribute)


def attribute_of(column: Column) -> Attribute | None:
    """What a column means, None when it is of no use. Looked up once for those that ``wanted`` gave."""
    if isinstance(column.mapped, Attribute):
        return column.mapped
    bean = column.bean
    candidates = _BY_PLACE.get((bean.domain, bean.get("type") or "", column.attribute))
    return next((found for found in candidates or () if found.admits(bean)), None)


def wanted(column: Column) -> Column | None:
    """The column with what it means, or None when it is of no use."""
    found = attribute_of(column)
    return None if found is None else Column(column.bean, column.attribute, found)
