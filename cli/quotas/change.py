"""A change by `set` and `remove`: shown with the clients that it affects, and applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.snapshot import Snapshot
    from quotascope.exporter.sources.fetch import HttpTarget
    from quotascope.quotas import QuotaSet

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
    Show the difference between the quotas of the cluster and the wanted ones; with ``apply`` make it, and read it back.

    Raises ``InvalidQuotas``, ``NotApplied``, ``ClientError`` and ``ConfigError``.

    Args:
        config: where Kafka is, and maybe the sources.
        exporter: reports the usage of entities; None reads the sources, if there are any.
        wanted: the new quotas by the current ones.
        most: how many of the affected are shown.
        apply: whether to do it.
        never_reached: refuse limits that current usage is close to.

    """
    from rich.console import Console

    from quotascope.exporter.diagnosis.impact import reaching
    from quotascope.quotas import InvalidQuotas, QuotaSet, apply_changes, difference

    from .change_view import view
    from .cluster import admin, usage

    with admin(config) as opened:
        old = QuotaSet.of(opened.describe_quotas())
        new = wanted(old)
        changes = difference(old, new)
        if not changes:
            typer.echo("nothing to change: the cluster has these quotas already")
            return
        snapshot = usage(config, exporter)
        Console().print(view(changes, _affected(snapshot, old, new), most))
        if never_reached and snapshot is not None:
            reached = reaching(changes, snapshot.measured)
            if reached:
                raise InvalidQuotas("--measure-only", reached)
        if apply:
            apply_changes(opened, changes)
            plural = "" if len(changes) == 1 else "s"
            typer.echo(f"applied and read back: {len(changes)} quota{plural}")
        else:
            typer.echo("nothing was changed: pass --apply to change it")


def _affected(
    snapshot: Snapshot | None, old: QuotaSet, new: QuotaSet
) -> Affected | None:
    from quotascope.exporter.diagnosis.impact import impacts, ip_impacts

    from .change_view import Affected

    if snapshot is None:
        return None
    return Affected(
        impacts(old, new, snapshot.measured), ip_impacts(old, new, snapshot.nodes)
    )
