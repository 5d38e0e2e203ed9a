"""A long body that several answers share."""

from __future__ import annotations

from typing import Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

PIECE_BYTES: Final = 1 << 16


class Pieces(Payload):
    """
    A body that is written piece by piece, the next one when the client has taken most of the last.

    A body that is written at once is copied into the buffers of its connection: of a page of 50 MB each scraper would
    hold a copy.
    """

    def __init__(self, value: bytes) -> None:
        super().__init__(value, content_type="application/octet-stream")
        self.value: Final = value
        self._size = len(value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text."""
        return self.value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the body, as fast as the client takes it."""
        view = memoryview(self.value)
        for start in range(0, len(view), PIECE_BYTES):
            await writer.write(view[start : start + PIECE_BYTES])
            await writer.drain()
