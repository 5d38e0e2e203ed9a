"""What `quotascope demo` shows: who is throttled most, and by which rule."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from quotascope.exporter.snapshot import EntityUsage, Snapshot

from .usage_table import usage_table

_LINES_AROUND = 4
"""The header of the table and its line, an empty line, and the line about the whole."""

_INTRO = """\
Made-up clients work against the quotas of a real quota engine in this process; no Kafka is needed.
A row is one quota: how much is used of it, and which of Kafka's eight levels decides (1 is the strongest).
See spark-nightly burst and wait, two dashboards share one limit, orders stay just below theirs,
and deploy be refused topics. `throttle` is the mean of the last minute's, as Kafka tells it; `total` is exact."""


def intro(url: str) -> Text:
    """What to look at, in a few words, and where Prometheus finds the same."""
    text = Text(_INTRO + "\n", style="")
    text.append("Metrics for Prometheus: ")
    text.append(f"{url}metrics", style="bold underline")
    text.append("   Ctrl-C ends.")
    return text


def view(snapshot: Snapshot, width: int, rows: int | None = None) -> RenderableType:
    """
    The table, and a line about the whole.

    Args:
        snapshot: what to show.
        width: columns of the terminal.
        rows: lines that may be filled; None for as many as it takes.

    """
    ranked = ranking(snapshot.entities)
    shown = len(ranked) if rows is None else max(1, rows - _LINES_AROUND)
    last = Text(
        summary(snapshot, len(ranked) - shown),
        style="dim",
        no_wrap=True,
        overflow="ellipsis",
    )
    return Group(usage_table(ranked[:shown], width), Text(), last)


def ranking(entities: Sequence[EntityUsage]) -> list[EntityUsage]:
    """Those that were throttled longest first, then those that are nearest to their limit."""
    return sorted(
        entities,
        key=lambda usage: (
            -(usage.throttled_seconds_total or 0.0),
            -(usage.utilization or 0.0),
        ),
    )


def summary(snapshot: Snapshot, left_out: int) -> str:
    """Who is muted at this moment, what was refused, and how many entities are not shown."""
    muted = ", ".join(
        f"{quota_type.label} {size:.0f}"
        for node in snapshot.nodes
        for quota_type, size in node.delay_queue_size.items()
    )
    refused = sum(usage.rejected_mutations_total or 0.0 for usage in snapshot.entities)
    text = f"muted now: {muted}; refused with error 89: {refused:.0f} partitions"
    return f"{text}; {left_out} more rows" if left_out > 0 else text
