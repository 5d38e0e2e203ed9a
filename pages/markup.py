"""Elements of a page, made so that names of strangers can be nothing but text."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

_DOCTYPE = "<!doctype html>\n"

Child = Element | str


def element(kind: str, *children: Child, **attributes: str | float) -> Element:
    """
    An element with its children and attributes; `class_` stands for class, `stroke_width` for stroke-width.

    Text in it, and in its attributes, is escaped when the page is written.
    """
    made = Element(
        kind, {_name(key): _value(value) for key, value in attributes.items()}
    )
    for child in children:
        _append(made, child)
    return made


def written(page: Element) -> str:
    """The page as a browser gets it, or a file has it."""
    return _DOCTYPE + tostring(page, encoding="unicode", method="html") + "\n"


def _append(parent: Element, child: Child) -> None:
    if not isinstance(child, str):
        parent.append(child)
    elif len(parent):
        parent[-1].tail = (parent[-1].tail or "") + child
    else:
        parent.text = (parent.text or "") + child


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
