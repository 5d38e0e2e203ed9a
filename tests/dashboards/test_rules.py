"""Rules of Grafana's dashboard-linter and further ones: expressions parse, and their series exist."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from tests.alerts.expressions import ONE_TEAM, nodes
from tests.dashboards.boards import expressions, names_and_labels, panels_of, parsed
from tests.exporter.recorded import joined

from quotascope.alerts import Dashboard, Site, thresholds
from quotascope.alerts.durations import duration_seconds
from quotascope.alerts.render import alerts, records, thresholds_of
from quotascope.alerts.thresholds import NEAR_LIMIT
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.promql import span
from quotascope.dashboards.recorded import ENTITY_TEAM, LONGEST_GAP, TREND_WINDOW, WAITS_WINDOW
from quotascope.dashboards.scope import Scope
from quotascope.dashboards.steps import ABOVE_ZERO
from quotascope.exporter.exposition import Renderer
from quotascope.metrics import catalog
from quotascope.metrics.catalog import FamilyType, families, job_families

Dashboards = dict[str, dict[str, Any]]
FAMILY_NAMES = {family.name for family in (*families(), *job_families())}


def _panels(dashboards: Dashboards) -> Iterator[dict[str, Any]]:
    for dashboard in dashboards.values():
        yield from (panel for panel in panels_of(dashboard) if panel["type"] != "row")


def _variables(dashboards: Dashboards) -> Iterator[dict[str, Any]]:
    for dashboard in dashboards.values():
        yield from dashboard["templating"]["list"]


def test_there_is_every_dashboard_that_alerts_point_to(dashboards: Dashboards) -> None:
    """Each dashboard that an alert links to exists and has the variables that the link sets."""
    assert set(dashboards) == {board.uid for board in Dashboard}
    for board in Dashboard:
        names = {variable["name"] for variable in dashboards[board.uid]["templating"]["list"]}
        assert set(board.variables) <= names


def test_variables_ask_only_for_our_own_series(dashboards: Dashboards) -> None:
    """``label_values(user)`` would search everything that a Prometheus has."""
    queries = [variable for variable in _variables(dashboards) if variable["type"] == "query"]
    assert queries
    for query in queries:
        if query["name"] == "backtick":
            assert "label_replace(vector(1)," in query["query"], "it asks for no series at all"
            continue
        assert {*_families_of(query)} <= {*FAMILY_NAMES, ENTITY_TEAM}


def _families_of(variable: dict[str, Any]) -> list[str]:
    """Return the families whose label is queried, each selected by its whole name."""
    match = re.fullmatch(r'label_values\((?:([\w:]+)(?:\{.*\})?|\{__name__=~"([\w|]+)".*\}), \w+\)', variable["query"])
    assert match is not None
    return [match[1]] if match[1] else match[2].split("|")


@pytest.mark.parametrize(
    "agent",
    ["jolokia2.json", "jmx_default.txt", "msk.txt", "strimzi.txt", "kafka_2_0_0.txt", "confluent.txt"],
)
def test_brokers_can_be_chosen_whatever_their_agent_reports(dashboards: Dashboards, agent: str) -> None:
    """A broker is in the list though its agent reports no delay queues."""
    snapshot = joined([f"dialects/{agent}"], None)
    exposition = Renderer().render(snapshot, snapshot.taken_at).decode()
    variables = dashboards["quotascope-brokers"]["templating"]["list"]
    (broker,) = (variable for variable in variables if variable["name"] == "broker")
    families_shown = {line.partition("{")[0] for line in exposition.splitlines() if 'broker="1"' in line}
    assert not families_shown.isdisjoint(_families_of(broker))


def test_every_legend_names_the_cluster(variant: Scope) -> None:
    """Each legend names the cluster: a dashboard can show several, whose lines would have one name."""
    boards = grafana_dashboards(variant)
    legends = [
        (panel["title"], target["legendFormat"])
        for panel in _panels(boards)
        for target in panel["targets"]
        if panel["type"] != "table"
    ]
    assert legends
    for title, legend in legends:
        assert legend.startswith(f"{{{{{variant.cluster}}}}}"), title
    for board in boards.values():
        for mark in board["annotations"]["list"]:
            (label,) = re.findall(r"\{\{(\w+)\}\}", mark["textFormat"])
            # for a label that a series does not have, Grafana writes the label's name
            joined_labels = re.findall(r'^  "(\w+| )"', mark["expr"], re.MULTILINE)
            assert joined_labels[:3] == [label, " ", variant.cluster]
            assert len(joined_labels) > 3


def test_tables_name_the_cluster(variant: Scope) -> None:
    """Tables name the cluster, except for tables of jobs, which may have none."""
    for panel in _panels(grafana_dashboards(variant)):
        if panel["type"] == "table":
            columns = panel["transformations"][1]["options"]["renameByName"]
            assert (variant.cluster in columns) is ("app" not in columns), panel["title"]


def test_panels_say_how_many_of_each_cluster_they_show(variant: Scope) -> None:
    """Descriptions say how many rows a topk keeps."""
    cut = [
        (f"{panel['title']} {panel['description']}", count)
        for panel in _panels(grafana_dashboards(variant))
        for target in panel["targets"]
        for count in re.findall(r"topk by \(\w+\) \(\s*(\d+),", target["expr"])
    ]
    assert len(cut) > 10
    for text, count in cut:
        assert f"{count} of each cluster" in text


RARE = {
    *(catalog.BROKER_CONNECTIONS_PER_SECOND, catalog.CONTROLLER_EVENTS),
    *(catalog.LISTENER_CONNECTIONS_PER_SECOND, catalog.LISTENER_CONNECTION_THROTTLE_SECONDS),
    *(catalog.IP_CONNECTIONS_PER_SECOND, catalog.IP_CONNECTION_THROTTLE_SECONDS),
    *(catalog.REPLICATION_BYTES_PER_SECOND, catalog.REMOTE_STORAGE_BYTES_PER_SECOND),
    *(catalog.REMOTE_STORAGE_THROTTLE_SECONDS, catalog.STALE_ENTITIES, catalog.UTILIZATION_DISAGREEMENTS),
    *(catalog.DISCOVERED_SOURCES, catalog.DISCOVERY_ERRORS, catalog.OTLP_EXPORTS, catalog.SPARK_LISTENER_PROBLEMS),
}
"""Of interest, or there at all, only with an unusual limit, agent or configuration, or a defect."""


def test_rows_of_what_is_rare_are_closed(dashboards: Dashboards) -> None:
    """Open rows are not empty in most clusters."""
    names = {family.name for family in RARE}
    for dashboard in dashboards.values():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                assert not names & {*re.findall(r"\w+", target["expr"])}, panel["title"]


FOR_EACH = {"Sources down", "Exporters"}
"""Numbers of which each one is an alert."""
ALWAYS_AT = {
    "Share of the burst that is used up": 1.0,
    **dict.fromkeys(
        (
            *("Longest delay", "Delay, by broker", "Delay", "Wait for the next change"),
            *("Delay, if it were set and now", "The brokers' view: delay", "Waiting, by job"),
        ),
        ABOVE_ZERO,
    ),
}
"""Edges without a threshold: tokens below 0, which is a used share above 1, and any throttle."""


def test_red_begins_where_an_alert_does() -> None:
    """Red begins at a threshold of an alert to whose runbook the panel links."""
    site = Site(runbook_url="https://wiki.example.com/{alert}")
    named = dict(thresholds())
    values_by_url = {
        f"https://wiki.example.com/{rule['alert']}": [named[name].value for name in thresholds_of(rule["alert"])]
        for rule in alerts(site)
    }
    red = 0
    for panel in _panels(grafana_dashboards(Scope(site=site))):
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        values = [step["value"] for step in steps if step["color"] == "red"]
        if values and panel["type"] != "table" and panel["title"] not in FOR_EACH:
            urls = [link["url"] for link in panel["links"]]
            allowed = [value for url in urls for value in values_by_url.get(url, ())]
            allowed += [ALWAYS_AT.get(panel["title"], math.inf)]
            # where red is the lowest color, it ends there
            edge = steps[1]["value"] if values[0] is None else values[0]
            assert edge in allowed, panel["title"]
            assert any(url in values_by_url for url in urls), panel["title"]
            red += 1
    assert red > 10


RED_CELLS = {
    "Throttled": ABOVE_ZERO,
    "Delay": ABOVE_ZERO,  # throttled is red, however short each throttle is
    "Used": NEAR_LIMIT.value,
    "Used in the shadow": NEAR_LIMIT.value,
    "Shadow delay": ABOVE_ZERO,
    "Longer by": ABOVE_ZERO,
    "Waiting": ABOVE_ZERO,
    "In 3 hours": 1.0,  # the alert is about a trend that reaches the limit
    "Budget used": 1.0,
    "Burst used": 1.0,  # and this one about tokens below 0
}


def test_cells_are_red_where_an_alert_begins_and_have_no_color_without_a_number(dashboards: Dashboards) -> None:
    """Grafana gives a cell without a number the lowest color: nothing is throttled there."""
    titles = set()
    for panel in _panels(dashboards):
        if panel["type"] == "table":
            for override in panel["fieldConfig"]["overrides"]:
                title = override["matcher"]["options"]
                looks = {property_["id"]: property_["value"] for property_ in override["properties"]}
                steps = looks.get("thresholds", {}).get("steps", ())
                if not steps or title == "State":  # which every source has
                    continue
                titles.add(title)
                (red,) = (step["value"] for step in steps if step["color"] == "red")
                assert red == RED_CELLS[title]
                if looks["custom.cellOptions"]["type"] == "color-background":
                    assert steps[0]["color"] == "transparent", title
                    assert 0 < steps[1]["value"] < 1e-6, title
    assert titles == {*RED_CELLS}


def test_untrusted_names_are_free_text(dashboards: Dashboards) -> None:
    """Users and client-ids are typed as free text: no variable lists them, and no query has them unescaped."""
    for variable in _variables(dashboards):
        if variable["name"] in {"user", "client_id", "find"}:
            assert variable["type"] == "textbox"
    for panel in _panels(dashboards):
        for target in panel["targets"]:
            unsafe = re.findall(r"\$(?!\{|1\b|cluster\b|__rate_interval\b|__range\b)\w*", target["expr"])
            quoted = re.findall(r'"[^"`]*\$\{[^"]*"', target["expr"])
            assert (unsafe, quoted) == ([], [])


def test_every_panel_explains_itself(dashboards: Dashboards) -> None:
    """
    A panel has a title, a longer description, a query and a unit; no two of a kind share a title.

    Present values come from instant queries; graphs query the range and never topk alone.
    """
    for panel in _panels(dashboards):
        assert panel["title"]
        assert len(panel["description"]) > len(panel["title"])
        assert panel["targets"]
        if panel["type"] != "table":
            assert panel["fieldConfig"]["defaults"]["unit"]
        is_graph = panel["type"] == "timeseries"
        for target in panel["targets"]:
            assert (target["instant"], target["range"]) == (not is_graph, is_graph)
            assert not is_graph or "topk" not in target["expr"] or "@ end()" in target["expr"]
    for dashboard in dashboards.values():
        titles = [(panel["type"], panel["title"]) for panel in panels_of(dashboard)]
        assert len(titles) == len(set(titles))


def test_every_runbook_can_be_reached() -> None:
    """Panels link to the runbooks of all alerts, and to no others."""
    site = Site(runbook_url="https://wiki.example.com/{alert}")
    linked = {*re.findall(r'"url": "(https:.*?)"', json.dumps(grafana_dashboards(Scope(site=site))))}
    # objectives have no panel
    names = [rule["alert"] for rule in alerts(site) if "BudgetBurns" not in rule["alert"]]
    assert linked == {f"https://wiki.example.com/{name}" for name in names}


FAMILIES = {family.name: family for family in (*families(), *job_families())}
RECORDED = {rule["record"] for rule in records(ONE_TEAM)}
BESIDE_JOBS = {"Jobs that wait for Kafka", "Spark jobs behind it"}
"""Panels that show what brokers say in the rows of jobs."""
COUNTER_FUNCTIONS = {"rate", "increase", "irate", "resets"}

Expressions = list[tuple[str, str]]


@pytest.fixture
def every(variant: Scope) -> Expressions:
    models = grafana_dashboards(variant)
    return [pair for model in models.values() for pair in expressions(model)]


def _nodes(pairs: Iterable[tuple[str, str]], kind: str) -> list[tuple[str, Any]]:
    return [(title, node) for title, text in pairs for node in nodes(parsed(text)) if type(node).__name__ == kind]


def test_every_name_and_label_exists(every: Expressions, variant: Scope) -> None:
    """Prometheus' grammar takes each; a panel about a series or a label that nothing exposes would stay empty."""
    assert len(every) > 100
    for title, expression in every:
        for name, labels in names_and_labels(expression):
            if name in RECORDED:
                continue
            family = FAMILIES[name]
            assert set(labels) <= {*family.labels, variant.cluster}, title


