"""How `quotascope whatif` shows a replay in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.units import short_type
from quotascope.pages.words import seconds, shown
from quotascope.pipeline.report.account import Account
from quotascope.pipeline.report.summary import CandidateSummary, Row, group_of
from quotascope.pipeline.report.whatif_page import headline
from quotascope.pipeline.report.words import amount, percent, who

_MOST = 20
_MOST_COLUMNS = 6
_NAME = 18
_UNLIMITED = "-: unlimited under this candidate"
_MORE = "--html, --csv or --json have all"


def as_tables(account: Account) -> RenderableType:
    """The candidates, and for how long each would throttle whom."""
    note = Text("\n".join(account.notes[:2]), style="dim")
    late = (_late(account),) if account.closed else ()
    return Group(_candidates(account), *late, _hit(account), note)


def _candidates(account: Account) -> RenderableType:
    table = _table(f"Candidates, {account.mode_told}")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("candidate", overflow="fold", min_width=_NAME)
    for name in ("throttled", "for", "worst", "delayed", "rejected"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, candidate in enumerate(account.candidates, start=1):
        table.add_row(str(number), *_candidate(candidate))
    return table


def _candidate(candidate: CandidateSummary) -> Iterable[Text]:
    cells = (
        shown(candidate.name),
        f"{candidate.hit:,} of {candidate.limited:,}",
        seconds(candidate.muted_ms / 1_000),
        percent(candidate.worst_share),
        f"{amount(candidate.delayed_bytes)}B",
        f"{candidate.rejected_mutations:,}",
    )
    return map(Text, cells)


def _late(account: Account) -> RenderableType:
    """What throttles pushed back; a table of its own, since 80 columns have no room for more in that of the candidates."""
    table = _table("Pushed back, by candidate")
    for name in ("#", "later by", "not sent"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, candidate in enumerate(account.candidates, start=1):
        late = seconds(candidate.late_ms / 1_000)
        table.add_row(str(number), late, f"{candidate.unsent_requests:,}")
    return table


def _hit(account: Account) -> RenderableType:
    """A row for each client and quota type, a column for each candidate."""
    by_client: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in account.rows:
        key = (row["user"], row["client_id"], row["quota_type"])
        by_client.setdefault(key, {})[row["candidate"]] = row
    by_client = {
        key: rows
        for key, rows in by_client.items()
        if any(row["throttled_requests"] for row in rows.values())
    }
    if not by_client:
        return Text(f"{headline(account)}\n")
    names = [each.name for each in account.candidates[:_MOST_COLUMNS]]
    table = _table("Throttled for, by candidate")
    table.add_column("who", overflow="fold", min_width=_NAME)
    table.add_column("quota", no_wrap=True)
    for number in range(1, len(names) + 1):
        table.add_column(f"#{number}", justify="right", no_wrap=True)
    for rows in list(by_client.values())[:_MOST]:
        table.add_row(*_client(rows, names))
    legend = [_UNLIMITED] if any(len(rows) < len(account.candidates) for rows in by_client.values()) else []  # fmt: skip
    if len(by_client) > _MOST or len(account.candidates) > _MOST_COLUMNS:
        legend.append(f"{len(by_client):,} clients, {len(account.candidates):,} candidates: {_MORE}")  # fmt: skip
    table.caption = "\n".join(legend)
    return table


def _client(rows: dict[str, Row], names: Sequence[str]) -> Iterable[Text]:
    first = next(iter(rows.values()))
    cells = [who(first["user"], first["client_id"]), short_type(group_of(first).kind)]
    cells += [
        seconds(rows[name]["muted_ms"] / 1_000) if name in rows else "-"
        for name in names
    ]
    return map(Text, cells)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
