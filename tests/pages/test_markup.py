from __future__ import annotations

from html.parser import HTMLParser
from xml.etree.ElementTree import tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.pages.markup import BAR, element, framed, table, written
from quotascope.pages.style import STYLE


class _Seen(HTMLParser):
    """Tags and text of a page, as a browser reads them."""

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
    """No name makes an element or an attribute, and a browser shows it unchanged."""
    seen = _Seen(written(element("p", name, title=name)))
    assert [tag for tag in seen.tags if tag[0] != "bdi"] == [("p", [("title", name)])]
    assert seen.text == f"\n{name}\n"


def test_names_from_right_to_left_are_isolated() -> None:
    """Text beside them keeps its place: a client-id behind a user, a number behind a name; in drawings, too."""
    text = '7 \u05d0 / "\u05d1 8": 5 B/s (of \u0627_1 \u0628), caf\xe9'
    apart = '7 <bdi>\u05d0</bdi> / <bdi>"\u05d1 8"</bdi>: 5 B/s (of <bdi>\u0627_1 \u0628</bdi>), caf\xe9'
    assert tostring(element("p", text), encoding="unicode") == f"<p>{apart}</p>"
    assert element("title", text).text == apart.replace("<bdi>", "\u2068").replace("</bdi>", "\u2069")


def test_children_keep_their_order() -> None:
    """Text keeps its place before, between and after elements."""
    page = element("p", "a", "b", element("b", "c"), "d", "e", element("i"), "f")
    assert written(page) == "<!doctype html>\n<p>ab<b>c</b>de<i></i>f</p>\n"


def test_names_and_values_of_attributes() -> None:
    """Underlines stand for characters that Python names lack; numbers have no more than two decimals."""
    line = element("line", class_="x", stroke_width=1.5, x1=2.0, x2=1 / 3, aria_label="")
    assert line.attrib == {"class": "x", "stroke-width": "1.5", "x1": "2", "x2": "0.33", "aria-label": ""}


def test_page_needs_nothing_else() -> None:
    """A page includes its style, may fetch and run nothing, and its title is a line of at most 200 characters."""
    page = framed("a<b\n", [element("p", "x & y")])
    assert page == (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>a&lt;b\\n</title><style>{STYLE}</style></head>"
        "<body><main><p>x &amp; y</p></main></body></html>\n"
    )
    assert f"<title>{'x' * 199}…</title>" in framed("x" * 500, [])


def test_columns_have_the_kind_of_their_head() -> None:
    """# is for numbers, = for a fixed vocabulary, other heads are for names; elements may be cells."""
    node = table(("who", "#bytes", "=how"), [("etl", "7", element("b", "full"))])
    assert tostring(node, encoding="unicode") == (
        '<div class="wide few"><table>'
        '<thead><tr><th class="name">who</th><th class="number">bytes</th><th class="word">how</th></tr></thead>'
        '<tbody><tr><td class="name" data-head="who">etl</td><td class="number" data-head="bytes">7</td>'
        '<td class="word" data-head="how"><b>full</b></td></tr></tbody>'
        "</table></div>"
    )


def test_a_column_of_bars_is_left_out_as_a_whole() -> None:
    """Head and cells of a column of bars have its class, those without a bar too, and a phone shows none of them."""
    node = table(("who", BAR, "#bytes"), [("all", "", "9"), ("etl", element("svg", class_="share"), "7")])
    assert [cell.tag for cell in node.iterfind(".//*[@class='bar']")] == ["th", "td", "td"]
    assert node.get("class") == "wide few"
    assert ".few .bar { display: none; }" in STYLE


def test_row_of_another_length() -> None:
    """A row with more or fewer cells than heads is an error."""
    with pytest.raises(ValueError, match="zip"):
        table(("who", "#bytes"), [("etl",)])