def test_recorded_series_are_read_only_when_asked_for(every: Expressions, variant: Scope) -> None:
    """Dashboards without our recording rules read none of their series, except for the choice of teams."""
    names = {name for _, expression in every for name, _ in names_and_labels(expression)}
    assert bool(names & RECORDED - {ENTITY_TEAM}) is variant.recorded


def test_every_family_with_a_cluster_keeps_to_the_chosen_ones(every: Expressions, variant: Scope) -> None:
    """Series of the exporter are selected by the variable of the cluster; jobs do not know their cluster."""
    jobs = {family.name for family in job_families()}
    for title, expression in every:
        for name, labels in names_and_labels(expression):
            assert (variant.cluster in labels) is (name not in jobs), title


def test_rates_are_of_counters_over_the_rate_interval(every: Expressions) -> None:
    """Rates are of counters and over the rate interval, which fits the scrape interval; jobs have ten minutes."""
    ranges = [
        (title, function, name)
        for title, expression in every
        for function, name in re.findall(r"(\w+)\((\w+)\{[^{}]*\}\[", re.sub(r"\$\{\w+:\w+\}", "x", expression))
    ]
    assert ranges
    for title, function, name in ranges:
        if function in {"predict_linear", "max_over_time"}:
            assert FAMILIES[name].type is FamilyType.GAUGE, title
        elif function != "last_over_time":
            assert function in COUNTER_FUNCTIONS, title
            assert FAMILIES[name].type is FamilyType.COUNTER, title
    windows = {window for _, text in every for window in re.findall(r"\[[^]]*\]", text)}
    fixed_windows = {
        *map(span, (TREND_WINDOW, f"{TREND_WINDOW}:10m", WAITS_WINDOW, LONGEST_GAP, "1d", "14d:5m", "15m:30s"))
    }
    assert windows - fixed_windows == {"[$__rate_interval]", "[$__range]", "[$__range:5s]"}


