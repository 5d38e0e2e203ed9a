"""What `set` and `remove` have in common: show a change and whom it affects, and apply it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from quotascope.clients.quota_admin import QuotaAdmin
    from quotascope.exporter.config import Config
    from quotascope.exporter.snapshot import Snapshot
    from quotascope.exporter.sources.fetch import HttpTarget
    from quotascope.quotas import Change, QuotaSet

    from .change_view import Affected


def alter(
    config: Config,
    exporter: HttpTarget | None,
    wanted: Callable[[QuotaSet], QuotaSet],
    *,
    most: int,
    apply: bool,
    never_reached: bool = False,
) -> None:
    """
    Show what leads from the quotas of the cluster to those that are wanted; do it with ``apply``, and read it back.

    Raises ``InvalidQuotas``, ``NotApplied``, ``ClientError`` and ``ConfigError``.

    Args:
        config: where Kafka is, and maybe the sources.
        exporter: where to ask who uses how much; None asks the sources, if there are any.
        wanted: gives the quotas to come by those of now.
        most: how many of the affected are shown.
        apply: whether to do it.
        never_reached: whether limits are refused that what is used now is not far below.

    """
    from rich.console import Console

    from quotascope.exporter.impact import reaching
    from quotascope.quotas import InvalidQuotas, QuotaSet, difference

    from .change_view import view
    from .cluster import admin, usage

    with admin(config) as opened:
        old = QuotaSet.of(opened.describe_quotas())
        new = wanted(old)
        changes = difference(old, new)
        if not changes:
            typer.echo("nothing to change: the cluster has it so already")
            return
        snapshot = usage(config, exporter)
        Console().print(view(changes, _affected(snapshot, old, new), most))
        if never_reached and snapshot is not None:
            reached = reaching(changes, snapshot.measured)
            if reached:
                raise InvalidQuotas("--measure-only", reached)
        if apply:
            _apply(opened, changes)
        else:
            typer.echo("nothing was changed: --apply does it")


def _apply(admin: QuotaAdmin, changes: Sequence[Change]) -> None:
    from quotascope.quotas import apply_changes

    apply_changes(admin, changes)
    plural = "" if len(changes) == 1 else "s"
    typer.echo(f"applied and read back: {len(changes)} quota{plural}")


def _affected(
    snapshot: Snapshot | None, old: QuotaSet, new: QuotaSet
) -> Affected | None:
    from quotascope.exporter.impact import impacts
    from quotascope.exporter.ip_impact import ip_impacts

    from .change_view import Affected

    if snapshot is None:
        return None
    return Affected(
        impacts(old, new, snapshot.measured), ip_impacts(old, new, snapshot.nodes)
    )
