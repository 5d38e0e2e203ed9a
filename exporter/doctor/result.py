"""What a check found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How it is, from good to bad."""

    FINE = "fine"
    NOTE = "note"
    """Worth knowing, and nothing to mend."""
    LOOK = "look"
    """Works, but shows less than it could, or not for long."""
    BROKEN = "broken"
    """Does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One thing that was looked at."""

    check: str
    """What was checked, such as ``agents``."""
    verdict: Verdict
    text: str
    subject: str = ""
    """Of what, such as the name of a source; empty where there is only one."""
    advice: str = ""
    """What to do; empty where there is nothing to do, or the text says it."""


def worst(results: Iterable[Result]) -> Verdict:
    """The worst verdict, ``FINE`` without any result."""
    order = list(Verdict)
    return max((each.verdict for each in results), key=order.index, default=order[0])
