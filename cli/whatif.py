"""`quotascope whatif`: what quotas would have done, had they been set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from . import outputs
from .options import EngineName, Folder, IoThreads, KafkaVersion, TimeZone, check_extra, grouped, release_of, zone_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from quotascope.pipeline.report.whatif import ReplaySummary, Row

_MOST: Final = 20
_MOST_COLUMNS: Final = 4
"""Candidates beside each other, which 80 columns have room for."""

EXAMPLES = """
Examples:

quotascope whatif usage --candidates candidates.yaml

quotascope whatif usage --candidates candidates.yaml --mode closed --html whatif.html --csv whatif.csv

quotascope whatif usage --candidates candidates.yaml --json | jq .candidates

quotascope whatif usage --candidates candidates.yaml --io-threads 8 --json | jq '.candidates[] | {name, wait_saved}'

spark-submit --master yarn "$(quotascope spark submit-script)" whatif hdfs:///kafka/usage --candidates candidates.yaml --html whatif.html
"""

Candidates = Annotated[
    Path, typer.Option(metavar="FILE", help="YAML file of the quotas to try; docs/whatif.md describes it.")
]
ModeName = Annotated[
    Literal["open", "closed"],
    typer.Option(
        "--mode",
        help="open: requests arrive as logged, figures are upper bounds. closed: a throttled connection's next request comes later.",
    ),
]


@grouped
def whatif(
    folder: Folder,
    *,
    candidates: Candidates,
    mode: ModeName = "open",
    decided: Annotated[
        bool,
        typer.Option(
            "--decided", help="Show what `shadow stream` has decided under these candidates, instead of a replay."
        ),
    ] = False,
    io_threads: IoThreads = None,
    engine: EngineName = "auto",
    time_zone: TimeZone = "UTC",
    kafka_version: KafkaVersion = None,
    results: outputs.Results,
) -> None:
    """
    Replay usage history under quotas that are not set, with Kafka's own algorithms.

    Shows which clients would have been throttled, for how long, and under which candidate. Changes nothing.
    """
    check_extra()
    from quotascope.pipeline.releases import followed
    from quotascope.pipeline.replay import Mode
    from quotascope.pipeline.report.documents import whatif_csv, whatif_json
    from quotascope.pipeline.report.whatif import whatif_page
    from quotascope.pipeline.runs.engine import Engine
    from quotascope.pipeline.runs.shadow import decided_by
    from quotascope.pipeline.runs.whatif import what_if
    from quotascope.quotas.candidates import read_candidates

    if decided and mode != "open":
        raise typer.BadParameter("a stream decides in open loop", param_hint="--mode")
    outputs.check(*results.files)
    zone = zone_of(time_zone)
    kafka = followed(release_of(kafka_version))
    tried = read_candidates(candidates)
    modes = {"open": Mode.OPEN_LOOP, "closed": Mode.CLOSED_LOOP}
    known = decided_by(folder, tried) if decided else None
    with outputs.bar("replaying") as progress:
        found = what_if(
            folder,
            tried,
            modes[mode],
            engine=Engine(engine),
            zone=zone,
            progress=progress,
            kafka=kafka,
            decided=known,
            threads=io_threads,
        )
    if results.html is not None:
        outputs.put(results.html, whatif_page(found.summary, found.usages, zone))
    if results.csv is not None:
        outputs.put(results.csv, whatif_csv(found.results, found.summary.mode))
    for file in results.documents:
        outputs.put_json(whatif_json(found.summary), file)
    if not outputs.printed(*results.files):
        from rich.console import Console

        Console().print(_tables(found.summary))


def _tables(summary: ReplaySummary) -> RenderableType:
    """How the candidates differ from the first, what each would do, and for how long to which clients; a candidate in each column."""
    from rich.console import Group
    from rich.text import Text

    from quotascope.pages.words import shown
    from quotascope.pipeline.report.whatif import COMPARED, PAGE_NOTES, headline

    from .fitted import Fitted

    candidates = summary.candidates[:_MOST_COLUMNS]
    numbers = [f"#{number}" for number in range(1, len(candidates) + 1)]
    parts: list[RenderableType] = [Text(headline(summary), style="bold"), Text()]
    parts += [Text(f"#{number} {shown(each.name)}") for number, each in enumerate(summary.candidates[:_MOST], start=1)]
    parts.append(Text())
    if summary.comparisons:
        compared, base = summary.comparisons[: _MOST_COLUMNS - 1], candidates[0]
        differences = _table(f"Difference to {numbers[0]}", "", *numbers[1:])
        for figure in COMPARED:
            differences.add_row(figure.head, *(figure.difference_cell(each.candidate, base) for each in compared))
        differences.add_row("clients worse", *(f"{each.worse:,}" for each in compared))
        differences.add_row("clients better", *(f"{each.better:,}" for each in compared))
        parts.append(Fitted(differences))
    figures = _table(f"Candidates, {summary.mode_name}", "", *numbers)
    for figure in summary.figures:
        figures.add_row(figure.head, *map(figure.cell, candidates))
    parts += [
        Fitted(figures),
        _throttled(summary, numbers),
        Text("\n".join(summary.notes[: -len(PAGE_NOTES)]), style="dim"),
    ]
    return Group(*parts)


def _throttled(summary: ReplaySummary, numbers: Sequence[str]) -> RenderableType:
    """A row for each throttled client and quota type, below one for all of its user; a column for each candidate."""
    from rich.text import Text

    from quotascope.metrics import spelled
    from quotascope.pages.words import spaced
    from quotascope.pipeline.report.whatif import THROTTLED_FOR, totals_of

    from .fitted import Fitted

    names = [each.name for each in summary.candidates[: len(numbers)]]
    by_user: dict[str, list[tuple[str, ...]]] = {}
    rows_of: dict[str, dict[str, list[Row]]] = {}
    unlimited = False
    for (user, client_id, quota_type), found in summary.by_client.items():
        if any(row["throttled_requests"] or row["requests_of_unknown_size"] for row in found.values()):
            unlimited |= len(found) < len(summary.candidates)
            cells = (THROTTLED_FOR.cell(totals_of([found[name]])) if name in found else "-" for name in names)
            by_user.setdefault(user, []).append((spelled(user, client_id), spaced(quota_type), *cells))
            for name, row in found.items():
                rows_of.setdefault(user, {}).setdefault(name, []).append(row)
    if not by_user:
        return Text()
    table = _table("Throttled for, by user and candidate", "entity", "quota", *numbers)
    for user, rows in by_user.items():
        if len(rows) > 1:
            total = (THROTTLED_FOR.cell(totals_of(rows_of[user].get(name, ()))) for name in names)
            rows.insert(0, (spelled(user, None), "all", *total))
    lines = list(chain.from_iterable(by_user.values()))
    for line in lines[:_MOST]:
        table.add_row(*map(Text, line), style="bold" if line[1] == "all" else "")
    legend = ["-: unlimited under this candidate"] if unlimited else []
    if len(lines) > _MOST or len(summary.candidates) > _MOST_COLUMNS:
        count = sum(line[1] != "all" for line in lines)
        legend.append(
            f"{count:,} clients, {len(summary.candidates):,} candidates: see all with --html, --csv or --json"
        )
    table.caption = "\n".join(legend)
    return Fitted(table)


def _table(title: str, *heads: str) -> Table:
    """A table without rows; columns that begin with # hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in heads:
        if head.startswith("#"):
            table.add_column(head, justify="right", no_wrap=True)
        elif head == "entity":
            table.add_column(head, overflow="fold", min_width=14)
        else:
            table.add_column(head, max_width=10 if head else None)
    return table
