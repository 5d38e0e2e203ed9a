"""What each column of a layout says, and of whom: worked out when a column is first seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quotascope.metrics import MalformedName, QuotaType, desanitize

from ..beans import Bean, Column, Layout
from ..difference import replaced
from ..mapping import Attribute, attribute_of

Tags = tuple[QuotaType, str, str]
"""Which entity on one node: quota type, decoded user, client id; an absent one is empty."""
CallbackTags = tuple[QuotaType, tuple[tuple[str, str], ...]]
"""Which entity of a custom quota callback on one node: quota type, and tags as they are, by key."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one number says."""

    attribute: Attribute
    tags: Tags | None
    """The entity it is about, None when it is about the node."""
    about: str
    """What of the node it is about: a request, a listener, an address or a direction; empty when the node itself."""
    callback: CallbackTags | None = None
    """The entity of a custom quota callback that it is about."""


class Interpreter:
    """Interprets the layouts of one node one after the other; what two of them share it interprets once."""

    def __init__(self) -> None:
        self._layout = Layout(())
        self._found: list[Found | None] = []
        self._sees_callback = False

    def found_in(self, layout: Layout) -> Sequence[Found | None]:
        """What each column says, None for columns of no use."""
        if layout is not self._layout:
            self._interpret(layout)
            self._sees_callback = any(
                found is not None and found.callback is not None
                for found in self._found
            )
        return self._found

    def sees_callback(self, layout: Layout) -> bool:
        """Whether any column is of a custom quota callback."""
        self.found_in(layout)
        return self._sees_callback

    def _interpret(self, layout: Layout) -> None:
        before, columns = self._layout.columns, layout.columns
        places = replaced(before, columns)
        # Hashing a column would take as long as interpreting it; the layout keeps identities valid.
        known = {
            id(before[place]): self._found[place]
            for place in places
            if place < len(before)
        }
        found = self._found[: len(columns)]
        found += [None] * (len(columns) - len(found))
        for place in places:
            if place < len(columns):
                column = columns[place]
                found[place] = (
                    known[id(column)] if id(column) in known else interpreted(column)
                )
        self._found, self._layout = found, layout


def interpreted(column: Column) -> Found | None:
    """What a column says, None when it is of no use."""
    attribute = attribute_of(column)
    if attribute is None:
        return None
    bean = column.bean
    if attribute.open and attribute.quota_type is not None:
        tags = tuple(pair for pair in bean.properties if pair[0] != "type")
        return Found(attribute, None, "", (attribute.quota_type, tags))
    return Found(attribute, _tags(attribute, bean), _about(attribute, bean))


def _about(attribute: Attribute, bean: Bean) -> str:
    names = (bean.get(key) for key in attribute.free if attribute.required)
    return next(filter(None, names), attribute.direction)


def _tags(attribute: Attribute, bean: Bean) -> Tags | None:
    if attribute.quota_type is None or "user" not in attribute.free:
        return None
    user, client_id = bean.get("user") or "", bean.get("client-id") or ""
    return attribute.quota_type, decoded(user), client_id


def decoded(user: str) -> str:
    """The user's name out of Kafka's percent-encoded tag; a tag that Kafka would not write stays as it is."""
    try:
        return desanitize(user)
    except MalformedName:
        return user
