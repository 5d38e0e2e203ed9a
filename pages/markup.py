"""HTML elements, tables and whole pages, in which untrusted names can be nothing but text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final
from xml.etree.ElementTree import Element, tostring

from .style import STYLE
from .words import isolated, shown

Child = Element | str

_DOCTYPE: Final = "<!doctype html>\n"
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_MANY: Final = 9
"""Number of columns for which a window of 881 pixels has room."""
_FEW: Final = 4
"""Number of columns for which a phone has room."""
_JOINTS: Final = re.compile(r"(?<=[=_/.:])(?=\w)")
BAR: Final = "|"
"""Head of a column of bars, which a narrow window leaves out; a row without a bar has an empty cell."""
_KINDS: Final = {"#": "number", "=": "word", BAR: "bar"}
_ONLY_TEXT: Final = frozenset({"text", "title"})
"""Elements without child elements, in which isolating characters replace `bdi`."""


def element(kind: str, *children: Child, **attributes: str | float) -> Element:
    """
    Return an element with its children and attributes; `class_` stands for class, `stroke_width` for stroke-width.

    Text in it, and in its attributes, is escaped when the page is written; names from right to left are isolated.
    """
    node = Element(kind)
    for key, value in attributes.items():
        text = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
        node.set(key.rstrip("_").replace("_", "-"), text)
    for child in children:
        for place, part in enumerate(isolated(child) if isinstance(child, str) and kind != "bdi" else [child]):
            inner = part
            if place % 2:  # every second part is from right to left
                inner = f"\u2068{part}\u2069" if kind in _ONLY_TEXT else element("bdi", part)
            if not isinstance(inner, str):
                node.append(inner)
            elif len(node):
                node[-1].tail = (node[-1].tail or "") + inner
            else:
                node.text = (node.text or "") + inner
    return node


def written(page: Element) -> str:
    """Return a page as HTML text."""
    return _DOCTYPE + tostring(page, encoding="unicode", method="html") + "\n"


def framed(title: str, sections: Iterable[Element]) -> str:
    """Return a report as HTML text: one file without scripts, which loads no fonts and no images."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", shown(title, 200)),
        element("style", STYLE),
    )
    body = element("body", element("main", *scrolling(sections)))
    return written(element("html", head, body, lang="en"))


def scrolling(sections: Iterable[Element]) -> Iterator[Element]:
    """Yield the sections, drawings in a frame that scrolls in a narrow window."""
    for section in sections:
        yield element("div", section, class_="drawing") if section.tag == "svg" else section


def table(heads: Sequence[str], rows: Sequence[Sequence[Child]], caption: str = "") -> Element:
    """
    Return a table that fits its window: in a narrow one, a row is a block of cells with their heads beside them.

    A table of few columns stays a table, without bars.

    Args:
        heads: see `head_of`.
        rows: the cells.
        caption: a line below the table.

    """
    kinds = [head_of(head) for head in heads]
    head = (element("th", name, class_=kind) for kind, name in kinds)
    body = element("tbody")
    for row in rows:
        body.append(element("tr", *(_cell(cell, *kind) for cell, kind in zip(row, kinds, strict=True))))
    content = element("table", element("thead", element("tr", *head)), body)
    if caption:
        content.append(element("caption", caption))
    size = " many" if len(heads) > _MANY else " few" if len(heads) - heads.count(BAR) <= _FEW else ""
    return element("div", content, class_=f"wide{size}")


def head_of(head: str) -> tuple[str, str]:
    """
    Return the kind of a column and its head without the prefix: # for numbers, = for a fixed vocabulary, | for bars.

    >>> head_of("#used"), head_of("=quota"), head_of("entity"), head_of("##1")
    (('number', 'used'), ('word', 'quota'), ('name', 'entity'), ('number', '#1'))
    """
    kind = _KINDS.get(head[:1])
    return ("name", head) if kind is None else (kind, head[1:])


def _cell(child: Child, kind: str, head: str) -> Element:
    """Return a cell in which a name breaks after a joint rather than within a word."""
    children: list[Child] = [child]
    if kind == "name" and isinstance(child, str) and len(isolated(child)) == 1:
        first_part, *parts = _JOINTS.split(child)
        children = [first_part, *chain(*((element("wbr"), part) for part in parts))]
    cell = element("td", *children, class_=kind)
    cell.set("data-head", head)
    return cell
