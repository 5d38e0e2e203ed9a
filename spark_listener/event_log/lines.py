"""Which lines of an event log are read: most need not be parsed to see that they do not matter."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from ..events import WANTED

_BEGINS: Final = b'{"Event":"'
_FIRST_ATTEMPT: Final = re.compile(  # in the order in which Spark 3.5 to 4.3 write it
    rb'\{"Event":"SparkListenerTask(?:Start|End)","Stage ID":\d+,"Stage Attempt ID":0,'
    rb'(?:"Task Type":"\w+","Task End Reason":\{"Reason":"Success"\},)?'
    rb'"Task Info":\{"Task ID":\d+,"Index":\d+,"Attempt":0,'
)
_KIND: Final = re.compile(r"SparkListener|[\w$]+\.")
"""How the name of an event begins: Spark's own, and the full names of classes."""
_WANTED: Final = frozenset(kind.encode() for kind in WANTED)


def is_wanted(line: bytes) -> bool:
    """Whether a line may matter; when it is not written as Spark does, it may."""
    if _FIRST_ATTEMPT.match(line):
        return False
    if not line.startswith(_BEGINS):
        return True
    kind = line[len(_BEGINS) : line.find(b'"', len(_BEGINS))]
    return kind.rpartition(b".")[2] in _WANTED


def event_of(line: bytes) -> Mapping[str, Any] | None:
    """The event in a line; None when there is none."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        event = _leniently(line)
    return event if isinstance(event, dict) and _is_kind(event.get("Event")) else None


def _is_kind(name: object) -> bool:
    return isinstance(name, str) and _KIND.match(name) is not None


def _leniently(line: bytes) -> object:
    """Halves of characters are valid in JSON, but not to orjson."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
