from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.spark_listener.report.throttled import HOSTILE, log
from tests.strategies import examples

from quotascope.spark_listener.report import page, read_account, story
from quotascope.spark_listener.report.document import document

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
        self.rows: list[list[str]] = []
        """Of all tables, the cells."""
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.kinds.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if tag == "td":
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        """Text."""
        self.told.append(data)
        if self._in_cell:
            self.rows[-1][-1] += data


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


def test_figures_are_those_of_the_log(tmp_path: Path) -> None:
    """What each attempt noted, how long it took, and the sums of that; ms are told as seconds."""
    found = read(page(read_account(log(tmp_path / "app-1"))))
    assert [row for row in found.rows if row] == [
        ["", "alice", "billing", "write", "", "4 s", "4", "2 s", "1"],
        ["clicks", "alice", "clicks-reader", "read", "", "1.50 s", "4", "0.75 s", "1"],
        ["kafka_quota", "1", "0"],
        ["kafka_timeout_throttled", "2", "1"],
        ["executor_lost", "1", "0"],
        ["0.0", "foreachPartition", "", "1 kafka_timeout_throttled, 1 kafka_quota, 1 executor_lost", "4 s", "3"],
        ["2.0", "start", "clicks", "1 kafka_timeout_throttled", "1.50 s", "1"],
        ["clicks", "0", "8 s", "9,000", "2,500"],
        ["0.0", "0", "0", "kafka_timeout_throttled", "cimpl.KafkaException", "", "4 s", "2 s", "7 s"],
        ["2.0", "0", "0", "kafka_timeout_throttled", "cimpl.KafkaException", "clicks", "1.50 s", "0.75 s", "5 s"],
    ]  # fmt: skip


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


def test_programs_get_the_same_figures(tmp_path: Path) -> None:
    """In seconds, none of them rounded."""
    told = json.loads(document(read_account(log(tmp_path / "app-1"))))
    span = (told["began"], told["ended"], told["finished"])
    assert span == (1_700_000_000, 1_700_000_060, True)
    assert (told["throttled_seconds"], told["throttled_complete"]) == (5.5, False)
    clients = [[*each.values()] for each in told["throttles"]]
    assert clients == [
        ["", "alice", "billing", "write", 4, 4, 2, 1],
        ["clicks", "alice", "clicks-reader", "read", 1.5, 4, 0.75, 1],
    ]
    causes = [[*each.values()] for each in told["causes"]]
    assert causes == [
        ["kafka_quota", 1, 0],
        ["kafka_timeout_throttled", 2, 1],
        ["executor_lost", 1, 0],
    ]
    (query,) = told["queries"]
    assert (query["max_offsets_behind"], query["avg_offsets_behind"]) == (9_000, 2_500.5)  # fmt: skip
    assert query["phases"] == {"triggerExecution": 8}
    names = ("stage", "attempt", "throttled_seconds", "longest_seconds", "seconds")
    waits = [[each[name] for name in names] for each in told["longest_waits"]]
    assert waits == [[0, 0, 4, 2, 7], [2, 0, 1.5, 0.75, 5]]
    assert [each["throttled_seconds"] for each in told["stages_hit"]] == [4, 1.5]
    assert [each["failed"] for each in told["stages_hit"]] == [False, False]
    assert told["unknown_attempts"] == 2


def test_bars_are_shares_of_the_longest_wait(tmp_path: Path) -> None:
    """4 s fill theirs, 1.5 s are 37.5 % of it."""
    text = page(read_account(log(tmp_path / "app-1")))
    bars = re.findall(r'class="share"[^>]*><rect[^>]*?\bwidth="([^"]+)"', text)
    assert [*map(float, bars)] == [100, 37.5]


def test_what_is_not_listed_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four failed attempts two are listed; sums are of all, and where nothing is left out nothing is said."""
    said = "are counted but not listed one by one"
    path = log(tmp_path / "app-1")
    assert said not in page(read_account(path))
    monkeypatch.setattr(story, "_MOST_ATTEMPTS", 2)
    account = read_account(path)
    assert f"2 stages, attempts or batches {said}" in page(account)
    assert account.throttled_ms == 5_500
