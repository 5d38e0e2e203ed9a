"""The body of an answer as it was before it was compressed, never more of it than is wanted."""

from __future__ import annotations

import zlib
from typing import Final

from ...errors import SourceUnreachable, SourceUnreadable
from ...untrusted import shown

ASKED_FOR: Final = "gzip"
"""What `Accept-Encoding` says."""
_GZIP: Final = {"gzip", "x-gzip"}
_PLAIN: Final = {"", "identity"}
_GZIP_WINDOW: Final = 31


class Unpacker:
    """
    Takes the pieces of one body.

    zlib itself is asked, piece by piece and for no more than is wanted, so that a small answer cannot become a large one;
    and it is asked whether that was all, for half an answer must not pass for a whole one.

    Args:
        encoding: What the answer says of itself in ``Content-Encoding``. Raises ``SourceUnreadable`` for one that was
            not asked for.

    """

    def __init__(self, encoding: str) -> None:
        word = encoding.strip().lower()
        if word not in _GZIP | _PLAIN:
            raise SourceUnreadable(
                f"the answer is compressed as {shown(encoding)!r}, which was not asked for: does a proxy pack it?"
            )
        self.packed = word in _GZIP
        """Whether a piece can hold more than its length."""
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._begun = False

    def unpacked(self, piece: bytes, most: int) -> bytes:
        """What a piece holds, but no more than ``most`` bytes and one. Raises ``SourceUnreadable``."""
        if not self.packed:
            return piece
        found = bytearray()
        try:
            while piece and len(found) <= most:
                if self._member.eof:
                    self._member = zlib.decompressobj(_GZIP_WINDOW)
                found += self._member.decompress(piece, most + 1 - len(found))
                piece = self._member.unconsumed_tail or self._member.unused_data
        except zlib.error as error:
            raise SourceUnreadable(
                f"the answer says it is compressed, but cannot be unpacked ({shown(error)})"
            ) from None
        self._begun = True
        return bytes(found)

    def check_complete(self) -> None:
        """Raise ``SourceUnreachable`` when there should have been more."""
        if self._begun and not self._member.eof:
            raise SourceUnreachable(
                "the answer ended in the middle of what is compressed: is the node shutting down, or does a proxy cut it?"
            )
