"""The report as a page, and its timeline as an SVG image."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final
from xml.etree.ElementTree import Element, tostring

from quotascope.pages.charts import Lane, Span, key, share_bar, swatch, timeline_chart
from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.style import CHARTS
from quotascope.pages.words import counted, seconds, shown

from ..events import FailureCause
from .application import Application
from .sections import causes, headline, notes, period, sections

_MOST_ROWS = 50
_MOST_LANES = 40
_LONGEST_LABEL = 36
"""Characters for which a chart has room beside its lanes."""
_LABEL_END = 15
"""Of these, those kept of the end of a longer one: a line of a program, or what distinguishes queries."""
_MOST_CHARACTERS = 1_000
_MOST_ROWS_OF_LANE = 9
_IMAGE_TOP, _IMAGE_KEY = 78, 200
_IMAGE_LINE = 150
"""Characters that a line of an image has room for."""

THROTTLED: Final = "#f0b400"
STAGE: Final = "#b8c4d0"
FAILED_STAGE: Final = "#8a97a5"
CAUSES: Final = {
    FailureCause.KAFKA_QUOTA: "#c1272d",
    FailureCause.KAFKA_TIMEOUT_THROTTLED: "#e8681a",
    FailureCause.KAFKA_TIMEOUT: "#f2a071",
    FailureCause.KAFKA_OTHER: "#9c5b8f",
    FailureCause.EXECUTOR_LOST: "#2f4b7c",
    FailureCause.FETCH_FAILED: "#3f8fc4",
    FailureCause.PYTHON_WORKER_DIED: "#5a5fb8",
    FailureCause.KILLED: "#6b7280",
    FailureCause.OTHER: "#4a5560",
    FailureCause.UNKNOWN: "#9aa3ad",
}
"""Colors that can be distinguished with red-green color blindness."""


def page(application: Application) -> str:
    """The text of an HTML file."""
    name = shown(application.app) or "A Spark job"
    return framed(f"{name}: throttle times", _elements(application))


def _elements(application: Application) -> Iterator[Element]:
    yield element("h1", shown(application.app) or "A Spark job")
    yield element("p", period(application), class_="where")
    yield element("p", headline(application), class_="headline")
    lanes, left_out = timeline(application)
    if lanes:
        yield element("h2", "Timeline")
        keys = (key(name, swatch(color)) for name, color in _legend(application))
        yield element("p", *keys, class_="legend")
        yield timeline_chart(lanes, _length(application), THROTTLED)
    if left_out:
        text = f"{left_out} more lanes, with fewer failures and less throttle time"
        yield element("p", text, class_="where")
    for section in sections(application):
        yield element("h2", section.title)
        if not section.rows:
            yield element("p", section.empty)
            continue
        heads, rows = section.heads, [(*row,) for row in section.rows]
        cells: list[tuple[Child, ...]] = [*rows]
        if section.shares:
            heads = (*heads, "=")
            cells = [(*row, share_bar(share, THROTTLED)) for row, share in zip(rows, section.shares, strict=True)]
        yield table(heads, cells, _MOST_ROWS)
    yield element("ul", *(element("li", note) for note in notes(application)))


def image(application: Application) -> str:
    """The text of an SVG file: the timeline of the page, with its title and legend."""
    lanes, _ = timeline(application)
    chart = timeline_chart(lanes, _length(application), THROTTLED)
    _, _, width, height = map(float, chart.get("viewBox", "").split())
    keys = list(_legend(application))
    per_row = int(width) // _IMAGE_KEY
    lines = wrap(headline(application), _IMAGE_LINE, break_on_hyphens=False)
    top = _IMAGE_TOP + 18 * (len(lines) - 1)
    legend = top + height + 10
    bottom = legend + 18 * (1 + (len(keys) - 1) // per_row)
    svg = element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {bottom:g}", width=width, height=bottom
    )
    svg.append(element("style", f"{CHARTS}:root {{ background: var(--paper); font-family: sans-serif; }}"))
    svg.append(element("text", shown(application.app) or "A Spark job", x=10, y=24))
    svg.append(element("text", period(application), class_="tick", x=10, y=44))
    svg.extend(element("text", line, x=10, y=64 + 18 * number) for number, line in enumerate(lines))
    for place, value in (("y", top), ("width", width), ("height", height)):
        chart.set(place, f"{value:g}")
    svg.append(chart)
    for number, (name, color) in enumerate(keys):
        x, y = 10 + number % per_row * _IMAGE_KEY, legend + number // per_row * 18
        svg.append(element("rect", x=x, y=y, width=22, height=10, fill=color))
        svg.append(element("text", name, x=x + 28, y=y + 10))
    return tostring(svg, encoding="unicode") + "\n"


def _legend(application: Application) -> Iterator[tuple[str, str]]:
    yield "stage or batch", STAGE
    yield "failed stage", FAILED_STAGE
    for cause, failed, _ in causes(application):
        if failed:
            yield cause.value, CAUSES[cause]
    if any(attempt.throttled_ms for attempt in application.attempts):
        yield "throttle time, as noted", THROTTLED


def _length(application: Application) -> float:
    return max(application.ended - application.began, 1e-3)


def timeline(application: Application, most: int = _MOST_LANES) -> tuple[list[Lane], int]:
    """
    A lane for each streaming query, and for each stage that belongs to none.

    The first row of a lane has micro-batches or attempts of the stage, the others have failed attempts of tasks.

    Returns:
        Lanes in the order in which they began, and how many are left out: those with the shortest throttle times and fewest failures.

    """
    lanes: dict[str | int, Lane] = {}
    weights: dict[str | int, float] = {}
    begins: dict[str | int, float] = {}

    def add(query: str, stage: int, span: Span, weight: float, name: str = "") -> Lane:
        owner = query or stage
        label = f"query {query}" if query else f"stage {stage}" + (f": {name}" if name else "")
        lane = lanes.setdefault(owner, Lane(label=_fitted(shown(label, _MOST_CHARACTERS)), rows=[[]]))
        weights[owner] = weights.get(owner, 0.0) + weight
        begins[owner] = min(begins.get(owner, span.began), span.began)
        return lane

    for batch in application.batches:
        ended = batch.began + batch.seconds
        title = f"batch {batch.number}: {counted(batch.rows, 'row')}, {seconds(batch.seconds)}"
        span = _span(application, batch.began, ended, STAGE, title)
        add(batch.query, 0, span, 0.0).rows[0].append(span)
    queries = {batch.query for batch in application.batches}
    for stage in application.stages:
        if stage.began is None or stage.query in queries:
            continue
        ended = application.ended if stage.ended is None else stage.ended
        took = max(0.0, ended - stage.began)
        outcome = ", failed" if stage.failed else ""
        tasks = counted(stage.tasks, "task")
        title = f"stage {stage.stage}, attempt {stage.attempt}: {tasks}, {seconds(took)}{outcome}"
        color = FAILED_STAGE if stage.failed else STAGE
        span = _span(application, stage.began, ended, color, title)
        add(stage.query, stage.stage, span, took / 1e9, stage.name).rows[0].append(span)
    for attempt in sorted(application.attempts, key=lambda attempt: attempt.began):
        throttled = (attempt.throttled_ms or 0) / 1_000
        title = (
            f"stage {attempt.stage}, partition {attempt.partition}, attempt {attempt.number}: "
            f"{attempt.cause} after {seconds(attempt.ended - attempt.began)}"
            + (f", throttled for {seconds(throttled)}" if throttled else "")
        )
        color = CAUSES[attempt.cause]
        span = _span(application, attempt.began, attempt.ended, color, title, throttled)
        weight = 1 + (attempt.throttled_ms or 0)
        _place(add(attempt.query, attempt.stage, span, weight).rows, span)
    heaviest = sorted(lanes, key=lambda each: weights[each], reverse=True)[:most]
    kept = [lanes[each] for each in sorted(heaviest, key=lambda each: begins[each])]
    return kept, len(lanes) - len(kept)


def _fitted(label: str) -> str:
    """The label, of a long one both ends."""
    if len(label) <= _LONGEST_LABEL:
        return label
    return f"{label[: _LONGEST_LABEL - _LABEL_END - 1]}…{label[-_LABEL_END:]}"


def _span(application: Application, began: float, ended: float, color: str, title: str, throttled: float = 0.0) -> Span:
    """Times outside of the application, from a clock that was set, are moved to its ends."""
    begin, end = (
        min(max(time, application.began), application.ended) - application.began for time in (began, max(began, ended))
    )
    return Span(began=begin, ended=end, color=color, title=title, marked=min(throttled, end - begin))


def _place(rows: list[list[Span]], span: Span) -> None:
    """Into the first row of failed attempts that has ended by then, or a new one; when there are too many, into the last."""
    row = next((row for row in rows[1:] if row[-1].ended <= span.began), None)
    if row is None and len(rows) < _MOST_ROWS_OF_LANE:
        rows.append([])
    (rows[-1] if row is None else row).append(span)
