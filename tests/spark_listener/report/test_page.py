from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.spark_listener.recordings import log_of
from tests.spark_listener.report.throttled import HOSTILE, log, stage
from tests.strategies import examples

from quotascope.pages.charts import Span
from quotascope.spark_listener.report import document, image, page, read_application
from quotascope.spark_listener.report.timeline import CAUSES, THROTTLED, _place, timeline

KNOWN = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "span", "div", "ul", "li",
    "table", "thead", "tbody", "tr", "th", "td", "caption", "svg", "g", "rect", "line", "text", "wbr", "bdi",
}  # fmt: skip
HARMLESS = {
    "lang", "charset", "http-equiv", "content", "name", "class", "viewBox", "viewbox", "xmlns", "role", "x", "y", "x1",
    "x2", "y1", "y2",
    "width", "height", "fill", "rx", "preserveaspectratio", "data-head", "textlength", "lengthadjust",
}  # fmt: skip


class Reader(HTMLParser):
    """Reads a page as a browser does."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[str] = set()
        self.attributes: set[str] = set()
        self.reported: list[str] = []
        self.rows: list[list[str]] = []
        """Of all tables, the cells."""
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self.reported.append(data)
        if self._in_cell:
            self.rows[-1][-1] += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


@pytest.mark.parametrize("name", ["", HOSTILE, "x" * 10_000])
def test_page_holds_nothing_that_runs(tmp_path: Path, name: str) -> None:
    """The page has no script, no address, no handler: whatever names are, they are text."""
    text = page(read_application(log(tmp_path / "app-1", name)))
    document = read(text)
    assert document.kinds <= KNOWN
    assert document.attributes <= HARMLESS
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "@import" not in text
    assert len(text.encode()) < 100_000


def test_figures_are_those_of_the_log(tmp_path: Path) -> None:
    """The page has each attempt's throttle times, durations and sums in seconds, and a timeline with their spans."""
    document = read(page(read_application(log(tmp_path / "app-1"))))
    assert {"stage 0: foreachPartition", "query clicks", "nightly: throttle times"} <= {*document.reported}
    assert [row for row in document.rows if row] == [
        ["", "alice", "billing", "write", "", "4 s", "4", "2 s", "1"],
        ["clicks", "alice", "clicks-reader", "read", "", "1.50 s", "4", "0.75 s", "1"],
        ["kafka_quota", "1", "0"],
        ["kafka_timeout_throttled", "2", "1"],
        ["executor_lost", "1", "0"],
        ["0.0", "foreachPartition", "", "1 kafka_timeout_throttled, 1 kafka_quota, 1 executor_lost", "≥ 4 s", "3"],
        ["2.0", "start", "clicks", "1 kafka_timeout_throttled", "1.50 s", "1"],
        ["clicks", "0", "8 s", "9,000", "2,500"],
        ["clicks", "unknown", "unknown", "unknown", "unknown", "unknown", "unknown"],
        ["0.0", "0, 0", "kafka_timeout_throttled", "cimpl.KafkaException", "", "4 s", "2 s", "7 s"],
        ["2.0", "0, 0", "kafka_timeout_throttled", "cimpl.KafkaException", "clicks", "1.50 s", "0.75 s", "5 s"],
    ]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(name=st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
def test_any_name(tmp_path: Path, name: str) -> None:
    """Names of any characters make a page that can be written and read."""
    text = page(read_application(log(tmp_path / "app-1", name)))
    assert read(text.encode().decode()).kinds <= KNOWN


def test_programs_get_the_same_figures(tmp_path: Path) -> None:
    """JSON has the same figures in seconds, without rounding."""
    reported = json.loads(json.dumps(document(read_application(log(tmp_path / "app-1")))))
    expected = {
        "began": 1_700_000_000,
        "ended": 1_700_000_060,
        "finished": True,
        "throttled_seconds": 5.5,
        "throttled_complete": False,
        "unknown_attempts": 2,
    }
    assert {name: reported[name] for name in expected} == expected
    assert [[*throttle.values()] for throttle in reported["throttles"]] == [
        ["", "alice", "billing", "write", 4, 4, 2, 1],
        ["clicks", "alice", "clicks-reader", "read", 1.5, 4, 0.75, 1],
    ]
    assert [[*cause.values()] for cause in reported["causes"]] == [
        ["kafka_quota", 1, 0],
        ["kafka_timeout_throttled", 2, 1],
        ["executor_lost", 1, 0],
    ]
    (query,) = reported["queries"]
    assert (query["max_offsets_behind"], query["avg_offsets_behind"]) == (9_000, 2_500.5)
    assert query["phases"] == {"triggerExecution": 8}
    names = ("stage", "attempt", "throttled_seconds", "longest_seconds", "seconds")
    waits = [[longest_wait[name] for name in names] for longest_wait in reported["longest_waits"]]
    assert waits == [[0, 0, 4, 2, 7], [2, 0, 1.5, 0.75, 5]]
    assert [(stage_row["throttled_seconds"], stage_row["failed"]) for stage_row in reported["stages_hit"]] == [
        (4, False),
        (1.5, False),
    ]


def test_bars_are_shares_of_the_longest_wait(tmp_path: Path) -> None:
    """4 s fill theirs, 1.5 s are 37.5 % of it."""
    text = page(read_application(log(tmp_path / "app-1")))
    bars = re.findall(r'class="share"[^>]*><rect[^>]*?\bwidth="([^"]+)"', text)
    assert [*map(float, bars)] == [100, 37.5]


def test_a_long_headline_of_an_image_has_more_lines() -> None:
    """A long headline is broken at the image's width, and the timeline begins below its last line."""
    application = read_application(log_of("4.0.5", "plain"))
    drawn = ET.fromstring(image(application))  # noqa: S314 - of ours
    svg = "{http://www.w3.org/2000/svg}"
    texts = drawn.findall(f"{svg}text")
    lines = [text for text in texts[2:] if text.attrib["x"] == "10"]
    assert len(lines) > 1
    assert all(len(line.text or "") <= 150 for line in lines)
    assert "lost executors" in (lines[-1].text or "")
    (chart,) = drawn.findall(f"{svg}svg")
    assert float(chart.attrib["y"]) == float(lines[-1].attrib["y"]) + 14


@pytest.mark.parametrize("name", ["", HOSTILE, "x" * 10_000])
def test_image_has_title_timeline_and_legend(tmp_path: Path, name: str) -> None:
    """The image is XML that needs nothing else; its bars are those of the page, and names are text."""
    application = read_application(log(tmp_path / "app-1", name))
    drawn = ET.fromstring(image(application))  # noqa: S314 - of ours
    svg = "{http://www.w3.org/2000/svg}"
    assert {element.tag.removeprefix(svg) for element in drawn.iter()} <= {*KNOWN, "title"}
    (chart,) = drawn.findall(f"{svg}svg")
    assert len([*chart.iter(f"{svg}rect")]) == page(application).count('rx="1"') + 2
    texts = [element.text or "" for element in drawn.findall(f"{svg}text")]
    assert texts[0].startswith("nightly")
    assert texts[2].startswith(
        "Throttled at least 5.50 s (4 s on the critical path, 1.50 s in micro-batches), 4 failed attempts"
    )
    assert texts[3:] == [
        "stage or batch",
        "failed stage",
        "kafka_quota",
        "kafka_timeout_throttled",
        "executor_lost",
        "throttle time, as noted",
    ]
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    for rect in drawn.findall(f"{svg}rect"):
        assert float(rect.attrib["x"]) + 22 < width
        assert float(rect.attrib["y"]) + 10 < height
    assert float(chart.attrib["y"]) + float(chart.attrib["height"]) <= min(
        float(rect.attrib["y"]) for rect in drawn.findall(f"{svg}rect")
    )
    assert {rect.get("fill") for rect in drawn.findall(f"{svg}rect")} >= {THROTTLED}


def test_lanes(tmp_path: Path) -> None:
    """
    A stage has one, and a streaming query one for all of its stages; attempts that overlap are in rows of their own.

    A throttle time is drawn as long as it is noted, and never longer than the attempt took. Where there is no room,
    those with the longest throttle times are drawn.
    """
    path = log(tmp_path / "app-1")
    application = read_application(path)
    lanes, left_out = timeline(application)
    assert left_out == 0
    assert [lane.label for lane in lanes] == ["stage 0: foreachPartition", "query clicks"]
    assert [[[(span.began, span.ended) for span in row] for row in lane.rows] for lane in lanes] == [
        [[(1, 20)], [(2, 9)], [(3, 5)], [(4, 6)]],
        [[(22, 30), (32, 40), (42, 50)], [(33, 38)]],
    ]
    throttled = lanes[0].rows[1][0]
    assert throttled.marked == 4.0
    assert "throttled for 4 s" in throttled.title
    (lane,), left_out = timeline(application, max_lanes=1)
    assert (lane.label, left_out) == ("stage 0: foreachPartition", 1)
    path.write_text(path.read_text().replace("4000", "999000"))
    assert timeline(read_application(path))[0][0].rows[1][0].marked == 7.0


def test_lanes_with_long_names(tmp_path: Path) -> None:
    """Labels of lanes fit beside the chart with both ends; each query has a lane, even if names begin alike."""
    prefix = "enrichment-of-orders-in-production-region-"
    events = [
        *stage(12, 0, 1, 9, "save at NativeMethodAccessorImpl.java:0"),
        *(event for at, name in enumerate("ab", 1) for event in stage(at, 0, 10 * at, 10 * at + 5, "", prefix + name)),
    ]
    path = tmp_path / "app-1"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    lanes, _ = timeline(read_application(path))
    assert [lane.label for lane in lanes] == [
        "stage 12: save at Na…ssorImpl.java:0",
        "query enrichment-of-…uction-region-a",
        "query enrichment-of-…uction-region-b",
    ]
    assert [len(lane.rows[0]) for lane in lanes] == [1, 1, 1]


def test_overlaps_are_in_rows_up_to_eight() -> None:
    """Spans that do not overlap share a row; beyond eight rows, the last one takes the rest."""
    spans = [Span(began=0, ended=10 + number, color="", title=str(number)) for number in range(11)]
    rows: list[list[Span]] = [[]]
    for span in (*spans, Span(began=12.5, ended=20, color="", title="after")):
        _place(rows, span)
    titles = [[span.title for span in row] for row in rows]
    assert titles == [[], ["0", "after"], *([str(n)] for n in range(1, 7)), ["7", "8", "9", "10"]]


def test_each_cause_has_its_color() -> None:
    """Each cause has a color of its own."""
    assert len(set(CAUSES.values())) == len(CAUSES) == 10
