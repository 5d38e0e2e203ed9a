"""Fields of events of any shape: versions of Spark add, drop and rename them."""

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
    """Return an object within an event; an empty one when there is none."""
    value = event.get(key)
    return value if isinstance(value, Mapping) else {}


def parts(event: Json, key: str) -> Iterable[Json]:
    """Return the objects of a list; none when there is no such list."""
    return [item for item in _list(event, key) if isinstance(item, Mapping)]


def needed(event: Json, key: str) -> int:
    """Return a number without which an event has no meaning. Raises `UnreadableEvent`."""
    value = number(event, key, None)
    if value is None:
        raise UnreadableEvent(f"{key} is not a number")
    return value


def number(event: Json, key: str, default: int | None) -> int | None:
    """Return a whole number of 64 bits, or the default."""
    value = event.get(key)
    return value if type(value) is int and abs(value) < _LARGEST else default


def text(event: Json, key: str) -> str:
    """Return a text of any length; empty when there is none."""
    value = event.get(key)
    return value if isinstance(value, str) else ""


def name(event: Json, key: str) -> str:
    """Return the beginning of a text."""
    return text(event, key)[:_LONGEST_NAME]


def moment(event: Json, key: str) -> float | None:
    """Return a time of a streaming event, in ISO 8601, as seconds since 1970; None when the field is no time."""
    try:
        return datetime.fromisoformat(text(event, key)).timestamp()
    except (ValueError, OverflowError):
        return None


def _list(event: Json, key: str) -> Sequence[object]:
    """Return a list of an event; an empty one when there is none."""
    value = event.get(key)
    return value if isinstance(value, list | tuple) else ()
