"""Which node a source belongs to."""

from __future__ import annotations

from typing import Final

from ..beans import Layout
from ..errors import SourceUnreadable

_MOST_DIGITS: Final = 10
"""Of an int32, which Kafka's node.id is."""


class NodeId:
    """
    The node id of one source: the configured one, or else what the node itself tells.

    A node tells it in the name of the MBean ``kafka.server:type=app-info,id=N``.
    """

    def __init__(self, configured: str | None) -> None:
        self._configured = configured
        self._layout: Layout | None = None
        self._told: str | None = None

    def of(self, layout: Layout) -> str:
        """The node id. Raises ``SourceUnreadable`` when nobody tells it."""
        if self._configured is not None:
            return self._configured
        if layout is not self._layout:
            self._layout, self._told = layout, _told_in(layout)
        if self._told is None:
            raise SourceUnreadable(
                "the node does not tell its id (MBean kafka.server:type=app-info,id=N): "
                "is this a Kafka broker or controller that has started? If so, configure node_id for this source"
            )
        return self._told


def _told_in(layout: Layout) -> str | None:
    ids = (
        column.bean.get("id") or ""
        for column in layout.columns
        if column.bean.get("type") == "app-info"
    )
    # Kafka's are whole numbers; anything else is the id of something else
    return min(filter(_is_number, ids), key=int, default=None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
