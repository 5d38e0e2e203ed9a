"""What `quotascope demo` shows: who is throttled most, and by which rule."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from quotascope.exporter.diagnosis.units import short_type
from quotascope.exporter.snapshot import EntityUsage, Snapshot

from .usage_table import usage_table

_WHAT_TO_LOOK_AT = """\
Made-up clients bounce off real quotas here; no Kafka is needed.
A row is one quota: its use, its limit, and which of Kafka's 8 levels decides.
Watch etl burst and wait, two dashboards share a limit, deploy be refused, and
orders stay just below. `delay`: mean of recent throttles; `waited`: total."""
_INTRO_COLUMNS = 78
_INTRO_LINES = 6
_SMALLEST_WITH_INTRO = 18
_LINES_AROUND = 4
"""The header of the table and its line, an empty line, and the line about the whole."""


def intro(url: str) -> RenderableType:
    """What to look at, in a few words, and where Prometheus finds the same."""
    return Group(Text(_WHAT_TO_LOOK_AT), _address(url), Text())


def screen(snapshot: Snapshot, url: str, width: int, height: int) -> RenderableType:
    """All that fits into a terminal of `width` columns and `height` lines; a small one leaves out the explanation."""
    if width < _INTRO_COLUMNS or height < _SMALLEST_WITH_INTRO:
        return Group(_address(url), view(snapshot, width, height - 1))
    return Group(intro(url), view(snapshot, width, height - _INTRO_LINES))


def _address(url: str) -> Text:
    where = (f"{url}/metrics", "bold underline")
    text = Text.assemble("For Prometheus: ", where, "   (Ctrl-C ends)")
    text.no_wrap = True
    return text


def view(snapshot: Snapshot, width: int, height: int | None = None) -> RenderableType:
    """The table and a line about the whole, in at most `height` lines; None for as many as it takes."""
    ranked = ranking(snapshot.measured)
    rows = len(ranked) if height is None else max(1, height - _LINES_AROUND)
    last = Text(
        summary(snapshot, len(ranked) - rows),
        style="dim",
        no_wrap=True,
        overflow="ellipsis",
    )
    return Group(usage_table(ranked[:rows], width), Text(), last)


def ranking(entities: Sequence[EntityUsage]) -> list[EntityUsage]:
    """The longest waits first, then the highest utilization."""
    return sorted(
        entities,
        key=lambda usage: (
            -(usage.throttled_seconds_total or 0.0),
            -(usage.utilization or 0.0),
        ),
    )


def summary(snapshot: Snapshot, left_out: int) -> str:
    """Who is muted at this moment, what was refused, and how many rows do not fit."""
    muted = ", ".join(
        f"{short_type(quota_type)} {size:.0f}"
        for node in snapshot.nodes
        for quota_type, size in node.delay_queue_size.items()
    )
    text = f"muted now: {muted}; refused with error 89: {_refused(snapshot):.0f}"
    return f"{text}; {left_out} more rows" if left_out > 0 else text


def farewell(snapshot: Snapshot, elapsed_seconds: float) -> str:
    """The end in one line."""
    throttled = sum(
        usage.throttled_requests_total or 0.0 for usage in snapshot.measured
    )
    return (
        f"The demo ended after {elapsed_seconds:.0f} s. Requests throttled: {throttled:.0f};"
        f" partitions refused: {_refused(snapshot):.0f}."
    )


def _refused(snapshot: Snapshot) -> float:
    return sum(usage.rejected_mutations_total or 0.0 for usage in snapshot.measured)
