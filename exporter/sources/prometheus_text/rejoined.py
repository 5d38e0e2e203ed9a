"""
Labels that greedy rules of a jmx_exporter cut from the name of a quota bean, back to its key properties.

Rules such as ``type=(.+), user=(.+), client-id=(.+)`` cut a client-id that looks like a part
of an MBean's name in the wrong place: but joined again, the labels are the name as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from quotascope.metrics import MalformedName, unquote_tag_value

_PROPERTY: Final = re.compile(
    r'(type|user|client-id)=("(?:[^"\\]|\\.)*+"|[^",]*)(?:, |\Z)', re.DOTALL
)


def rejoined(labels: Iterable[tuple[str, str]]) -> dict[str, str] | None:
    """The properties, unquoted, from labels under their properties' keys and in their order; None when they are none."""
    pairs = dict(labels)
    text = ", ".join([f"{key}={value}" for key, value in pairs.items()])
    if '"' not in text and text.count(", ") < len(pairs):
        return pairs  # nothing is quoted, so nothing was cut
    try:
        return dict(_properties(text))
    except MalformedName:
        return None


def _properties(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _PROPERTY.match(text, position)
        if found is None:
            raise MalformedName(text, "not the properties of a quota bean")
        yield found[1], unquote_tag_value(found[2])
        position = found.end()
