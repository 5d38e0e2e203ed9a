"""What pydantic found wrong, told as the place where a user must mend it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..untrusted import one_line
from .file import Place
from .model import Config
from .schema import is_secret, section_at
from .section import Section

_LONGEST = 60
_QUERY = re.compile(r"\?[^\s'\"]+")
_STRUCTURE = {"model_type", "dict_type", "list_type", "tuple_type"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Where the values of a configuration come from."""

    lines: Mapping[Place, int] = field(default_factory=dict)
    raw: Mapping[Place, str] = field(default_factory=dict)
    """Values as written, where something was filled in."""
    overrides: Mapping[Place, str] = field(default_factory=dict)
    """The variable or flag that gave the value at a place."""
    broken: frozenset[Place] = frozenset()
    """Where a problem was told already."""
    root: type[Section] = Config
    """What was to be read."""

    def of(self, place: Place) -> tuple[int, str]:
        """Line (0 outside the file) and name of the origin of the nearest place that has one."""
        for end in range(len(place), -1, -1):
            if place[:end] in self.overrides:
                return 0, self.overrides[place[:end]]
            if place[:end] in self.lines:
                line = self.lines[place[:end]]
                return line, f"line {line}"
        return 0, ""


Problem = tuple[int, str]
"""The line of the file (0 outside of it), and a sentence that begins with the place."""


def problems(error: ValidationError, origins: Origins) -> list[Problem]:
    """One problem for each mistake that pydantic found."""
    return [
        _problem(origins, details)
        for details in error.errors(include_url=False)
        if details["loc"] not in origins.broken
    ]


def _problem(origins: Origins, details: ErrorDetails) -> Problem:
    line, where = origins.of(details["loc"])
    text = _sentence(details, origins)
    return line, f"{where}: {text}" if where else text


def _sentence(details: ErrorDetails, origins: Origins) -> str:
    place = details["loc"]
    match details["type"]:
        case "extra_forbidden":
            return _unknown_key(place, origins.root)
        case "missing":
            return f"{dotted(place[:-1]) or 'the configuration'} lacks the key {str(place[-1])!r}"
        case "value_error":
            text = str(details.get("ctx", {}).get("error", details["msg"]))
            return f"{dotted(place)} {text}" if place else text
        case kind if kind in _STRUCTURE:
            wanted = (
                "keys and values" if kind in {"model_type", "dict_type"} else "a list"
            )
            return f"{dotted(place)}: expected {wanted}"
    return f"{dotted(place)}: {_expectation(details)}{_got(details, place, origins)}"


def _expectation(details: ErrorDetails) -> str:
    text = details["msg"].partition(", unable to")[0]
    return text.replace("Input should be", "expected", 1)


def _got(details: ErrorDetails, place: Place, origins: Origins) -> str:
    if is_secret(place, origins.root):
        return ""
    given = repr(origins.raw.get(place, details["input"]))
    shown = _QUERY.sub("?…", given)  # of a URL: tokens are there
    return f", got {shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '…'}"


def _unknown_key(place: Place, root: type[Section]) -> str:
    key, section = str(place[-1]), section_at(place[:-1], root)
    known = list(section.model_fields) if section else []
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    where = f" under {dotted(place[:-1])}" if place[:-1] else ""
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    return f"unknown key {key!r}{where}; {hint}"


def dotted(place: Place) -> str:
    """A place as people write it: ``sources[0].url``."""
    return one_line("".join(_steps(place)).removeprefix("."))


def _steps(place: Place) -> Iterator[str]:
    for step in place:
        if step == "[key]":  # pydantic's mark for a key that is wrong itself
            continue
        yield f"[{step}]" if isinstance(step, int) else f".{step}"
