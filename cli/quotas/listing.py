"""`quotascope quotas list`: rules, the entities under them, and their utilization."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import options, outputs
from ..options import grouped
from ..settings import RunningExporter, SourceOptions

EXAMPLES = """
Examples:

quotascope quotas list --bootstrap-servers broker-1:9092 --discover 'http://{host}:8778/jolokia'

quotascope quotas list --exporter http://quotascope:9749 --by-use

quotascope quotas list --config /etc/quotascope.yaml --json

Without --source, --discover or --exporter, the rules alone are shown.
"""


@grouped
def list_(
    *,
    running: RunningExporter,
    sources: SourceOptions,
    teams: Annotated[Path | None, options.TEAMS] = None,
    by_use: Annotated[bool, typer.Option("--by-use", help="The highest utilization first.")] = False,
    json: options.Json = False,
) -> None:
    """Show every configured quota, with the entities under it now and their utilization."""
    from rich.console import Console

    from quotascope.exporter.diagnosis.rule_usage import rule_usage

    from ..cluster import limits_and_usage, warn_of_unenforced
    from ..teams import team_finder
    from . import list_view, misnamed_view

    settings = sources.configuration(log_level="error")
    limits, snapshot = limits_and_usage(settings, running.target())
    warn_of_unenforced(limits.releases, (kind.quota_key for kind, rules in limits.rules.items() if rules))
    file = teams or settings.teams
    finder = None if file is None else team_finder(file)
    rules = list_view.in_order(rule_usage(limits, snapshot), by_use=by_use)
    if json:
        outputs.put_json(list_view.as_json(rules, sources.connection, finder))
    else:
        near_limit = None if snapshot is None else snapshot.thresholds.near_limit
        Console().print(list_view.as_table(rules, near_limit, finder))
        doubtful = {rule.misnamed.entity: rule.misnamed for rule in rules if rule.misnamed is not None}
        for line in misnamed_view.lines(doubtful.values(), sources.connection):
            typer.echo(line)
