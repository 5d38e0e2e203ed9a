"""The unit of each family in UCUM, as OpenTelemetry wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .family import Family

UCUM: Final[Mapping[str, str]] = {
    "": "",
    "bytes/s": "By/s",
    "ratio": "1",
    "seconds": "s",
    # What is counted stands in braces: to UCUM a note without meaning, to readers the unit.
    "attempts": "{attempt}",
    "changes": "{change}",
    "connections": "{connection}",
    "connections/s": "{connection}/s",
    "entities": "{entity}",
    "errors": "{error}",
    "events": "{event}",
    "executors": "{executor}",
    "exports": "{export}",
    "mutations": "{mutation}",
    "mutations/s": "{mutation}/s",
    "offsets": "{offset}",
    "points": "{point}",
    "readings": "{reading}",
    "requests": "{request}",
    "responses": "{response}",
    "restarts": "{restart}",
    "retries": "{retry}",
    "rules": "{rule}",
    "samples": "{sample}",
    "series": "{series}",
    "sources": "{source}",
    "starts": "{start}",
    "threads": "{thread}",
}
"""By the words of the catalog. Families with values of 0 and 1 only have no unit: "1" is for ratios."""


def ucum(family: Family) -> str:
    """The unit of a family. Raises ``KeyError`` for one that this table lacks."""
    return UCUM[family.unit]
