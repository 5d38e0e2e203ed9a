"""Tables of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

from .markup import Child, element

MOST: Final = 100
_KINDS: Final = {"#": "number", "=": "word"}


def table(
    heads: Sequence[str], rows: Sequence[Sequence[Child]], most: int = MOST
) -> Element:
    """Columns whose head begins with # hold numbers, with = words of ours, else names; rows beyond `most` are counted only."""
    kinds = [_KINDS.get(head[:1], "name") for head in heads]
    cells = zip(heads, kinds, strict=True)
    head = (element("th", name.lstrip("#="), class_=kind) for name, kind in cells)
    made = element("table", element("thead", element("tr", *head)))
    body = element("tbody")
    for row in rows[:most]:
        columns = zip(row, kinds, strict=True)
        body.append(
            element("tr", *(element("td", each, class_=kind) for each, kind in columns))
        )
    made.append(body)
    if len(rows) > most:
        made.append(element("caption", f"and {len(rows) - most:,} more"))
    return element("div", made, class_="wide")
