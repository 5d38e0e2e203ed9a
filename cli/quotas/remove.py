"""`quotascope quotas remove`: take quotas of one entity away."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options
from ..grouping import grouped
from ..running_exporter import RunningExporter
from ..settings import SourceOptions
from .entity import Whom

EXAMPLES = """
Examples:

quotascope quotas remove producer_byte_rate --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope quotas remove --all --default-client-id --exporter http://quotascope:9749 --config /etc/quotascope.yaml --apply

Exit code 0: shown, or with --apply done and read back. 1: not.
"""


@grouped
def remove(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]…", help="Such as producer_byte_rate."),
    ] = None,
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="All quotas of this entity.")
    ] = False,
    whom: Whom,
    apply: options.Apply = False,
    top: options.Top = 20,
    running: RunningExporter,
    read: SourceOptions,
) -> None:
    """Remove quotas of a user, a client-id, a pair, an address or a default: what changes, and for whom."""
    from quotascope.quotas import without

    from .change import alter

    if bool(keys) == all_:
        raise typer.BadParameter("say which quotas: keys, or --all")
    entity = whom.entity()
    settings = read.configuration(log_level="error")
    chosen = None if all_ else tuple(keys or ())
    alter(
        settings,
        running.target(),
        lambda old: without(old, entity, chosen),
        most=top,
        apply=apply,
    )
