"""
Shortens an answer that is too long while it is read.

Long names are cut or left out, so that the rest survives.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from hashlib import sha256
from typing import Final, Protocol

from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.jmx import parse_object_name

from ..coverage import Unplaced
from ..mapping import Bean
from ..untrusted import shown

MEBIBYTE: Final = 1 << 20
LONG: Final = 4_096
"""Characters of a line or a name from which on it is kept as a digest."""
_MOST_NAMES: Final = 64
"""Names of metrics by which lines that were lost are counted."""
_LONGEST_NAME: Final = 200
PIECE_BYTES: Final = 1 << 20
"""Length of the parts in which lines are looked at: a million short lines at once take ten times their bytes."""
_NAME_ENDS: Final = re.compile(rb"[{ \t]")
_LONG_STRING: Final = re.compile(rb'"((?:[^"\\]|\\.){%d,}+)"' % LONG, re.DOTALL)
_SHORT_STRINGS: Final = re.compile(
    rb'[^"]*+(?:"(?:[^"\\]{0,%d}+"|(?:[^"\\]|\\.){0,%d}+")[^"]*+)*+' % (LONG - 1, LONG - 1), re.DOTALL
)


class Shortening(Protocol):
    """Makes a body shorter in place, which has not ended yet."""

    enough: bool
    """True if no more of it is read."""

    def shorten(self, body: bytearray) -> None:
        """Shorten a body that is too long, as far as it has arrived; an incomplete line or string at its end stays."""
        ...


def digest_of(text: str) -> str:
    """Return a digest that identifies a long text among others."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


class LongNames:
    """
    The long names of MBeans in the answers of one Jolokia agent, each kept as its digest and its bean.

    A name with a client-id of 32 kB is not kept from read to read, and need not be when it is read: in its place stands
    a short one.
    """

    _BEGIN: Final = "long name "

    def __init__(self) -> None:
        self._beans: dict[str, Bean | None] = {}
        self.enough = False

    def short(self, name: str) -> str:
        """Return a name, or the digest that stands for a long one."""
        if len(name) < LONG:
            return name
        key = f"{self._BEGIN}{digest_of(name)}"
        if key not in self._beans:
            try:
                self._beans[key] = Bean.of(*parse_object_name(name))
            except MalformedName:
                self._beans[key] = None
        return key

    def bean(self, name: str) -> Bean | None:
        """Return the bean of a name that ``short`` returned. Raises ``MalformedName``."""
        if name.startswith(self._BEGIN):
            return self._beans.get(name)
        return Bean.of(*parse_object_name(name))

    def keep_only(self, names: set[str]) -> None:
        """Forget all names except these."""
        if self._beans:
            self._beans = {name: bean for name, bean in self._beans.items() if name in names}

    def shorten(self, body: bytearray) -> None:
        """Put short names in the places of long strings."""
        shortened = bytearray()
        position, size = 0, len(body)
        with memoryview(body) as view:
            while position < size:
                # everything up to the next long string
                ordinary = _SHORT_STRINGS.match(view, position)
                end = ordinary.end() if ordinary else position
                shortened += view[position:end]
                position = end
                match = _LONG_STRING.match(view, position)
                if match is None:  # no long string follows, or one that has not arrived in full
                    break
                shortened += self._literal(match[0])
                position = match.end()
            shortened += view[position:]
        body[:] = shortened

    def _literal(self, literal: bytes) -> bytes:
        """Return the string of JSON that replaces a string; one that is no text stays, and makes the answer refused."""
        try:
            name: str = json.loads(literal)
        except ValueError:
            return literal
        return json.dumps(self.short(name)).encode()


class LongLines:
    """
    Shortens a page of Prometheus text that is too long, by whole lines.

    Comments and the longest go first, then those that come last.

    Args:
        max_bytes: Bytes of the page that are kept.

    """

    def __init__(self, max_bytes: int) -> None:
        self._most = max_bytes
        self._kept = 0
        """Length of the beginning of the body that stays, in bytes."""
        self.enough = False
        self._lost = Counter[str]()
        self._example = ""

    def shorten(self, body: bytearray) -> None:
        """Keep whole lines that are short, as long as there is room; count the others."""
        end = body.rfind(b"\n") + 1
        remaining, start = bytearray(), self._kept
        while start < end:
            # the last line end in a piece, or that of a line which is longer than a piece
            stop = body.rfind(b"\n", start, start + PIECE_BYTES) + 1 or body.find(b"\n", start) + 1
            remaining += self._short_lines(bytes(body[start:stop]), len(remaining))
            start = stop
        if self.enough:
            del body[end:]
        body[self._kept : end] = remaining
        self._kept += len(remaining)

    def _short_lines(self, piece: bytes, used: int) -> bytes:
        """Return the lines of a piece that are kept behind ``used`` bytes of other pieces."""
        lines = piece.split(b"\n")[:-1]
        lines_to_keep = [line for line in lines if len(line) <= LONG and not line.startswith(b"#")]
        short_lines = b"\n".join([*lines_to_keep, b""])  # with a line end behind each
        for line in lines:
            if len(line) > LONG:
                self._lose(line[:_LONGEST_NAME])
        # a quarter stays free, so that the body is not shortened again at once
        room = 0 if self.enough else max(0, self._most * 3 // 4 - self._kept - used)
        if len(short_lines) <= room:
            return short_lines
        self.enough = True
        fits = short_lines.rfind(b"\n", 0, room) + 1
        if lost := short_lines.count(b"\n", fits):
            self._lose(short_lines[fits : fits + _LONGEST_NAME], lost)
        return short_lines[:fits]

    def _lose(self, beginning: bytes, count: int = 1) -> None:
        """Count lines that are left out, by the name of the metric in the ``beginning`` of the first."""
        name = _NAME_ENDS.split(beginning, maxsplit=1)[0].decode(errors="replace").strip()
        if len(self._lost) >= _MOST_NAMES and name not in self._lost:
            name = "others"
        self._lost[name] += count
        self._example = self._example or beginning.decode(errors="replace").strip()

    def lost(self) -> Unplaced | None:
        """Return the lines that were left out; None if there are none."""
        if not self._lost:
            return None
        count = self._lost.total()
        names = ", ".join(f"{number:,} of {shown(name)}" for name, number in self._lost.most_common(3))
        if self.enough:
            names = f"{names}, and all that follows"
        lines = "line was" if count == 1 else "lines were"
        return Unplaced(
            count=count,
            example=shown(self._example),
            labels=(),
            lost=(
                f"{count:,} {lines} left out, because the answer is longer than {self._most / MEBIBYTE:g} MiB "
                f"(max_answer_bytes): {names}"
            ),
        )
