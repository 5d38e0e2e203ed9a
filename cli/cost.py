"""`quotascope cost`: what teams owe for the bytes of a month."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options, outputs, past
from .options import check_extra, grouped
from .past import PrometheusOptions
from .settings import ConfigFile, configuration

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.pipeline.cost.month import Month
    from quotascope.pipeline.cost.usage import ClusterUse
    from quotascope.quotas.team_finder import TeamFinder

EXAMPLES = """
Examples:

quotascope cost usage --month 2026-11 --teams teams.yaml

quotascope cost usage --month 2026-11 --teams teams.yaml --csv november.csv --html november.html

quotascope cost --prometheus http://prometheus:9090 --month 2026-11 --teams teams.yaml --priced --csv focus.csv

quotascope cost --prometheus http://prometheus:9090 --counters --month 2026-11 --teams teams.yaml --html november.html

quotascope cost usage --month 2026-11 --teams teams.yaml --cluster-name prod-eu --json | jq -r '.total'
"""


@grouped
def cost(
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FOLDER",
            help="What `quotascope ingest --into` wrote: a folder or URI; several are several clusters.",
        ),
    ] = None,
    *,
    month: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM", help="Month in UTC.", show_default="the last one that has ended"),
    ] = None,
    teams: Annotated[Path | None, options.TEAMS] = None,
    cluster_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name of the cluster; with several FOLDERs, repeat it in their order.",
            show_default="the folder's name, or kafka",
        ),
    ] = None,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters",
            help=(
                "With --prometheus: add up the bytes that exporters have counted for teams, all clusters and entities "
                "beyond the cap included, instead of the rates of entities."
            ),
        ),
    ] = False,
    provider: Annotated[
        str, typer.Option(metavar="NAME", help="Who runs the clusters and sends the bill, in the CSV.")
    ] = "Kafka",
    priced: Annotated[
        bool, typer.Option("--priced", help="Leave rows without a cost out of the CSV, which FOCUS does not allow.")
    ] = False,
    top: options.Top = 20,
    prometheus: PrometheusOptions,
    config: ConfigFile = None,
    results: outputs.Results,
) -> None:
    """
    Add up what teams owe for the bytes of a month, from usage histories or a Prometheus; as CSV with FOCUS's columns.

    No figure has the bytes of hours that were not seen; the report says how many hours were seen.
    """
    of_prometheus = prometheus.check(folder=folders[0] if folders else None)
    if of_prometheus and prometheus.days is not None:
        raise typer.BadParameter("the period is the month", param_hint="--days")
    if counters and not of_prometheus:
        raise typer.BadParameter("needs --prometheus", param_hint="--counters")
    if counters and prometheus.series is not None:
        raise typer.BadParameter("are the exporters' series: give one of them", param_hint="--counters, --series")
    now_s = time.time()
    chosen = _month(month, now_s)
    names = _names(folders or (), cluster_name or ())
    if not provider.strip():
        raise typer.BadParameter("a name is needed, and this is empty", param_hint="--provider")
    settings = configuration(config)
    finder = _finder(teams, settings, of_samples=of_prometheus)
    check_extra()
    outputs.check(*results.files)
    from quotascope.pipeline.cost import charges, focus
    from quotascope.pipeline.cost import report as question

    if counters:
        uses = _of_counters(prometheus, settings, chosen, names[0], now_s)
    elif of_prometheus:
        uses = [_of_prometheus(prometheus, settings, chosen, finder, names[0], now_s)]
    else:
        uses = [*_of_histories(folders or (), chosen, finder, names, now_s)]
    bill = charges.find_charges(uses, finder.teams, chosen, now_s)
    outputs.write(
        results,
        report=partial(question.report, bill, limit=top),
        document=partial(question.document, bill),
        csv=partial(focus.as_csv, bill, provider=provider, priced=priced),
    )


def _month(text: str | None, now_s: float) -> Month:
    """Return the month. Raises ``typer.BadParameter`` for no month, and for one that has not begun."""
    from quotascope.pipeline.cost.month import Month

    if text is None:
        return Month.before(now_s)
    try:
        month = Month.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--month") from None
    if month.span_s[0] >= now_s:
        raise typer.BadParameter(f"{month.name} has not begun, in UTC", param_hint="--month")
    return month


def _names(folders: Sequence[str], chosen: Sequence[str]) -> Sequence[str]:
    """Return a name for each cluster. Raises ``typer.BadParameter`` for too many, too few, and equal names."""
    for folder in folders:
        options.named_folder(folder)
    count = max(1, len(folders))
    if chosen and len(chosen) != count:
        raise typer.BadParameter(f"there are {len(chosen)} names for {count} clusters", param_hint="--cluster-name")
    last_steps = [folder.rstrip("/").rpartition("/")[2] or folder for folder in folders]
    names = chosen or last_steps or ["kafka"]
    for name in names:
        if not name.strip():
            raise typer.BadParameter("a name is needed, and this is empty", param_hint="--cluster-name")
        if names.count(name) > 1:
            problem = f"two clusters are named {name[:60]!r}: give --cluster-name for each FOLDER, in their order"
            raise typer.BadParameter(problem, param_hint="--cluster-name")
    return names


def _finder(teams: Path | None, settings: Config, *, of_samples: bool) -> TeamFinder:
    """Return the finder of teams; a log has whole names. Raises ``InvalidQuotas`` and ``typer.BadParameter``."""
    from quotascope.quotas.team_finder import TeamFinder
    from quotascope.quotas.teams import read_teams

    from .teams import team_finder

    file = teams or settings.teams
    if file is None:
        raise typer.BadParameter("is needed, or `teams` in --config: prices are of teams", param_hint="--teams")
    return team_finder(file) if of_samples else TeamFinder(read_teams(file))


def _of_histories(
    folders: Sequence[str], month: Month, finder: TeamFinder, names: Sequence[str], now_s: float
) -> list[ClusterUse]:
    """Return the bytes of a month in usage histories, of a cluster each."""
    from quotascope.pipeline.cost.usage import use_of_history

    with outputs.bar("adding up"):
        return [use_of_history(folder, month, finder, name, now_s) for folder, name in zip(folders, names, strict=True)]


def _of_prometheus(
    prometheus: PrometheusOptions, settings: Config, month: Month, finder: TeamFinder, name: str, now_s: float
) -> ClusterUse:
    """Return the bytes of a month by the rates of entities in a Prometheus."""
    from quotascope.pipeline.cost.usage import use_of_past

    begin_s, end_s = month.span_s
    with (
        past.open_past(prometheus, settings, (begin_s, min(end_s, now_s))) as opened,
        outputs.bar("adding up rates") as of_rates,
        outputs.bar("adding up throttles") as of_throttles,
    ):
        return use_of_past(opened.past, month, finder, name, now_s, (of_rates, of_throttles))


def _of_counters(
    prometheus: PrometheusOptions, settings: Config, month: Month, name: str, now_s: float
) -> list[ClusterUse]:
    """Return the bytes of a month that exporters have counted for teams, by cluster."""
    from quotascope.pipeline.cost.counters import uses_of_counters

    config = prometheus.config(settings)
    with past.open_server(prometheus, settings) as server:
        return uses_of_counters(
            server, config.label, config.selector, month, now_s, name, check=past.check_exporters(config)
        )
