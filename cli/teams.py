"""`quotascope teams`: the file of teams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options, outputs
from .app import App

if TYPE_CHECKING:
    from quotascope.quotas.team_finder import TeamFinder

teams = App("teams", "Check the file of teams (documentation: Teams).")
EXAMPLES = """
Examples:

quotascope teams check /etc/quotascope/teams.yaml

quotascope teams check teams.yaml --json | jq '.shadowed[].team'
"""


@teams.command(epilog=EXAMPLES)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file; - is standard input.")],
    *,
    json: options.Json = False,
) -> None:
    """
    Report all mistakes in a file of teams, and entries that match no client, as earlier ones take them all.

    Exit code 0: it can be used. 1: it cannot.
    """
    from quotascope.exporter.untrusted import one_line
    from quotascope.pages.words import counted
    from quotascope.quotas import InvalidQuotas, named
    from quotascope.quotas.teams import read_teams, shadowed

    try:
        all_teams = read_teams(file)
    except InvalidQuotas as error:
        if not json:
            raise
        outputs.put_json(_document(problems=error.problems))
        raise typer.Exit(1) from None
    shadowed_entries = [*shadowed(all_teams)]
    if json:
        shadows = [
            {"team": entry.team, "place": entry.place, "by_team": entry.by_team, "by_place": entry.by_place}
            for entry in shadowed_entries
        ]
        outputs.put_json(_document(teams=[team.name for team in all_teams], shadowed=shadows))
        return
    count = sum(len(team.clients) for team in all_teams)
    entries = "1 entry of clients" if count == 1 else f"{count} entries of clients"
    typer.echo(f"{named(file)}: fine, {counted(len(all_teams), 'team')} with {entries}")
    for entry in shadowed_entries:
        text = (
            f"{entry.place} of {one_line(entry.team)} matches no client: {entry.by_place} of {one_line(entry.by_team)} "
            "matches all of them before; delete it, or put it first"
        )
        typer.echo(f"quotascope: warning: {text}", err=True)


def team_finder(file: Path) -> TeamFinder:
    """
    Return a finder of the teams of entities from an exporter or from samples, whose long names are cut.

    Raises `InvalidQuotas`.
    """
    from quotascope.exporter.names import asked_as, real_name
    from quotascope.quotas.team_finder import TeamFinder
    from quotascope.quotas.teams import read_teams

    return TeamFinder(read_teams(file, asked_as), real_name)


def _document(**values: object) -> dict[str, Any]:
    """Return the result for programs, with empty lists for what is not given."""
    return {"problems": [], "teams": [], "shadowed": []} | values
