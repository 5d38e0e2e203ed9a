"""Troubles of a node and their times: the same in each process that asks, without communication."""

import random
import threading
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Mood(StrEnum):
    """Behavior of a server for a while."""

    GOOD = "good"
    LATE = "late"
    """Answers after a second, which is in time."""
    REFUSED = "refused"
    """Nothing listens; the next listener is a new process."""
    CUT = "cut"
    """Hangs up in the middle of the answer."""
    SLOW = "slow"
    """Answers after the client has given up."""
    SILENT = "silent"
    """Takes the request and never answers."""
    FAILING = "failing"
    """HTTP 503."""
    GARBLED = "garbled"
    """Answers, but with the page of a proxy."""
    REDIRECTING = "redirecting"
    ENDLESS = "endless"
    """Answers without an end."""


UP: Final = frozenset({Mood.GOOD, Mood.LATE})
"""An exporter is to call this source up, and with any other mood down."""
TROUBLES: Final = {
    Mood.REFUSED: 6,
    Mood.CUT: 3,
    Mood.LATE: 3,
    Mood.SLOW: 2,
    Mood.SILENT: 2,
    Mood.FAILING: 2,
    Mood.GARBLED: 2,
    Mood.REDIRECTING: 1,
    Mood.ENDLESS: 1,
}
"""Frequency of each trouble, relative to the others."""
GOOD_SECONDS: Final = (30.0, 110.0)
BAD_SECONDS: Final = (8.0, 40.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """One mood from a moment to another, in seconds since the run began."""

    mood: Mood
    begin: float
    end: float
    life: int
    """Number of earlier starts of the node."""
    born: float
    """Time of its last start."""

    def settled(self, moment: float, seconds: float) -> bool:
        """Return whether the spell has lasted for some seconds, and has not ended."""
        return self.begin + seconds <= moment < self.end


class Weather:
    """The moods of one server, drawn from its name; several threads may ask."""

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._random = random.Random(f"weather of {name}")  # noqa: S311 - no secrets
        self._spells = [Spell(mood=Mood.GOOD, begin=0, end=self._long(GOOD_SECONDS), life=0, born=0)]

    def at(self, seconds: float) -> Spell:
        """Return the spell some seconds after the beginning."""
        with self._lock:  # a spell that is drawn twice is another one than the server's
            while self._spells[-1].end <= seconds:
                self._spells.append(self._after(self._spells[-1]))
        place = bisect_right(self._spells, seconds, key=lambda spell: spell.begin)
        return self._spells[max(place - 1, 0)]

    def _after(self, spell: Spell) -> Spell:
        good = spell.mood is not Mood.GOOD
        restarted = spell.mood is Mood.REFUSED
        return Spell(
            mood=Mood.GOOD if good else self._trouble(),
            begin=spell.end,
            end=spell.end + self._long(GOOD_SECONDS if good else BAD_SECONDS),
            life=spell.life + restarted,
            born=spell.end if restarted else spell.born,
        )

    def _trouble(self) -> Mood:
        (mood,) = self._random.choices(list(TROUBLES), list(TROUBLES.values()))
        return mood

    def _long(self, bounds: tuple[float, float]) -> float:
        return self._random.uniform(*bounds)
