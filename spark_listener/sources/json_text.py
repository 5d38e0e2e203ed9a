"""JSON to events."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

try:
    import orjson

    _loads: Callable[[str], Any] = orjson.loads
except ImportError:  # a driver whose platform has no wheel of it
    _loads = json.loads


def event(text: str) -> dict[str, Any] | None:
    """The event that the text holds; None when it holds none."""
    try:
        value = _loads(text)
    except ValueError:
        value = _leniently(text)
    return value if isinstance(value, dict) else None


def _leniently(text: str) -> object:
    """Spark writes NaN where a number is none, which is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
