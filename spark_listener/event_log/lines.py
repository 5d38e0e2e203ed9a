"""Which lines of an event log are read: most need not be parsed to see that they do not matter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson

from ..events import WANTED

_BEGINS: Final = b'{"Event":"'
_HEAD: Final = 500
"""Bytes in which a task's numbers and its reason are found; names and texts come later."""
_TASK_END: Final = b"SparkListenerTaskEnd"
_TASK_START: Final = b"SparkListenerTaskStart"
_SUCCESS: Final = b'"Task End Reason":{"Reason":"Success"}'
_FIRST: Final = (b'"Stage Attempt ID":0,', b'"Attempt":0,')
_WANTED: Final = frozenset(kind.encode() for kind in WANTED)


def is_wanted(line: bytes) -> bool:
    """Whether a line may matter; when it is not written as Spark does, it may."""
    if not line.startswith(_BEGINS):
        return True
    kind = line[len(_BEGINS) : line.find(b'"', len(_BEGINS))].rpartition(b".")[2]
    if kind == _TASK_END:
        head = line[:_HEAD]
        return not (_SUCCESS in head and _is_first(head))
    if kind == _TASK_START:
        return not _is_first(line[:_HEAD])
    return kind in _WANTED


def event_of(line: bytes) -> Mapping[str, Any] | None:
    """The event in a line; None when there is none."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        event = _leniently(line)
    return event if isinstance(event, dict) else None


def _leniently(line: bytes) -> object:
    """Halves of characters are valid in JSON, but not to orjson."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_first(head: bytes) -> bool:
    return all(each in head for each in _FIRST)
