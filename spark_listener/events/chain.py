"""The exceptions that a failure's text names, and nothing else that it quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

_TRACEBACK = "Traceback (most recent call last):"
_GROUP = f"+ Exception Group {_TRACEBACK}"
_MARGIN = re.compile(r" {2,100}\| ?")
_PYTHON = re.compile(r"([\w.<>]{1,500})(?:: (.*))?$")
_JAVA = re.compile(r"(Caused by: |Suppressed: )?([\w$.]{1,500})(?:: (.*))?$")
_FRAME = re.compile(r"\t+(?:at |\.\.\. \d)")
_FRAMELESS = "org.apache.kafka."
_PYTHON_EXCEPTION = "org.apache.spark.api.python.PythonException"
_MOST_CHARACTERS = 1_000_000
_LONGEST_LINE = 2_000


class Raised(NamedTuple):
    """One exception of a chain."""

    name: str
    """The class with its module or package."""
    said: str
    """The first line of its message."""


def python_chain(text: str) -> tuple[Raised, ...]:
    """
    The exceptions of a Python traceback, outermost first: causes, contexts and members of groups.

    A line counts where a traceback ends with it. Quoted source, notes and further lines of messages do not.
    """
    return tuple(_outermost_first(line for part in _parts(text) for line in part))


def java_chain(text: str) -> tuple[Raised, ...]:
    """
    The exceptions of a Java stack trace, outermost first: causes and suppressed ones; where Python raised one, its chain as well.

    A line counts where the frames of another exception have just ended, so not in the midst of a message.
    """
    found: list[Raised] = []
    for part in _parts(text):
        for is_frame, lines in groupby(part, lambda line: bool(_FRAME.match(line))):
            if not is_frame:
                found.extend(_of_java(list(lines), outermost=not found))
    return tuple(found)


def _of_java(lines: Sequence[str], *, outermost: bool) -> Iterator[Raised]:
    """What the lines between two stack traces name: one exception and the rest of its message."""
    for index, line in enumerate(lines):
        match = _JAVA.match(line.lstrip("\t"))
        if match is None or not (match[1] or (outermost and index == 0)):
            return
        yield Raised(match[2], match[3] or "")
        if match[2] == _PYTHON_EXCEPTION:
            yield from _outermost_first([match[3] or "", *lines[index + 1 :]])
        if not match[2].startswith(_FRAMELESS):  # those have no frames of their own
            return


def _outermost_first(lines: Iterable[str]) -> list[Raised]:
    return list(_of_python(lines))[::-1]


def _of_python(lines: Iterable[str]) -> Iterator[Raised]:
    inside = in_group = False
    for index, line in enumerate(lines):
        bare = _MARGIN.sub("", line, count=1) if in_group else line
        if inside:
            if bare[:1].strip():
                inside = False
                yield from _python_line(bare)
        elif bare.strip(" ") == _GROUP or (index == 0 and bare.endswith(_GROUP)):
            inside = in_group = True
        else:  # Spark 4.3 has a sentence of its own before the first
            inside = bare == _TRACEBACK or (index == 0 and bare.endswith(_TRACEBACK))


def _python_line(line: str) -> Iterator[Raised]:
    match = _PYTHON.match(line)
    if match is not None:
        yield Raised(match[1], match[2] or "")


def _parts(text: str) -> Iterator[list[str]]:
    """The lines of a text, of a very long one those at its two ends."""
    if len(text) <= _MOST_CHARACTERS:
        yield _lines(text)
        return
    yield _lines(text[: _MOST_CHARACTERS // 2])[:-1]
    yield _lines(text[-_MOST_CHARACTERS // 2 :])[1:]


def _lines(text: str) -> list[str]:
    return [line[:_LONGEST_LINE].rstrip("\r") for line in text.split("\n")]
