"""Choices of order, quota type, text and position of `quotascope top`, by options and keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from quotascope.metrics.kafka.entities import QuotaType

if TYPE_CHECKING:
    from quotascope.quotas.team_finder import TeamFinder

END: Final = "end"
ENTER: Final = "enter"
ESCAPE: Final = "escape"
BACKSPACE: Final = "backspace"
UP: Final = "up"
DOWN: Final = "down"
PAGE_UP: Final = "page up"
PAGE_DOWN: Final = "page down"
HOME: Final = "home"
"""Keys that are no characters; the others have the name of their character."""

_PAGE: Final = 10
_LONGEST_TEXT: Final = 60


class TopOrder(StrEnum):
    """Order of the rows."""

    URGENCY = "urgency"
    USED = "used"
    DELAY = "delay"
    NAME = "name"
    USAGE = "usage"


ALL_TYPES: Final = "all"
TYPES: Final = (ALL_TYPES, *(quota_type.label for quota_type in QuotaType))
"""Labels of the quota types that rows can be limited to."""


def type_named(text: str) -> str:
    """Return one of `TYPES`. Raises ``ValueError`` for any other text."""
    if text not in TYPES:
        raise ValueError(f"{text!r} is not one of {', '.join(map(repr, TYPES))}")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """State that options and keys choose."""

    order: TopOrder = TopOrder.URGENCY
    kind: str = ALL_TYPES
    """Label of the rows' quota type, or `ALL_TYPES`."""
    text: str = ""
    """Text that users or client-ids contain, ignoring case."""
    typing: bool = False
    """True while keys are characters of ``text``."""
    scrolled: int = 0
    """Number of rows above the screen."""
    over: bool = False
    """True if the command is to end."""
    teams: TeamFinder | None = None
    """Teams of entities, None for none; no key changes them."""

    def pressed(self, key: str) -> Choices:
        """Return the choices after a key; an unknown key changes nothing."""
        if key == END:
            return replace(self, over=True)
        return self._after_text_key(key) if self.typing else self._after_command_key(key)

    def _after_text_key(self, key: str) -> Choices:
        """Return the choices after a key that changes the text, or ends typing."""
        if key == ENTER:
            return replace(self, typing=False)
        if key == ESCAPE:
            return replace(self, typing=False, text="")
        if key == BACKSPACE:
            return replace(self, text=self.text[:-1], scrolled=0)
        if len(key) == 1 and key.isprintable() and len(self.text) < _LONGEST_TEXT:
            return replace(self, text=self.text + key, scrolled=0)
        return self

    def _after_command_key(self, key: str) -> Choices:
        """Return the choices after a key that is a command, or scrolls."""
        match key:
            case "q":
                return replace(self, over=True)
            case "s":
                return replace(self, order=_after(tuple(TopOrder), self.order), scrolled=0)
            case "t":
                return replace(self, kind=_after(TYPES, self.kind), scrolled=0)
            case "/":
                return replace(self, typing=True)
            case "escape":
                return replace(self, text="", scrolled=0)
        return replace(self, scrolled=max(0, self.scrolled + _MOVES.get(key, 0)))


_MOVES: Final = {
    UP: -1,
    "k": -1,
    DOWN: 1,
    "j": 1,
    PAGE_UP: -_PAGE,
    PAGE_DOWN: _PAGE,
    " ": _PAGE,
    HOME: -(10**9),
}


_Member = TypeVar("_Member", bound=str)


def _after(members: tuple[_Member, ...], member: _Member) -> _Member:
    """Return the next member; after the last one, the first."""
    return members[(members.index(member) + 1) % len(members)]
