"""`quotascope usage`: usage of clients by quota type and topic."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options, outputs, past
from .options import check_extra, grouped, span_of, zone_of
from .past import PrometheusOptions
from .settings import ConfigFile, configuration

if TYPE_CHECKING:
    from quotascope.quotas.team_finder import TeamFinder

EXAMPLES = """
Examples:

quotascope usage --prometheus http://prometheus:9090 --begin 2026-11-01 --end 2026-12-01 --by-user --csv november.csv

quotascope usage --samples samples --begin 2026-11-01 --end 2026-12-01 --by-user

quotascope usage usage --by-topic

quotascope usage usage --user alice --begin 2026-11-22T18:00 --end 2026-11-23T08:00 --time-zone Europe/Berlin

quotascope usage usage --by-user --html usage.html --csv usage.csv

quotascope usage usage --teams teams.yaml --csv teams.csv

quotascope usage usage --json | jq '.clients[0]'
"""


@grouped
def usage(
    folder: Annotated[str | None, options.FOLDER] = None,
    *,
    user: Annotated[str | None, options.USER] = None,
    client_id: options.ClientId = None,
    by_topic: Annotated[
        bool,
        typer.Option("--by-topic", help="Also show the topics of each client, by bytes."),
    ] = False,
    by_user: options.ByUser = False,
    teams: Annotated[Path | None, options.TEAMS] = None,
    begin: options.Begin = None,
    end: options.End = None,
    time_zone: options.TimeZone = "UTC",
    top: options.Top = 20,
    prometheus: PrometheusOptions,
    config: ConfigFile = None,
    results: outputs.Results,
) -> None:
    """
    Show who used how much of which quota over a period: from a usage history, with topics, or from a Prometheus.

    With samples, entities are as brokers measure them, for whole hours; time without samples is unknown, not zero.
    """
    of_prometheus = prometheus.check(folder=folder)
    if by_user and teams is not None:
        raise typer.BadParameter("excludes --by-user: rows are of one of them", param_hint="--teams")
    finder = None if teams is None else _finder(teams, of_samples=of_prometheus)
    check_extra()
    if of_prometheus:
        if by_topic:
            raise typer.BadParameter("needs a request log, FOLDER", param_hint="--by-topic")
        span = span_of(begin, end, zone_of(time_zone))
        _from_prometheus(
            prometheus, config, (user, client_id), span, results, finder, by_user=by_user, top=top, time_zone=time_zone
        )
        return
    from quotascope.pipeline.runs import usage as question

    outputs.check(*results.files)
    zone = zone_of(time_zone)
    with outputs.bar("adding up"):
        answer = question.find_usage(folder or "", (user, client_id), span_of(begin, end, zone))
    if by_user:
        answer = question.by_user(answer)
    if finder is not None:
        answer = question.by_team(answer, finder)
    outputs.write(
        results,
        report=partial(question.report, answer, zone, limit=top, by_topic=by_topic),
        document=partial(question.document, answer),
        csv=partial(question.as_csv, answer),
    )


def _finder(file: Path, *, of_samples: bool) -> TeamFinder:
    """Return a finder of the teams in a file; a request log has names as they are. Raises `InvalidQuotas`."""
    from quotascope.quotas.team_finder import TeamFinder
    from quotascope.quotas.teams import read_teams

    from .teams import team_finder

    return team_finder(file) if of_samples else TeamFinder(read_teams(file))


def _from_prometheus(
    prometheus: PrometheusOptions,
    config: Path | None,
    client: tuple[str | None, str | None],
    span: tuple[float | None, float | None],
    results: outputs.Results,
    finder: TeamFinder | None = None,
    *,
    by_user: bool,
    top: int,
    time_zone: str,
) -> None:
    """Show the usage that the samples of a Prometheus server have."""
    from quotascope.pipeline.prometheus import usage as question

    outputs.check(*results.files)
    with (
        past.open_past(prometheus, configuration(config), span) as opened,
        outputs.bar("adding up rates") as of_rates,
        outputs.bar("adding up throttles") as of_throttles,
    ):
        answer = question.find_usage(opened.past, client, progress=(of_rates, of_throttles))
    if by_user:
        answer = question.by_user(answer)
    if finder is not None:
        answer = question.by_team(answer, finder)
    outputs.write(
        results,
        report=partial(question.report, answer, zone_of(time_zone), limit=top),
        document=partial(question.document, answer),
        csv=partial(question.as_csv, answer),
    )
