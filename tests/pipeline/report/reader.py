"""Reads a page as a browser does."""

from __future__ import annotations

from html.parser import HTMLParser


class Reader(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds: set[str] = set()
        self.attributes: set[str] = set()
        self.reported: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.reported.append(data)

    @property
    def text(self) -> str:
        return "|".join(self.reported)


PLAIN = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "span", "div", "ul", "li"),
    *("table", "thead", "tbody", "tr", "th", "td", "caption", "svg", "g", "rect", "line", "path", "text", "b"),
    *("pre", "wbr", "bdi", "details", "summary"),
}
"""Elements that run nothing and load nothing."""
HARMLESS = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "viewbox", "role", "x", "y", "x1", "x2", "y1", "y2"),
    *("d", "width", "height", "rx", "fill-opacity", "stroke-dasharray", "data-head", "textlength", "lengthadjust"),
}
"""Attributes of the same kind."""
