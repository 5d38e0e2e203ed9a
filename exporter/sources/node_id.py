"""Which node a source belongs to."""

from __future__ import annotations

from typing import Final

from ..beans import Layout
from ..errors import SourceUnreadable

_MOST_DIGITS: Final = 10
"""Of an int32, which Kafka's node.id is."""


class NodeId:
    """
    The node id of one source: what the node itself says, or else the configured one.

    A node says it in the name of the MBean ``kafka.server:type=app-info,id=N``; not every dialect passes that on.
    """

    def __init__(self, configured: str | None) -> None:
        self._configured = configured
        self._layout: Layout | None = None
        self._said: list[str] = []

    def of(self, layout: Layout) -> str:
        """The node id. Raises ``SourceUnreadable`` when there is none, or the node says another one than is configured."""
        if layout is not self._layout:
            self._layout, self._said = layout, _said_in(layout)
        if self._configured is not None:
            if self._said and self._configured not in self._said:
                raise SourceUnreadable(
                    f"the agent says that it is node {self._said[0]}, but this source should be node {self._configured}: "
                    "check its url, and its node_id in the configuration or what discovery found for this address"
                )
            return self._configured
        if not self._said:
            raise SourceUnreadable(
                "the node does not tell its id (MBean kafka.server:type=app-info,id=N): "
                "is this a Kafka broker or controller that has started? If so, configure node_id for this source"
            )
        return self._said[0]


def _said_in(layout: Layout) -> list[str]:
    """The least first."""
    ids = {
        column.bean.get("id") or ""
        for column in layout.columns
        if column.bean.get("type") == "app-info"
    }
    # Kafka's are whole numbers; anything else is the id of something else
    return sorted(filter(_is_number, ids), key=int)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
