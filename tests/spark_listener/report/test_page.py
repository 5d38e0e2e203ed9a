from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.spark_listener.report.throttled import HOSTILE, log
from tests.strategies import examples

from quotascope.spark_listener.report import page, read_account

KNOWN = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "p",
    "span",
    "div",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "caption",
    "svg",
    "g",
    "rect",
    "line",
    "text",
}
HARMLESS = {
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "viewBox",
    "viewbox",
    "xmlns",
    "role",
    "aria-label",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "width",
    "height",
    "fill",
    "rx",
    "preserveaspectratio",
}


class Reader(HTMLParser):
    """Reads a page as a browser does."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[str] = set()
        self.attributes: set[str] = set()
        self.told: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.kinds.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Text."""
        self.told.append(data)


def read(text: str) -> Reader:
    """What is on a page."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


@pytest.mark.parametrize("name", ["", HOSTILE, "x" * 10_000])
def test_page_holds_nothing_that_runs(tmp_path: Path, name: str) -> None:
    """No script, no address, no handler: whatever names are, they are text."""
    text = page(read_account(log(tmp_path / "app-1", name)))
    found = read(text)
    assert found.kinds <= KNOWN
    assert found.attributes <= HARMLESS
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "@import" not in text
    assert len(text.encode()) < 100_000


def test_page_tells_all(tmp_path: Path) -> None:
    """Tables and timeline are there, with what the tables of the terminal say."""
    found = read(page(read_account(log(tmp_path / "app-1"))))
    told = "|".join(found.told)
    for words in (
        "nightly",
        "billing",
        "clicks-reader",
        "kafka_timeout_throttled",
        "stage 0: foreachPartition",
        "Longest waits",
        "9,000",
        "Throttled at least 5.50 s",
    ):
        assert words in told


def test_page_of_an_application_without_trouble(tmp_path: Path) -> None:
    """It says so."""
    path = log(tmp_path / "app-1")
    lines = path.read_text().splitlines()
    path.write_text(f"{lines[0]}\n{lines[-1]}\n")
    text = page(read_account(path))
    assert "No attempt of a task failed." in text
    assert "Throttle time unknown: no failed attempt noted any" in text
    assert "Throttled 0 s" not in text


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=examples(40),
)
@given(name=st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
def test_any_name(tmp_path: Path, name: str) -> None:
    """Names of any characters make a page that can be written and read."""
    text = page(read_account(log(tmp_path / "app-1", name)))
    assert read(text.encode().decode()).kinds <= KNOWN
