"""Reads a node through an agent of which only the URL is known."""

from __future__ import annotations

import asyncio

from ..beans import BeanTable
from ..errors import SourceError, SourceUnreadable
from .source import Source


class DetectedSource:
    """
    Reads in the first way that works, and goes on with it until it works no more.

    Only an answer that cannot be understood is a reason to try another way: a node that is down, or refuses
    credentials, would do the same again.

    Args:
        first: The likelier way.
        second: The other one, at the same address and under the same name.
        timeout_seconds: Longest read, in both ways together.

    """

    def __init__(
        self, first: Source, second: Source, timeout_seconds: float = 60.0
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self.name, self.node_id = first.name, first.node_id
        self._likely, self._other = first, second

    @property
    def dialect(self) -> str:
        """The label ``dialect``: that of the likelier way, as far as is known."""
        return self._likely.dialect

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``: what the likelier way was told."""
        ends = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            return await self._likely.read()
        except SourceUnreadable as error:
            try:
                async with asyncio.timeout_at(ends):
                    table = await self._other.read()
            except (SourceError, TimeoutError):
                raise error from None
        self._likely, self._other = self._other, self._likely
        return table

    async def close(self) -> None:
        """Release connections."""
        await self._likely.close()
        await self._other.close()
