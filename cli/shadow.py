"""`quotascope shadow`: limits that are evaluated on live traffic, and enforced by no broker; `status` shows what brokers would do now."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer

from . import options, shadow_stream, shadow_verify
from .options import grouped
from .settings import RunningExporter, SourceOptions

EXAMPLES = """
Examples:

quotascope shadow status --exporter http://quotascope:9749

quotascope shadow status --config /etc/quotascope.yaml --shadow candidates.yaml --json

Exit code 0: no shadow would throttle any client now. 3: one would. 4: none would as far as is known, but something is unknown. 1: nothing could be read.
"""
_THROTTLES: Final = 3
_UNKNOWN: Final = 4


shadow = typer.Typer(name="shadow", help="Evaluate limits on live traffic before they are set.", no_args_is_help=True)


@shadow.command(epilog=EXAMPLES)
@grouped
def status(
    *,
    running: RunningExporter,
    candidates: Annotated[str | None, options.SHADOW] = None,
    top: options.Top = 10,
    json: options.Json = False,
    read: SourceOptions,
) -> None:
    """Show which clients each shadow would throttle at this moment, what is unknown, and how to measure it."""
    from rich.console import Console, Group
    from rich.text import Text

    from quotascope.exporter.api.documents import encoded, shadow_document

    from . import shadow_view
    from .status import observe

    target = running.target()
    if target is not None and candidates is not None:
        about = "a running exporter has shadows of its own"
        raise typer.BadParameter(f"--shadow is for reading brokers: {about}")
    settings = read.configuration(log_level="error", shadow=candidates)
    snapshot, _ = asyncio.run(observe(settings, target))
    shadows, sources = snapshot.shadows, snapshot.sources
    if not shadows:
        wanted = "--shadow FILE, or `shadow:` in the configuration of the exporter"
        raise typer.BadParameter(f"there is no shadow: give {wanted}")
    down = [each.name for each in sources if not (each.up or each.stand_by_of)]
    about_down = "cannot be read: its clients are unknown"
    advice = [*shadow_view.advice(snapshot), *(f"source {name} {about_down}" for name in down)]
    if json:
        documents = list(map(shadow_document, shadows))
        answer = {"taken_at": snapshot.taken_at, "shadows": documents, "advice": advice}
        typer.echo(encoded(answer, indent=2), nl=False)
    else:
        tables = shadow_view.counts(shadows), *shadow_view.nearest(snapshot, top)
        Console().print(Group(*tables, *map(Text, advice)))
    if any(any(each.throttled.values()) for each in shadows):
        raise typer.Exit(_THROTTLES)
    if down or any(each.unevaluated or not each.evaluated for each in shadows):
        raise typer.Exit(_UNKNOWN)


shadow.command(epilog=shadow_stream.EXAMPLES)(shadow_stream.stream)
shadow.command(epilog=shadow_verify.EXAMPLES)(shadow_verify.verify)