def test_no_sample_is_at_the_end_of_a_range(every: Expressions) -> None:
    """No range is a multiple of a step: Prometheus 2 would count one more sample than Prometheus 3."""
    for title, expression in every:
        for length in re.findall(r"(?<=\[)\w+", re.sub(r"\"(?:[^\"\\]|\\.)*\"", '""', expression)):
            assert duration_seconds(length) % 5, f"{title}: [{length}"


def test_counters_are_never_shown_as_they_are(every: Expressions) -> None:
    """Counters are shown by their growth, since their values only say when a broker was started."""
    for title, node in _nodes(every, "AggregateExpr"):
        if type(node.expr).__name__ == "VectorSelector" and node.expr.name in FAMILIES:
            assert FAMILIES[node.expr.name].type is FamilyType.GAUGE, title


def test_two_exporters_of_a_cluster_count_once(variant: Scope) -> None:
    """Sums are over one value for each broker, except those of jobs and of the exporters' own health."""
    models = grafana_dashboards(variant)
    counted = [
        pair for board in ("overview", "brokers", "mutations") for pair in expressions(models[f"quotascope-{board}"])
    ]
    sums = [(title, node) for title, node in _nodes(counted, "AggregateExpr") if str(node.op) == "sum"]
    assert len(sums) > len(models)
    for title, node in sums:
        below = [type(node_below).__name__ for node_below in nodes(node.expr)]
        assert below.index("AggregateExpr") < below.index("VectorSelector"), title


def test_every_aggregation_keeps_the_cluster(every: Expressions, variant: Scope) -> None:
    """Aggregations keep the clusters of one Prometheus apart, except beside jobs, which may have no cluster."""
    for title, node in _nodes(every, "AggregateExpr"):
        beside_a_job = str(node.op) == "max" and title in BESIDE_JOBS
        labels = re.findall(r"\w+", str(node.modifier).partition("(")[2])
        assert beside_a_job or variant.cluster in labels, title


def test_nothing_is_divided_by_what_may_be_zero(every: Expressions) -> None:
    """No query divides by a value that may be zero or absent, which would give infinity or nothing."""
    divisions = [(title, node) for title, node in _nodes(every, "BinaryExpr") if str(node.op) == "/"]
    assert divisions
    for title, node in divisions:
        if type(node.rhs).__name__ == "NumberLiteral":
            assert node.rhs.val, title
            continue
        guard = node.rhs.expr
        number = type(guard.rhs).__name__ == type(guard.lhs).__name__ == "NumberLiteral"
        assert number or (str(guard.op), guard.rhs.val) == (">", 0.0), title
