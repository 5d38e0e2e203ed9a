"""The samples of Prometheus text that concern quotas; the thousands of other lines are not even parsed."""

from __future__ import annotations

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


def decoded(answer: bytes) -> str:
    """The text of an answer. Raises ``SourceUnreadable`` when it is none."""
    try:
        return answer.decode()
    except UnicodeDecodeError as error:
        raise SourceUnreadable(
            f"the answer is not Prometheus text ({shown(error)}): is this a metrics agent?"
        ) from error


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
            f"the answer is not Prometheus text: a line without a number ({shown(line)}); is this a metrics agent?"
        ) from None
    return value
