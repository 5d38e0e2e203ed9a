"""`quotascope usage`: who used how much of which quota, and for which topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import options, outputs
from .options import check_extra, span_of, zone_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from quotascope.pipeline.report.usage_page import Usage

EXAMPLES = """
Examples:

quotascope usage usage --by-topic

quotascope usage usage --user alice --begin 2026-11-22T18:00 --end 2026-11-23T08:00 --time-zone Europe/Berlin

quotascope usage usage --html usage.html

quotascope usage usage --json | jq '.clients[0]'
"""


def usage(
    folder: options.Folder,
    *,
    user: Annotated[str | None, options.USER] = None,
    client_id: options.ClientId = None,
    by_topic: Annotated[
        bool,
        typer.Option("--by-topic", help="Also show the topics of each client, by bytes."),
    ] = False,
    begin: options.Begin = None,
    end: options.End = None,
    time_zone: options.TimeZone = "UTC",
    top: options.Top = 20,
    html: options.Html = None,
    json: options.Json = False,
) -> None:
    """Show who used how much of which quota over a period, from a usage history, and for which topics."""
    check_extra()
    from quotascope.pipeline.report.usage_page import find_usage, usage_json, usage_page

    outputs.check(html, outputs.STDOUT if json else None)
    zone = zone_of(time_zone)
    with outputs.bar("adding up"):
        found = find_usage(folder, (user, client_id), span_of(begin, end, zone))
    outputs.put(html, usage_page(found, zone) if html else "")
    if json:
        outputs.put_json(usage_json(found))
    if not json and not outputs.printed(html):
        from rich.console import Console
        from rich.text import Text

        from quotascope.pages.words import period

        console = Console()
        console.print(Text(period(found.folder, found.begin_ms, found.end_ms, zone), style="dim"))
        console.print(_table(found, top, by_topic=by_topic))


def _table(found: Usage, top: int, *, by_topic: bool) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from quotascope.metrics import QuotaType, spelled
    from quotascope.pages.words import percent, spaced
    from quotascope.pipeline.report.usage_page import HEADS, NOTHING, clients_of, topics_of

    from .fitted import Fitted

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("entity", overflow="fold", min_width=14)
    table.add_column("quota", max_width=10)
    for head in HEADS:
        table.add_column(head, justify="right")
    owns = [clients_of(found, kind) for kind in QuotaType]
    for own in owns:
        for each, _, cells in own[:top]:
            name = spelled(each.user, each.client_id)
            table.add_row(*map(Text, (name, spaced(each.kind.label), *cells)))
            for topic, held, share in topics_of(each) if by_topic else ():
                table.add_row(*map(Text, (f"  {topic}", "", held, percent(share))), style="dim")
    if more := sum(len(own[top:]) for own in owns):
        table.caption = f"{more:,} more: --top, --json or --html"
    return Fitted(table) if found.clients else Text(NOTHING)
