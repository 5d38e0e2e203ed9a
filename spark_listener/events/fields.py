"""Reads fields of events of any shape: versions of Spark add, drop and rename them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from ..errors import UnreadableEvent

Json: TypeAlias = Mapping[str, Any]
_LARGEST = 2**63
_LONGEST_NAME = 1_000
"""Characters that are kept of a name."""


def part(event: Json, key: str) -> Json:
    """An object within an event; an empty one when there is none."""
    found = event.get(key)
    return found if isinstance(found, Mapping) else {}


def parts(event: Json, key: str) -> Iterable[Json]:
    """The objects of a list; none when there is no such list."""
    return [each for each in _list(event, key) if isinstance(each, Mapping)]


def needed(event: Json, key: str) -> int:
    """A number without which an event says nothing. Raises `UnreadableEvent`."""
    found = number(event, key, None)
    if found is None:
        raise UnreadableEvent(f"{key} is not a number")
    return found


def number(event: Json, key: str, default: int | None) -> int | None:
    """A whole number of 64 bits."""
    found = event.get(key)
    return found if type(found) is int and abs(found) < _LARGEST else default


def text(event: Json, key: str) -> str:
    """A text of any length; empty when there is none."""
    found = event.get(key)
    return found if isinstance(found, str) else ""


def name(event: Json, key: str) -> str:
    """The beginning of a text."""
    return text(event, key)[:_LONGEST_NAME]


def moment(event: Json, key: str) -> float | None:
    """ISO 8601, as streaming events have it, in seconds since 1970; None when it is not."""
    try:
        return datetime.fromisoformat(text(event, key)).timestamp()
    except (ValueError, OverflowError):
        return None


def _list(event: Json, key: str) -> Sequence[object]:
    found = event.get(key)
    return found if isinstance(found, list | tuple) else ()
