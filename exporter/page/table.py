"""Tables of the page, and names in them."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from quotascope.pages.markup import Child, element

from ..untrusted import one_line

_LONGEST_NAME = 200


def table(
    caption: str, headers: Iterable[str], rows: Iterable[Iterable[Child]]
) -> Element:
    """A table whose first column names the rows; a wide one can be scrolled, with keys as well."""
    head = element("tr", *(element("th", text, scope="col") for text in headers))
    body = element("tbody", *(_row(list(cells)) for cells in rows))
    made = element("table", element("caption", caption), element("thead", head), body)
    return scrolled(made, caption)


def scrolled(wide: Element, label: str) -> Element:
    """What is wider than the window moves by itself."""
    return element(
        "div", wide, class_="wide", tabindex="0", role="region", aria_label=label
    )


def name(text: str) -> str:
    """A name of somebody else's, as long as a table bears it."""
    return one_line(text, _LONGEST_NAME)


def _row(cells: list[Child]) -> Element:
    first = element("th", cells[0], scope="row")
    return element("tr", first, *(element("td", cell) for cell in cells[1:]))
