"""The samples of Prometheus text that concern quotas; the thousands of other lines are not even parsed."""

from __future__ import annotations

import codecs
import re
from typing import Final

from ...errors import SourceUnreadable
from ...untrusted import shown

Key = str
"""Name and labels of a sample, as the agent writes them: whoever has seen it need not parse it again."""

_SAMPLE: Final = re.compile(
    r'([^{ \t]*+(?:[ \t]*+\{(?:[^"}]|"(?:[^"\\]|\\.)*+")*+\})?)(.*)', re.DOTALL
)
_EXEMPLAR: Final = " # "


MOST_LINES: Final = 1_000_000
"""Of a page: 64 MiB of an agent's own lines are 700,000."""
MOST_LINE_CHARACTERS: Final = 1 << 20
"""Of a sample: user and client id have 32 kB each, which quoting and escaping can make six times as long."""
_PIECE_BYTES: Final = 1 << 20


def page_of(answer: bytes) -> str:
    """
    The text of an answer with a line end before it, a character for each of its bytes.

    A single character beyond the first 65,536 would make a text of Python four times as long as its bytes. Almost all of a page is
    never looked at, so ``text_of`` decodes the few parts that are. Raises ``SourceUnreadable`` for what is no text, or too many lines.
    """
    starts = range(0, len(answer), _PIECE_BYTES)  # others get their turn between
    if sum(answer.count(b"\n", at, at + _PIECE_BYTES) for at in starts) > MOST_LINES:
        raise SourceUnreadable(
            f"the answer has more than {MOST_LINES:,} lines: is this a metrics agent, and of one node?"
        )
    if not answer.isascii():
        _check_utf8(answer)
    return (b"\n" + answer).decode("latin-1")


def _check_utf8(answer: bytes) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(answer), _PIECE_BYTES):
            decoder.decode(answer[start : start + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _no_text(error) from error


def _no_text(error: UnicodeDecodeError) -> SourceUnreadable:
    return SourceUnreadable(
        f"the answer is not Prometheus text ({shown(error)}): is this a metrics agent?"
    )


def text_of(part: str) -> str:
    """A part of a page, decoded."""
    return part if part.isascii() else part.encode("latin-1").decode(errors="replace")


def numbers_in(text: str, prefixes: tuple[str, ...]) -> tuple[list[Key], list[float]]:
    """
    The samples of the lines that begin with one of ``prefixes``, and their numbers.

    Understands the text format 0.0.4 and OpenMetrics: timestamps and exemplars are left
    out. Raises ``SourceUnreadable`` when a line has no number; labels are not checked.
    """
    lines = text.split("\n")
    if text.startswith((" ", "\t")) or "\n " in text or "\n\t" in text:
        lines = [line.lstrip(" \t") for line in lines]
    wanted = [line for line in lines if line.startswith(prefixes)]
    if max(map(len, wanted), default=0) > MOST_LINE_CHARACTERS:
        raise SourceUnreadable(
            f"the answer has a sample of more than {MOST_LINE_CHARACTERS:,} characters: is this a metrics agent?"
        )
    ends = [_end_of_key(line) for line in wanted]
    keys = [line[:end] for line, end in zip(wanted, ends, strict=True)]
    rests = [line[end:] for line, end in zip(wanted, ends, strict=True)]
    try:
        return keys, [_plain_number(rest) for rest in rests]
    except ValueError:
        return keys, [
            _number(line, rest) for line, rest in zip(wanted, rests, strict=True)
        ]


def _end_of_key(line: str) -> int:
    """Where name and labels end: neither a number nor a timestamp holds a brace, but an exemplar does."""
    end = line.rfind("}") + 1
    if end and _EXEMPLAR not in line:
        return end
    found = _SAMPLE.match(line)
    return found.end(1) if found else len(line)


def _plain_number(rest: str) -> float:
    if "_" in rest:  # Python's digits may be grouped, the format's may not
        raise ValueError(rest)
    return float(rest)


def _number(line: str, rest: str) -> float:
    """A number that may be followed by a timestamp, and by an exemplar."""
    words = rest.partition(_EXEMPLAR)[0].split()
    try:
        value, _ = _plain_number(words[0]), _plain_number(words[-1])
    except (ValueError, IndexError):
        raise SourceUnreadable(
            f"the answer is not Prometheus text: a line without a number ({shown(text_of(line))}); is this a metrics agent?"
        ) from None
    return value
