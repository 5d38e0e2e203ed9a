"""
Messages that a container runtime has cut into several lines.

CRI writes partial lines (`P`, then `F`), and Docker's json-file cuts at 16 KiB.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from .wrapped import MARK

_CRI: Final = re.compile(rb"(?:\xef\xbb\xbf)?\S{20,40} (stdout|stderr) ([PF])(?::\S*)? ")
_DOCKER: Final = b'{"log":"'
_STREAM: Final = b'","stream":"'
_ENDS: Final = b"\\n"
"""The last characters of the field `log` of a complete message."""
_DOCKERS_SIZE: Final = 16 * 1024
"""Size in bytes at which Docker cuts (`defaultBufSize` of its `logger.Copier`)."""
_DOCKERS_SIZES: Final = range(_DOCKERS_SIZE, _DOCKERS_SIZE + 13)
"""
Sizes of a cut message.

A cut within a character makes each of its bytes, up to three at both ends, a replacement of three bytes.
"""

_BEGINNING: Final = 300
"""Number of bytes of a message within which a request says that it is one."""

Line = tuple[int | None, bytes]
"""Number and text of a line."""


class Joiner:
    """Joins the lines of one file, which may be given in several calls."""

    __slots__ = ("_held", "_longest")

    def __init__(self, longest: int) -> None:
        """Create a joiner that keeps `longest` bytes of a line, and one byte more of a longer line."""
        self._longest = longest
        self._held: dict[bytes, tuple[int | None, list[bytes]]] = {}
        """Number of the first line and the pieces so far, by stream."""

    def take(self, number: int | None, line: bytes) -> Sequence[Line]:
        """
        Return the line, or the message that it completes; nothing while more lines of it are to come.

        A message that lost its end ends where another begins.
        """
        if line.startswith(_DOCKER):
            return self._of_docker(number, line)
        cri = _CRI.match(line)
        if cri is None:
            return ((number, line),)
        stream, is_end = cri[1], cri[2] == b"F"
        unfinished = self._cut(stream, line[cri.end() :])
        if stream in self._held:
            piece = line[cri.end() :]
        elif is_end or not _may_be_request(line):
            return (*unfinished, (number, line))
        else:  # the first piece keeps what the runtime writes before it
            piece = line
        return (*unfinished, *self._added(stream, number, piece, is_end=is_end))

    def rest(self) -> list[Line]:
        """Return the messages without an end, in the order of their lines."""
        unfinished = [(number, b"".join(pieces)) for number, pieces in self._held.values()]
        self._held.clear()
        return sorted(unfinished, key=lambda message: message[0] or 0)

    def _of_docker(self, number: int | None, line: bytes) -> Sequence[Line]:
        """Return what `take` returns for a line of Docker's JSON, whose messages are cut without a mark."""
        end = line.rfind(_STREAM)
        if end < 0:
            return ((number, line),)
        is_cut = _is_cut_by_docker(line[len(_DOCKER) : end])
        stream = line[end : end + len(_STREAM) + 3]
        unfinished = self._cut(stream, line[len(_DOCKER) :])
        if stream not in self._held:
            if not is_cut or not _may_be_request(line):
                return (*unfinished, (number, line))
            return (*unfinished, *self._added(stream, number, line[:end], is_end=False))
        piece = line[len(_DOCKER) : end if is_cut else None]
        return self._added(stream, number, piece, is_end=not is_cut)

    def _cut(self, stream: bytes, text: bytes) -> Sequence[Line]:
        """Return the unfinished message of a stream if this text begins another one."""
        if stream not in self._held or MARK not in text[:_BEGINNING]:
            return ()
        number, pieces = self._held.pop(stream)
        return ((number, b"".join(pieces)),)

    def _added(self, stream: bytes, number: int | None, piece: bytes, *, is_end: bool) -> Sequence[Line]:
        """Add a piece to the message of a stream, and return the message if this is its end."""
        first_number, pieces = self._held.setdefault(stream, (number, []))
        room = self._longest + 1 - sum(map(len, pieces))
        pieces.append(piece[:room])
        if not is_end:
            return ()
        del self._held[stream]
        return ((first_number, b"".join(pieces)),)


def _may_be_request(line: bytes) -> bool:
    """Return whether the first piece of a message begins a request; other loggers' messages are not joined."""
    return MARK in line or len(line) < _BEGINNING


def _is_cut_by_docker(text: bytes) -> bool:
    """
    Return whether the field `log` holds a message that Docker has cut.

    It has Docker's size, and no line feed at its end, which shippers take off complete messages.
    """
    if len(text) < _DOCKERS_SIZE or text.endswith(_ENDS):  # escapes are longer than what they stand for
        return False
    try:
        size = len(msgspec.json.decode(b'"%b"' % text, type=str).encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return size in _DOCKERS_SIZES
