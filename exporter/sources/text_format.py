"""The Prometheus text format: its lines, series and numbers."""

from __future__ import annotations

import codecs
import re
from typing import Final

from ..errors import SourceUnreadable
from ..untrusted import shown
from .shortening import LONG, PIECE_BYTES, digest_of

SampleKey = str
"""Name and labels of a sample, as the agent writes them: one that was seen before need not be parsed again."""

_SAMPLE: Final = re.compile(r'([^{ \t]*+(?:[ \t]*+\{(?:[^"}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+\})?)(.*)', re.DOTALL)
_EXEMPLAR: Final = " # "
_INDENTED: Final = re.compile(r"\n[ \t]")


_LONGEST_NAME: Final = 200
MOST_LINES: Final = 1_000_000
"""Most lines of a page: 64 MiB of an agent's own lines are 700,000."""
MOST_LINE_CHARACTERS: Final = 1 << 20
"""
Longest line of a sample, in characters: user and client-id have 32 kB each, which quoting and escaping can make six
times as long.
"""


def page_of(answer: bytes | bytearray) -> str:
    """
    Return the text of an answer with a line end before it, a character for each of its bytes.

    A ``bytearray`` is emptied, so that its content is not held twice. A single character beyond the first 65,536 would
    make a text of Python four times as long as its bytes. Almost all of a page is never needed, so ``text_of`` decodes
    the few parts that are. Raises ``SourceUnreadable`` for what is no text, or too many lines.
    """
    starts = range(0, len(answer), PIECE_BYTES)  # other threads get their turn between two pieces
    if sum(answer.count(b"\n", start, start + PIECE_BYTES) for start in starts) > MOST_LINES:
        raise SourceUnreadable(
            f"the answer has more than {MOST_LINES:,} lines: is this a metrics agent, and of one node?"
        )
    if not answer.isascii():
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for start in starts:
                decoder.decode(answer[start : start + PIECE_BYTES])
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise SourceUnreadable(
                f"the answer is not Prometheus text ({shown(error)}): is this a metrics agent?"
            ) from error
    if isinstance(answer, bytes):
        return (b"\n" + answer).decode("latin-1")
    answer[:0] = b"\n"
    page = answer.decode("latin-1")
    answer.clear()
    return page


def text_of(part: str) -> str:
    """Return a part of a page, decoded."""
    return part if part.isascii() else part.encode("latin-1").decode(errors="replace")


def numbers_in(
    text: str, prefixes: tuple[str, ...], long: dict[SampleKey, str] | None = None
) -> tuple[list[SampleKey], list[float]]:
    """
    Return the samples of the lines that begin with one of ``prefixes``, and their numbers.

    The text format 0.0.4 and OpenMetrics are understood. Timestamps and exemplars are left out, and labels are not
    checked. With ``long``, a short key stands for a long one, and ``long`` gets the long one by the short one. Raises
    ``SourceUnreadable`` if a line has no number.
    """
    lines = text.split("\n")
    if text.startswith((" ", "\t")) or _INDENTED.search(text):
        lines = [line.lstrip(" \t") for line in lines]
    sample_lines = [line for line in lines if line.startswith(prefixes)]
    longest = max(map(len, sample_lines), default=0)
    if longest > MOST_LINE_CHARACTERS:
        raise SourceUnreadable(
            f"the answer has a sample of more than {MOST_LINE_CHARACTERS:,} characters: is this a metrics agent?"
        )
    keys_and_numbers = _plain_samples(sample_lines) or _samples(sample_lines)
    if long is not None and longest >= LONG:
        keys, numbers = keys_and_numbers
        return [key if len(key) < LONG else _short_key(key, long) for key in keys], numbers
    return keys_and_numbers


