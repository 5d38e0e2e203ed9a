"""How `quotascope whatif` shows a replay in the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.units import type_name
from quotascope.pages.words import seconds, shown
from quotascope.pipeline.report.whatif import (
    ReplaySummary,
    Row,
    group_of,
    headline,
)
from quotascope.pipeline.report.words import amount, percent, who

_MOST = 20
_MOST_COLUMNS = 6
_NAME = 18
_UNLIMITED = "-: unlimited under this candidate"
_MORE = "see all with --html, --csv or --json"


def as_tables(summary: ReplaySummary) -> RenderableType:
    """The candidates, and for how long each would throttle each client."""
    note = Text("\n".join(summary.notes[:2]), style="dim")
    late = (_late(summary),) if summary.closed else ()
    return Group(_candidates(summary), *late, _hit(summary), note)


def _candidates(summary: ReplaySummary) -> RenderableType:
    table = _table(f"Candidates, {summary.mode_name}")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("candidate", overflow="fold", min_width=_NAME)
    for name in ("throttled", "for", "worst", "delayed", "rejected"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, candidate in enumerate(summary.candidates, start=1):
        cells = (
            str(number),
            shown(candidate.name),
            f"{candidate.hit:,} of {candidate.limited:,}",
            seconds(candidate.muted_ms / 1_000),
            percent(candidate.worst_share),
            f"{amount(candidate.delayed_bytes)}B",
            f"{candidate.rejected_mutations:,}",
        )
        table.add_row(*map(Text, cells))
    return table


def _late(summary: ReplaySummary) -> RenderableType:
    """How late throttles made requests; a table apart, since 80 columns have no room for more in that of the candidates."""
    table = _table("Delays by candidate")
    for name in ("#", "later by", "not sent"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, candidate in enumerate(summary.candidates, start=1):
        late = seconds(candidate.late_ms / 1_000)
        table.add_row(str(number), late, f"{candidate.unsent_requests:,}")
    return table


def _hit(summary: ReplaySummary) -> RenderableType:
    """A row for each client and quota type, a column for each candidate."""
    by_client: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in summary.rows:
        key = (row["user"], row["client_id"], row["quota_type"])
        by_client.setdefault(key, {})[row["candidate"]] = row
    by_client = {
        key: rows
        for key, rows in by_client.items()
        if any(row["throttled_requests"] for row in rows.values())
    }
    if not by_client:
        return Text(f"{headline(summary)}\n")
    names = [each.name for each in summary.candidates[:_MOST_COLUMNS]]
    table = _table("Throttled for, by candidate")
    table.add_column("entity", overflow="fold", min_width=_NAME)
    table.add_column("quota", no_wrap=True)
    for number in range(1, len(names) + 1):
        table.add_column(f"#{number}", justify="right", no_wrap=True)
    for rows in list(by_client.values())[:_MOST]:
        row = next(iter(rows.values()))
        cells = [who(row["user"], row["client_id"]), type_name(group_of(row).kind)]
        cells += [seconds(rows[name]["muted_ms"] / 1_000) if name in rows else "-" for name in names]  # fmt: skip
        table.add_row(*map(Text, cells))
    legend = [_UNLIMITED] if any(len(rows) < len(summary.candidates) for rows in by_client.values()) else []  # fmt: skip
    if len(by_client) > _MOST or len(summary.candidates) > _MOST_COLUMNS:
        legend.append(f"{len(by_client):,} clients, {len(summary.candidates):,} candidates: {_MORE}")  # fmt: skip
    table.caption = "\n".join(legend)
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
