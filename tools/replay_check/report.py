"""The result of a check in the terminal."""

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .check import Check
from .comparison import CLOSE_MS, Total

_LONGEST: Final = 60
_NUMBERS: Final = {
    "requests": 8,
    "throttled": 9,
    f"within {CLOSE_MS} ms": 11,
    "reported s": 10,
    "predicted s": 11,
    "error": 8,
}
"""Columns and their widths, which names have to make way for."""


def show(check: Check, console: Console) -> None:
    """Print predicted against reported seconds by client and quota, and what was inferred."""
    table = Table(
        title="Throttled seconds: what the broker reported, what the replay predicts"
    )
    for name in ("user", "client-id", "quota"):
        table.add_column(name, overflow="fold")
    for name, width in _NUMBERS.items():
        table.add_column(name, justify="right", min_width=width)
    for total in check.totals:
        table.add_row(*_cells(total))
    console.print(table)
    for line in _notes(check):
        console.print(Text(line))


def _cells(total: Total) -> list[Text]:
    error = Text(f"{total.error:+.2%}", style="green" if total.holds else "bold red")
    close = total.close / total.requests if total.requests else 0.0
    plain = (
        _name(total.user),
        _name(total.client_id),
        total.kind.label,
        str(total.requests),
        str(total.throttled),
        f"{close:.1%}",
        f"{total.reported_s:.3f}",
        f"{total.predicted_s:.3f}",
    )
    return [*map(Text, plain), error]


def _name(text: str) -> str:
    """A stranger's name on one line and not endless."""
    shown = text if text.isprintable() else repr(text)
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def _notes(check: Check) -> list[str]:
    inferred = ", ".join(
        f"{_name(name)} {ms:.0f} ms" for name, ms in sorted(check.unlogged_ms.items())
    )
    notes = [check.kafka.note]
    if inferred:
        notes.append(
            "thread time that the log leaves out (network threads, authentication), inferred from earlier answers: "
            f"{inferred}; {check.share:.2f} ms for each ms of sendTimeMs"
        )
    unknown = sum(total.unknown for total in check.totals)
    if unknown:
        notes.append(
            f"{unknown} throttled fetches are left out: nothing in the log tells what they would have read"
        )
    if check.unreadable:
        notes.append(f"{check.unreadable} lines are no requests and were left out")
    return notes
