"""HTML elements, tables and whole pages, in which untrusted names can be nothing but text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final
from xml.etree.ElementTree import Element, tostring

from .style import STYLE
from .words import isolated, shown

Child = Element | str

_DOCTYPE: Final = "<!doctype html>\n"
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_MOST_ROWS: Final = 100
_FEW: Final = 9
"""Columns that a window of 881 pixels has room for."""
_JOINTS: Final = re.compile(r"(?<=[=_/.:])(?=\w)")
_KINDS: Final = {"#": "number", "=": "word"}
_ONLY_TEXT: Final = frozenset({"text", "title"})
"""Elements that have no others in them; isolating characters stand for `bdi`."""


def element(kind: str, *children: Child, **attributes: str | float) -> Element:
    """
    An element with its children and attributes; `class_` stands for class, `stroke_width` for stroke-width.

    Text in it, and in its attributes, is escaped when the page is written; names from right to left are isolated.
    """
    made = Element(kind)
    for key, value in attributes.items():
        text = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
        made.set(key.rstrip("_").replace("_", "-"), text)
    for child in children:
        for place, part in enumerate(isolated(child) if isinstance(child, str) and kind != "bdi" else [child]):
            inner = part
            if place % 2:
                inner = f"\u2068{part}\u2069" if kind in _ONLY_TEXT else element("bdi", part)
            if not isinstance(inner, str):
                made.append(inner)
            elif len(made):
                made[-1].tail = (made[-1].tail or "") + inner
            else:
                made.text = (made.text or "") + inner
    return made


def written(page: Element) -> str:
    """The text of a page, as a browser gets it or a file has it."""
    return _DOCTYPE + tostring(page, encoding="unicode", method="html") + "\n"


def framed(title: str, sections: Iterable[Element]) -> str:
    """The text of a report: one file without scripts, which loads no fonts and no images."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", shown(title, 200)),
        element("style", STYLE),
    )
    drawn = (element("div", each, class_="drawing") if each.tag == "svg" else each for each in sections)
    body = element("body", element("main", *drawn))
    return written(element("html", head, body, lang="en"))


def table(heads: Sequence[str], rows: Sequence[Sequence[Child]], most: int = _MOST_ROWS) -> Element:
    """
    A table that fits its window: in a narrow one a row is a block, in which each cell has its head beside it.

    Columns with a head that begins with # hold numbers, with = words of ours, else names; rows beyond `most` are only counted.
    """
    kinds = [_KINDS.get(head[:1], "name") for head in heads]
    named = zip(heads, kinds, strict=True)
    head = (element("th", name.lstrip("#="), class_=kind) for name, kind in named)
    made = element("table", element("thead", element("tr", *head)))
    body = element("tbody")
    for row in rows[:most]:
        cells = zip(row, kinds, heads, strict=True)
        body.append(element("tr", *(_cell(*cell) for cell in cells)))
    made.append(body)
    if len(rows) > most:
        made.append(element("caption", f"and {len(rows) - most:,} more"))
    many = " many" if len(heads) > _FEW else ""
    return element("div", made, class_=f"wide{many}")


def _cell(child: Child, kind: str, head: str) -> Element:
    """A cell; a name may be broken after a joint, before it is broken within a word."""
    children: list[Child] = [child]
    if kind == "name" and isinstance(child, str) and len(isolated(child)) == 1:
        first, *others = _JOINTS.split(child)
        children = [first, *chain(*((element("wbr"), other) for other in others))]
    made = element("td", *children, class_=kind)
    made.set("data-head", head.lstrip("#="))
    return made
