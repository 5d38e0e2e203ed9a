"""`quotascope shadow verify`: what a shadow predicted, and what the brokers did since it is set."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC
from typing import Annotated, Final

import typer

from . import options

EXAMPLES = """
Examples:

quotascope shadow verify "half of it" --folder usage --since 2026-11-23T14:00:00Z

quotascope shadow verify "half of it" --prometheus http://prometheus:9090 --since 2026-11-23T14:00:00Z --tolerance 10 --json

Exit code 0: the same entities are throttled, and the throttle time is within the tolerance. 1: it is not. Else there is nothing to compare.
"""
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
            min=0, max=100, metavar="PERCENT", help="By how much the throttle time of all entities together may differ."
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

        from .shadow_view import verified

        Console().print(verified(found))
        differ, count = sum(not each.agrees for each in found.entities), len(found.entities)
        about = f"the throttle time is off by {off_percent:.1f} %, {differ} of {count} entities differ"
        typer.echo(f"{'agrees' if agrees else 'differs'}: {about}")
    raise typer.Exit(0 if agrees else 1)


def _ms(text: str | None, name: str) -> int | None:
    at = options.time_of(text, name, UTC)
    return None if at is None else round(1_000 * at)
