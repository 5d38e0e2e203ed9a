"""What every source offers."""

from __future__ import annotations

from typing import Protocol

from ..beans import BeanTable


class Source(Protocol):
    """
    Reads one broker or controller. A new dialect is one more implementation.

    ``read`` raises a ``SourceError`` and nothing else; it may be cancelled at any
    time when the deadline of a scrape has passed.
    """

    @property
    def name(self) -> str:
        """The label ``source``: the configured name or address, free of secrets."""
        ...

    @property
    def dialect(self) -> str:
        """The label ``dialect``, such as ``jolokia``."""
        ...

    @property
    def node_id(self) -> str | None:
        """The id of its node as configured, or as a discovery has it; None when only the node itself says it."""
        ...

    async def read(self) -> BeanTable:
        """The quota beans as they are now."""
        ...

    async def close(self) -> None:
        """Release connections. Safe to call twice."""
        ...
