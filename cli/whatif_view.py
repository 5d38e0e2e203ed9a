"""How `quotascope whatif` shows a replay in the terminal: the columns of its page as rows, a candidate in each column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.metrics import spelled
from quotascope.pages.words import seconds, shown, spaced
from quotascope.pipeline.report.whatif import (
    COMPARED,
    PAGE_NOTES,
    CandidateSummary,
    Figure,
    ReplaySummary,
    Row,
    headline,
)

from .usage_table import QUOTA

_MOST = 20
_MOST_COLUMNS = 4
"""Candidates beside each other, which 80 columns have room for."""
_NAME = 14
_UNLIMITED = "-: unlimited under this candidate"
_MORE = "see all with --html, --csv or --json"


def as_tables(summary: ReplaySummary) -> RenderableType:
    """How the candidates differ from the first, what each would do, and for how long to which clients."""
    parts: list[RenderableType] = [Text(headline(summary), style="bold"), Text()]
    parts += [Text(f"#{number} {shown(each.name)}") for number, each in enumerate(summary.candidates[:_MOST], start=1)]
    parts.append(Text())
    if summary.comparisons:
        parts.append(_differences(summary))
    parts.append(_figures(f"Candidates, {summary.mode_name}", summary.figures, summary.candidates, Figure.cell))
    parts += [
        _hit(summary),
        Text("\n".join(summary.notes[: -len(PAGE_NOTES)]), style="dim"),
    ]
    return Group(*parts)


def _differences(summary: ReplaySummary) -> Table:
    """Who wins, who loses, and by how much; each candidate against the first."""
    base, *others = summary.candidates
    table = _figures(
        "Difference to #1", COMPARED, others, lambda figure, each: figure.difference_cell(each, base), first=2
    )
    compared = summary.comparisons[: _MOST_COLUMNS - 1]
    table.add_row("clients worse", *(f"{each.worse:,}" for each in compared))
    table.add_row("clients better", *(f"{each.better:,}" for each in compared))
    return table


def _figures(
    title: str,
    figures: Sequence[Figure],
    candidates: Sequence[CandidateSummary],
    cell: Callable[[Figure, CandidateSummary], str],
    first: int = 1,
) -> Table:
    table = _table(title)
    table.add_column("")
    chosen = candidates[: _MOST_COLUMNS + 1 - first]
    for number in range(first, first + len(chosen)):
        table.add_column(f"#{number}", justify="right", no_wrap=True)
    for figure in figures:
        table.add_row(figure.head, *(cell(figure, each) for each in chosen))
    return table


def _hit(summary: ReplaySummary) -> RenderableType:
    """A row for each client and quota type, below one for all of its user; a column for each candidate."""
    by_user: dict[str, dict[tuple[str, str], dict[str, Row]]] = {}
    for row in summary.rows:
        clients = by_user.setdefault(row["user"], {})
        key = (row["client_id"], row["quota_type"])
        clients.setdefault(key, {})[row["candidate"]] = row
    names = [each.name for each in summary.candidates[:_MOST_COLUMNS]]
    rows: list[tuple[str, ...]] = []
    count, unlimited = 0, False
    for user, clients in by_user.items():
        hit = {key: found for key, found in clients.items() if any(row["throttled_requests"] for row in found.values())}
        count += len(hit)
        if len(hit) > 1:
            sums = (sum(found[name]["muted_ms"] for found in hit.values() if name in found) for name in names)
            total = (seconds(each / 1_000) for each in sums)
            rows.append((spelled(user, None), "all", *total))
        for (client_id, quota_type), found in hit.items():
            unlimited |= len(found) < len(summary.candidates)
            cells = (seconds(found[name]["muted_ms"] / 1_000) if name in found else "-" for name in names)
            rows.append((spelled(user, client_id), spaced(quota_type), *cells))
    if not rows:
        return Text()
    table = _table("Throttled for, by user and candidate")
    table.add_column("entity", overflow="fold", min_width=_NAME)
    table.add_column("quota", max_width=QUOTA)
    for number in range(1, len(names) + 1):
        table.add_column(f"#{number}", justify="right", no_wrap=True)
    for line in rows[:_MOST]:
        table.add_row(*map(Text, line), style="bold" if line[1] == "all" else "")
    legend = [_UNLIMITED] if unlimited else []
    if len(rows) > _MOST or len(summary.candidates) > _MOST_COLUMNS:
        legend.append(f"{count:,} clients, {len(summary.candidates):,} candidates: {_MORE}")
    table.caption = "\n".join(legend)
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
