from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from quotascope.pages.markup import element, written


class _Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")))
def test_names_are_text(name: str) -> None:
    """Whatever a name holds, it makes no element and no attribute, and is read back as it was."""
    seen = _Seen(written(element("p", name, title=name)))
    assert seen.tags == [("p", [("title", name)])]
    assert seen.text == f"\n{name}\n"


def test_children_keep_their_order() -> None:
    """Text stands where it was given: before, between and after elements."""
    page = element("p", "a", "b", element("b", "c"), "d", "e", element("i"), "f")
    assert written(page) == "<!doctype html>\n<p>ab<b>c</b>de<i></i>f</p>\n"


def test_names_and_values_of_attributes() -> None:
    """What Python cannot name is spelt with underlines; numbers have no more than two decimals."""
    line = element(
        "line", class_="x", stroke_width=1.5, x1=2.0, x2=1 / 3, aria_label=""
    )
    assert line.attrib == {
        "class": "x",
        "stroke-width": "1.5",
        "x1": "2",
        "x2": "0.33",
        "aria-label": "",
    }
