"""The timeline of an application: its stages, micro-batches and failed attempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.charts import Lane, Span, timeline_chart
from quotascope.pages.words import counted, seconds, shown

from ..events import FailureCause
from .application import Application

_MOST_LANES = 40
_LONGEST_LABEL = 36
"""Largest number of characters of a label beside a lane."""
_LABEL_END = 15
"""Number of characters that are kept of the end of a longer label, which often distinguishes it from others."""
_MOST_CHARACTERS = 1_000
_MOST_ROWS_OF_LANE = 9

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


def legend(application: Application) -> Iterator[tuple[str, str]]:
    """Yield the names of the colors that are drawn."""
    yield "stage or batch", STAGE
    yield "failed stage", FAILED_STAGE
    for cause, failed, _ in application.causes():
        if failed:
            yield cause.value, CAUSES[cause]
    if any(attempt.throttled_ms for attempt in application.attempts):
        yield "throttle time, as noted", THROTTLED


def drawn(application: Application, lanes: list[Lane]) -> Element:
    """Draw lanes over the time of the application."""
    return timeline_chart(lanes, max(application.ended - application.began, 1e-3), THROTTLED)


def timeline(application: Application, max_lanes: int = _MOST_LANES) -> tuple[list[Lane], int]:
    """
    Return a lane for each streaming query, and for each stage that belongs to no query.

    The first row of a lane has micro-batches, or attempts of the stage. The other rows have failed attempts of tasks.

    Returns:
        Lanes in the order of their begin, and the number of lanes that are left out: those with the shortest throttle
            times and fewest failures.

    """
    lanes: dict[str | int, Lane] = {}
    weights: dict[str | int, float] = {}
    begins: dict[str | int, float] = {}

    def add(query: str, stage: int, span: Span, weight: float, name: str = "") -> Lane:
        """Return the lane of a query, or of a stage without one, which a span makes more important and may begin."""
        owner = query or stage
        stage_label = f"stage {stage}: {name}" if name else f"stage {stage}"
        label = f"query {query}" if query else stage_label
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
        outcome = (", canceled" if stage.canceled else ", failed") if stage.failed else ""
        tasks = counted(stage.tasks, "task")
        title = f"stage {stage.stage}, attempt {stage.attempt}: {tasks}, {seconds(took)}{outcome}"
        color = FAILED_STAGE if stage.failed and not stage.canceled else STAGE
        span = _span(application, stage.began, ended, color, title)
        # a duration only orders stages without throttles and failures
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
    heaviest = sorted(lanes, key=lambda owner: weights[owner], reverse=True)[:max_lanes]
    by_begin = [lanes[owner] for owner in sorted(heaviest, key=lambda owner: begins[owner])]
    return by_begin, len(lanes) - len(by_begin)


def _fitted(label: str) -> str:
    """Return the label, shortened in the middle if it is too long."""
    if len(label) <= _LONGEST_LABEL:
        return label
    return f"{label[: _LONGEST_LABEL - _LABEL_END - 1]}…{label[-_LABEL_END:]}"


def _span(application: Application, began: float, ended: float, color: str, title: str, throttled: float = 0.0) -> Span:
    """Return a bar. Times before or after the application, as of a clock that was set, are moved to its ends."""
    begin, end = (
        min(max(time, application.began), application.ended) - application.began for time in (began, max(began, ended))
    )
    return Span(began=begin, ended=end, color=color, title=title, marked=min(throttled, end - begin))


def _place(rows: list[list[Span]], span: Span) -> None:
    """
    Add a bar to the first row of failed attempts in which it overlaps no other bar, or to a new row.

    If there are too many rows, add it to the last row.
    """
    row = next((row for row in rows[1:] if row[-1].ended <= span.began), None)
    if row is None and len(rows) < _MOST_ROWS_OF_LANE:
        rows.append([])
    (rows[-1] if row is None else row).append(span)
