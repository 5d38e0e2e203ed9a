"""`quotascope shadow verify`: what a shadow predicted, and what the brokers did since it is set."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options

if TYPE_CHECKING:
    from rich.table import Table

    from quotascope.pipeline.runs.verify import Verification

EXAMPLES = """
Examples:

quotascope shadow verify "half of it" --folder usage --since 2026-11-23T14:00:00Z

quotascope shadow verify "half of it" --prometheus http://prometheus:9090 --since 2026-11-23T14:00:00Z --tolerance 10 --json

Exit code 0: the same entities are throttled, and the throttle time is within the tolerance. 1: it is not. Else there is nothing to compare.
"""
_MOST: Final = 50
_NOTHING: Final = 2


def verify(
    shadow: Annotated[str, typer.Argument(metavar="SHADOW", help="Name of the candidate.")],
    *,
    since: Annotated[str, typer.Option(metavar="TIME", help="When its limits were set, as ISO 8601.")],
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Compare what `shadow stream` decided with the requests that it has read since."
        ),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Compare what the exporter showed with what the brokers reported since."),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Begin of the prediction.", show_default="as long before as until after"
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the comparison.", show_default="now")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            max=100,
            metavar="PERCENT",
            help="By how much the throttle time of all entities together may differ.",
        ),
    ] = 10.0,
    as_json: options.Json = False,
) -> None:
    """Compare what a shadow predicted with what the brokers did since its limits are set."""
    options.check_extra()
    from quotascope.pipeline.runs.verify import NotVerified, verify_log, verify_prometheus

    times_ms = _ms(since, "--since") or 0, _ms(until, "--until"), _ms(begin, "--from")
    if (folder is None) == (prometheus is None):
        raise typer.BadParameter("give one of them", param_hint="--folder, --prometheus")
    try:
        if prometheus is not None:
            found = verify_prometheus(prometheus, shadow, *times_ms)
        else:
            found = verify_log(folder or "", shadow, *times_ms)
    except NotVerified as error:
        typer.echo(f"quotascope: {error}", err=True)
        raise typer.Exit(_NOTHING) from None
    agrees, off_percent = found.agrees(tolerance / 100), 100 * found.off()
    if as_json:
        document = {"agrees": agrees, "off_percent": round(off_percent, 3), "tolerance_percent": tolerance}
        typer.echo(json.dumps(document | asdict(found), indent=2))
    else:
        from rich.console import Console

        Console().print(_table(found))
        differ, count = sum(not each.agrees for each in found.entities), len(found.entities)
        about = f"the throttle time is off by {off_percent:.1f} %, {differ} of {count} entities differ"
        typer.echo(f"{'agrees' if agrees else 'differs'}: {about}")
    raise typer.Exit(0 if agrees else 1)


def _ms(text: str | None, name: str) -> int | None:
    at = options.time_of(text, name, UTC)
    return None if at is None else round(1_000 * at)


def _table(found: Verification) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from quotascope.metrics import spelled
    from quotascope.pages.words import seconds, shown

    title = Text(f"Shadow {shown(found.shadow)}: predicted → since it is set")
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    table.add_column("entity", overflow="fold")
    for name in ("throttled", "throttle time", "refused", ""):
        table.add_column(name, justify="right")
    for each in found.entities[:_MOST]:
        before, after = each.predicted, each.happened
        entity = spelled(each.user, each.client_id)
        cells = (
            f"{entity} on {shown(each.cluster)}" if each.cluster else entity,
            f"{before.throttled:,} → {after.throttled:,}",
            f"{seconds(before.seconds)} → {seconds(after.seconds)}",
            f"{before.refused:,} → {after.refused:,}",
            "" if each.agrees else "differs",
        )
        table.add_row(*map(Text, cells))
    if len(found.entities) > _MOST:
        table.caption = f"{len(found.entities) - _MOST:,} more: --json"
    return table
