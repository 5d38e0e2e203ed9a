"""A page as a browser reads it, and names that are hostile to it."""

from __future__ import annotations

from html.parser import HTMLParser

ALONE = {"meta", "link", "input", "br"}
"""Elements that have no end."""

HOSTILE = "<script>alert(1)</script>\"'&<b onclick=x>\n\x1b\ud800\u05d0"


class Page(HTMLParser):
    """
    The text of a page, its tags and headings, and what its attributes say.

    Names from right to left are apart in it.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.tags: list[str] = []
        self.headings: list[str] = []
        self.elements: set[tuple[str, tuple[str, ...]]] = set()
        """Tags with the names of their attributes."""
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.elements.add((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the text, except for line ends of the template."""
        assert "\u05d0" not in data or self.open[-1] in {"bdi", "title", "option"}
        self.text += data if data.strip() else ""
        if self.open and self.open[-1] in {"h1", "h2"}:
            self.headings.append(data)

    def assert_runs_nothing(self, longest: int = 10_000) -> None:
        """No name became an element, an event or a link that leads elsewhere, and none fills the page."""
        assert self.tags.count("script") == 1
        assert self.values("script", "src") == ["-/page.js"]
        assert not [name for _, name, _ in self.attributes if name.startswith("on")]
        assert all(link.isascii() and link.isprintable() and "<" not in link for link in self.values("a", "href"))
        assert "\x1b" not in self.text
        assert len(self.text) < longest
        self.text.encode()

    def values(self, tag: str, name: str) -> list[str]:
        return [value for *where, value in self.attributes if where == [tag, name]]
