"""`quotascope quotas`: who may do how much, and changing it."""

from __future__ import annotations

import typer

from . import change, diff, export, listing
from .diff import DiffCommand

quotas = typer.Typer(
    name="quotas",
    help="Quotas: list them with their usage, set and remove them, keep them in a file.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
quotas.command("list", epilog=listing.EXAMPLES)(listing.list_)
quotas.command("set", epilog=change.SET_EXAMPLES)(change.set_)
quotas.command("remove", epilog=change.REMOVE_EXAMPLES)(change.remove)
quotas.command("diff", cls=DiffCommand, epilog=diff.EXAMPLES)(diff.diff)
quotas.command("export", epilog=export.EXAMPLES)(export.export)

__all__ = ["quotas"]
