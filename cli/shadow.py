"""`quotascope shadow`: limits that are evaluated on live traffic, and enforced by no broker."""

from __future__ import annotations

import typer

from . import shadow_status, shadow_stream, shadow_verify

shadow = typer.Typer(
    name="shadow",
    help="Evaluate limits on live traffic before they are set.",
    no_args_is_help=True,
)
shadow.command(epilog=shadow_status.EXAMPLES)(shadow_status.status)
shadow.command(epilog=shadow_stream.EXAMPLES)(shadow_stream.stream)
shadow.command(epilog=shadow_verify.EXAMPLES)(shadow_verify.verify)