def _plain_samples(lines: list[str]) -> tuple[list[SampleKey], list[float]] | None:
    """Return series and numbers of lines that are labels, one blank and a number; None if any line has another form."""
    if any([_EXEMPLAR in line for line in lines]):  # noqa: C419 - a list is twice as fast as a generator
        return None
    halves = [line.rpartition(" ") for line in lines]
    keys = [key for key, _, _ in halves]
    texts = [text for _, _, text in halves]
    # Python's digits may be grouped, the format's may not
    if not all([key[-1:] == "}" for key in keys]) or "_" in "".join(texts):  # noqa: C419 - as above
        return None
    try:
        return keys, [*map(float, texts)]
    except ValueError:
        return None


def _samples(lines: list[str]) -> tuple[list[SampleKey], list[float]]:
    """Return series and numbers of any lines. Raises ``SourceUnreadable``."""
    ends = [_end_of_key(line) for line in lines]
    keys = [line[:end] for line, end in zip(lines, ends, strict=True)]
    endings = [line[end:] for line, end in zip(lines, ends, strict=True)]
    try:
        return keys, [_plain_number(number) for number in endings]
    except ValueError:
        return keys, [_number(line, number) for line, number in zip(lines, endings, strict=True)]


def _short_key(key: str, long: dict[SampleKey, str]) -> SampleKey:
    """Return the short key that stands for a long one: its name with a digest, which no page has in this place."""
    short = f"{key.partition('{')[0][:_LONGEST_NAME]}{{long {digest_of(key)}}}"
    long[short] = key
    return short


def _end_of_key(line: str) -> int:
    """Return the end of name and labels: a brace can follow in an exemplar, but not in a number or a timestamp."""
    end = line.rfind("}") + 1
    if end and _EXEMPLAR not in line:
        return end
    match = _SAMPLE.match(line)
    return match.end(1) if match else len(line)


def _plain_number(text: str) -> float:
    """Return a text as a number; blanks may stand around it. Raises ``ValueError`` for any other text."""
    if "_" in text:  # Python's digits may be grouped, the format's may not
        raise ValueError(text)
    return float(text)


def _number(line: str, text: str) -> float:
    """
    Return the number of a line, which a timestamp and an exemplar may follow.

    ``text`` is the part of the line after the labels. Raises ``SourceUnreadable``.
    """
    words = text.partition(_EXEMPLAR)[0].split()
    try:
        value, _ = _plain_number(words[0]), _plain_number(words[-1])  # a timestamp must be a number, too
    except (ValueError, IndexError):
        raise SourceUnreadable(
            f"the answer is not Prometheus text: a line without a number ({shown(text_of(line))}); is this a "
            "metrics agent?"
        ) from None
    return value


_NAME: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(.*)\})?", re.DOTALL)
_ONE: Final = r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t]*'
_LABEL: Final = re.compile(_ONE, re.DOTALL)
_LABELS: Final = re.compile(rf",?(?:{_ONE}(?:,[ \t]*|\Z))*+[ \t]*", re.DOTALL)
_ESCAPE: Final = re.compile(r'\\([\\n"])')


def parse_series(text: str) -> tuple[str, dict[str, str]]:
    """
    Return the name of a series, and its labels in order and unescaped.

    >>> parse_series('up{job="a b",}')
    ('up', {'job': 'a b'})

    Raises ``ValueError`` when the text is not what the format allows. Names in quotes, which Prometheus 3 knows, are
    sent only on request.
    """
    match = _NAME.fullmatch(text)
    if match is None:
        raise ValueError("no name of a metric")
    # first check the whole, in time proportional to its length whatever it holds
    inner = match[2] or ""
    is_well_formed = _LABELS.fullmatch(inner) is not None
    pairs: list[tuple[str, str]] = _LABEL.findall(inner) if is_well_formed else []
    labels = dict(pairs)
    if not is_well_formed or len(labels) < len(pairs):  # or a label is there twice
        raise ValueError("its labels are malformed")
    if "\\" in inner:
        labels = {
            label: _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], value) for label, value in pairs
        }
    return match[1], labels
