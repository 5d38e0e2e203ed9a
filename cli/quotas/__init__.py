"""`quotascope quotas`: lists, changes, compares and exports quotas."""

from __future__ import annotations

from ..app import App
from . import change, diff, export, listing
from .diff import DiffCommand

quotas = App("quotas", "Quotas: list them with their usage, set and remove them, keep them in a file.")
quotas.command("list", epilog=listing.EXAMPLES)(listing.list_)
quotas.command("set", epilog=change.SET_EXAMPLES)(change.set_)
quotas.command("remove", epilog=change.REMOVE_EXAMPLES)(change.remove)
quotas.command("diff", cls=DiffCommand, epilog=diff.EXAMPLES)(diff.diff)
quotas.command("export", epilog=export.EXAMPLES)(export.export)

__all__ = ["quotas"]
