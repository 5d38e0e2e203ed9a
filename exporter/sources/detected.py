"""Reads a node through an agent of which only the URL is known."""

from __future__ import annotations

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

    """

    def __init__(self, first: Source, second: Source) -> None:
        self.name = first.name
        self._likely, self._other = first, second

    @property
    def dialect(self) -> str:
        """The label ``dialect``: that of the likelier way, as far as is known."""
        return self._likely.dialect

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``: what the likelier way was told."""
        try:
            return await self._likely.read()
        except SourceUnreadable as error:
            try:
                table = await self._other.read()
            except SourceError:
                raise error from None
        self._likely, self._other = self._other, self._likely
        return table

    async def close(self) -> None:
        """Release connections."""
        await self._likely.close()
        await self._other.close()
