"""Dashboard about teams over the whole cluster, and how much of each broker is promised."""

from __future__ import annotations

from typing import Any, Final

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.kafka.entities import QuotaType

from .. import columns, steps
from ..expressions import row_key, top
from ..links import runbooks
from ..panels import Line, Row, dashboard, graph, side_by_side, stat, table
from ..promql import above, both, compare
from ..scope import Scope
from ..variables import common, one_of, values

_CHOSEN: Final = one_of("team")
_BUDGET: Final = ("team", "quota_type")
_ROWS: Final = 50
_TITLES: Final = {
    QuotaType.PRODUCE: (("Produced", 122), ("Produce allowed", 150), ("Produce stranded", 155)),
    QuotaType.FETCH: (("Fetched", 105), ("Fetch allowed", 134), ("Fetch stranded", 142)),
    QuotaType.REQUEST: (("Request time", 130), ("Request allowed", 150), ("Request stranded", 155)),
}
"""Titles of what is used, allowed and stranded, and their widths."""
_OVER: Final = "KafkaQuotaTeamOverBudget"


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard about teams."""
    return dashboard(
        scope,
        Dashboard.TEAMS,
        title="Kafka quotas / Teams",
        description=(
            "What the users and client-ids of each team use together, on all brokers that are read. Nothing enforces "
            "budgets: Kafka's limits hold on each broker by itself."
        ),
        variables=(*common(scope), values(tuple(catalog.TEAM_USAGE.values()), "team", "Team", scope.chosen)),
        rows=(now(scope), budgets(scope), amounts(scope), over_time(scope), brokers(scope)),
    )


def now(scope: Scope) -> Row:
    """Return the row of four numbers about all teams."""
    ratio = _of(scope, catalog.TEAM_BUDGET_RATIO, *_BUDGET)
    over = stat(
        scope,
        "Budgets used up",
        "Budgets whose team uses more than all of it now, by quota type.",
        "short",
        scope.or_zero(scope.by("count", compare(ratio, ">=", 1)), evidence=ratio),
        steps=steps.ANY,
        nothing="no budget",
    )
    fullest = stat(
        scope,
        "Fullest budget",
        "Usage of a team / its budget, where that is highest; at least, as usage that is unknown is not in it.",
        "percentunit",
        scope.by("max", ratio),
        *runbooks(scope.site, _OVER),
        steps=steps.BUDGET,
        nothing="no budget",
    )
    throttled = stat(
        scope,
        "Throttled entities",
        "Users and client-ids that a broker throttles now, each once for each quota type that throttles it.",
        "short",
        scope.by("sum", _of(scope, catalog.TEAM_THROTTLED_ENTITIES, *_BUDGET)),
        steps=steps.ANY,
        nothing="no team",
    )
    sold = scope.by("max", _sold(scope), "broker")
    oversold = stat(
        scope,
        "Oversold brokers",
        "Brokers whose clients have limits above what the broker can do, on some quota type.",
        "short",
        scope.or_zero(scope.by("count", above(sold, 1)), evidence=sold),
        steps=steps.ANY,
        nothing="no capacity known",
    )
    return Row(title="Right now", panels=side_by_side(over, fullest, throttled, oversold))


def budgets(scope: Scope) -> Row:
    """Return the row of budgets, the fullest first."""
    fullest = top(scope, _ROWS, _of(scope, catalog.TEAM_BUDGET_RATIO, *_BUDGET))
    beside = (
        both(_of(scope, family, *_BUDGET), fullest, scope.keys(*_BUDGET))
        for family in (catalog.TEAM_THROTTLED_ENTITIES, catalog.TEAM_FAIRNESS_RATIO)
    )
    budgets_table = table(
        "Budgets, the fullest first",
        "Usage / budget, how many users and client-ids are throttled, and how evenly brokers carry the team (Jain's "
        f"index: 1 if all have the same, 1 / brokers if one has all). At most {_ROWS} of each cluster.",
        (row_key(expr, *_BUDGET) for expr in (fullest, *beside)),
        columns.BoardColumn(title="Team", source="team"),
        columns.quota_type(),
        columns.bar("Budget used", "A", steps.BUDGET, 300),
        columns.number("Throttled entities", "B", "short", 165),
        columns.number("Fairness", "C", "short", 110),
        columns.cluster(scope.site),
        sort="Budget used",
        links=runbooks(scope.site, _OVER),
    )
    return Row(title="Budgets", panels=side_by_side(budgets_table))


def amounts(scope: Scope) -> Row:
    """Return the row of what teams use, what Kafka lets through, and what no traffic can use of it."""
    families = [
        family
        for kind in _TITLES
        for family in (catalog.TEAM_USAGE[kind], catalog.TEAM_ALLOWED[kind], catalog.TEAM_STRANDED[kind])
    ]
    titles = [(title, columns.UNITS[kind.unit], width) for kind in _TITLES for title, width in _TITLES[kind]]
    used = table(
        "Used, allowed and stranded",
        "Allowed is the limit of each user and client-id times the brokers, and empty where one is unlimited or "
        "unknown. Stranded is the part of it on brokers that have not seen them for an hour.",
        (row_key(_of(scope, family, "team"), "team") for family in families),
        columns.BoardColumn(title="Team", source="team"),
        *(
            columns.number(title, letter, unit, width)
            for letter, (title, unit, width) in zip("ABCDEFGHI", titles, strict=True)
        ),
        columns.cluster(scope.site),
        sort="Produced",
    )
    return Row(title="Over the whole cluster", panels=side_by_side(used))


def over_time(scope: Scope) -> Row:
    """Return the row of usage and budgets over time."""
    usage = (
        graph(
            scope,
            title,
            description,
            columns.UNITS.get(kind.unit, "short"),
            Line(_of(scope, catalog.TEAM_USAGE[kind], "team"), "{{team}}"),
            axis=columns.axis_of(kind),
        )
        for kind, title, description in (
            (QuotaType.PRODUCE, "Produced, by team", "Bytes per second on all brokers that are read."),
            (QuotaType.FETCH, "Fetched, by team", "Bytes per second on all brokers that are read."),
            (QuotaType.REQUEST, "Request time, by team", "Request time on all brokers, 100 % being one busy thread."),
            (
                QuotaType.CONTROLLER_MUTATION,
                "Controller mutations, by team",
                "Partitions created, added or deleted per second.",
            ),
        )
    )
    used = graph(
        scope,
        "Used part of budgets",
        "Usage of a team / its budget over the cluster, by quota type.",
        "percentunit",
        Line(_of(scope, catalog.TEAM_BUDGET_RATIO, *_BUDGET), "{{team}}, {{quota_type}}"),
        steps=steps.BUDGET,
        links=runbooks(scope.site, _OVER),
    )
    fairness = graph(
        scope,
        "Fairness over brokers",
        "Jain's index of a team's usage over all brokers: 1 if all have the same, 1 / brokers if one has all.",
        "short",
        Line(_of(scope, catalog.TEAM_FAIRNESS_RATIO, *_BUDGET), "{{team}}, {{quota_type}}"),
        axis="Jain's index",
    )
    return Row(title="Over time", panels=(*side_by_side(*usage), *side_by_side(used, fairness)))


def brokers(scope: Scope) -> Row:
    """Return the row of what is promised of each broker."""
    sold = graph(
        scope,
        "Sold of each broker",
        "Sum of the limits of the users and client-ids on a broker / what it can do, as configured, or the highest "
        "usage seen while it had reserves. Above 100 % it cannot keep all promises at once.",
        "percentunit",
        Line(_sold(scope), "{{quota_type}} of broker {{broker}}, {{capacity}}"),
        steps=steps.SOLD,
        links=runbooks(scope.site, "KafkaQuotaBrokerOversold"),
    )
    return Row(title="Promised of brokers", panels=side_by_side(sold))


def _of(scope: Scope, family: Family, *labels: str) -> str:
    """Return the series of the chosen teams: exporters of one cluster have the same sums."""
    return scope.by("max", scope.of(family, _CHOSEN), *labels)


def _sold(scope: Scope) -> str:
    """Return how much is sold of each broker: of what exporters observed, the lower ratio is the better known."""
    return scope.by("min", scope.of(catalog.SOLD_RATIO), "quota_type", "broker", "capacity")
