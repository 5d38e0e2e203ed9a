"""What a column of a table says, and of whom."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from quotascope.metrics import MalformedName, QuotaType, desanitize

from ..beans import BeanColumn
from ..mapping import Attribute, attribute_of

Tags = tuple[QuotaType, str, str]
"""Which entity on one node: quota type, decoded user, client id; an absent one is empty."""
CallbackTags = tuple[QuotaType, tuple[tuple[str, str], ...]]
"""Which entity of a custom quota callback on one node: quota type, and tags as they are, by key."""


class Found(NamedTuple):
    """What one number says."""

    attribute: Attribute
    tags: Tags | None
    """The entity it is about, None when it is about the node."""
    about: str
    """What of the node it is about: a request, a listener, an address, a direction or a quota type; empty when the node itself."""
    callback: CallbackTags | None = None
    """The entity of a custom quota callback that it is about."""


def interpreted(column: BeanColumn) -> Found | None:
    """What a column says, None when it is of no use."""
    attribute = attribute_of(column)
    if attribute is None:
        return None
    bean, kind = column.bean, attribute.quota_type
    if attribute.open and kind is not None:
        tags = tuple(pair for pair in bean.properties if pair[0] != "type")
        return Found(attribute, None, "", (kind, tags))
    if kind is not None and "user" in attribute.free:
        names = dict(bean.properties)
        user, client_id = names.get("user", ""), names.get("client-id", "")
        return Found(attribute, (kind, decoded(user), client_id), "")
    free = (bean.get(key) for key in attribute.free if attribute.required)
    about = next(filter(None, free), attribute.direction)
    return Found(attribute, None, about if kind is None else kind.value)


@lru_cache(maxsize=64)  # the columns of a user come one after the other
def decoded(user: str) -> str:
    """The user's name out of Kafka's percent-encoded tag; a tag that Kafka would not write stays as it is."""
    try:
        return desanitize(user)
    except MalformedName:
        return user
