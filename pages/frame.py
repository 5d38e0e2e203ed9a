"""A page in one file that needs nothing else: no script, no font and no picture from anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from .markup import element, written
from .words import shown

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def framed(title: str, style: str, sections: Iterable[Element]) -> str:
    """The text of a file; whatever the names in its title and sections are, they are text."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", shown(title, 200)),
        element("style", style),
    )
    body = element("body", element("main", *sections))
    return written(element("html", head, body, lang="en"))
