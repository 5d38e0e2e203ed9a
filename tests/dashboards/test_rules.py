"""The rules of Grafana's dashboard-linter that matter, and some of our own: every expression is one that Prometheus understands, of series that exist."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from tests.alerts.expressions import nodes
from tests.dashboards.boards import expressions, names_and_labels, panels_of, parsed
from tests.exporter.recorded import joined

from quotascope.alerts import Dashboard, Site, recorded
from quotascope.alerts.book import alert_groups
from quotascope.alerts.recorded import ENTITY_OWNER, LONGEST_GAP, TREND_WINDOW, WAITS_WINDOW
from quotascope.alerts.thresholds import CLIENT_TIMEOUT, NEAR_LIMIT, SPARK_THROTTLED
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope
from quotascope.exporter.exposition import Renderer
from quotascope.metrics import catalog
from quotascope.metrics.catalog import FamilyType, families, job_families

Dashboards = dict[str, dict[str, Any]]
FAMILY_NAMES = {family.name for family in (*families(), *job_families())}


def _panels(dashboards: Dashboards) -> Iterator[dict[str, Any]]:
    for dashboard in dashboards.values():
        yield from (each for each in panels_of(dashboard) if each["type"] != "row")


def _variables(dashboards: Dashboards) -> Iterator[dict[str, Any]]:
    for dashboard in dashboards.values():
        yield from dashboard["templating"]["list"]


def test_there_is_every_dashboard_that_alerts_point_to(dashboards: Dashboards) -> None:
    """Each has the variables that a link to it sets."""
    assert set(dashboards) == {each.uid for each in Dashboard}
    for each in Dashboard:
        names = {one["name"] for one in dashboards[each.uid]["templating"]["list"]}
        assert set(each.variables) <= names


def test_variables_ask_only_for_our_own_series(dashboards: Dashboards) -> None:
    """``label_values(user)`` would search everything that a Prometheus has."""
    queries = [each for each in _variables(dashboards) if each["type"] == "query"]
    assert queries
    for each in queries:
        assert {*_families_of(each)} <= {*FAMILY_NAMES, ENTITY_OWNER}


def _families_of(variable: dict[str, Any]) -> list[str]:
    """The families whose label is asked for, each selected by its whole name."""
    found = re.fullmatch(r'label_values\((?:([\w:]+)(?:\{.*\})?|\{__name__=~"([\w|]+)".*\}), \w+\)', variable["query"])
    assert found is not None
    return [found[1]] if found[1] else found[2].split("|")


@pytest.mark.parametrize(
    "agent",
    ["jolokia2.json", "jmx_default.txt", "msk.txt", "strimzi.txt", "kafka_2_0_0.txt", "confluent.txt"],
)
def test_brokers_can_be_chosen_whatever_their_agent_reports(dashboards: Dashboards, agent: str) -> None:
    """A broker is in the list though its agent reports no delay queues."""
    snapshot = joined([f"dialects/{agent}"], None)
    shown = Renderer().render(snapshot, snapshot.taken_at).decode()
    variables = dashboards["quotascope-brokers"]["templating"]["list"]
    (broker,) = (each for each in variables if each["name"] == "broker")
    families_shown = {line.partition("{")[0] for line in shown.splitlines() if 'broker="1"' in line}
    assert not families_shown.isdisjoint(_families_of(broker))


def test_every_legend_names_the_cluster(variant: Scope) -> None:
    """All dashboards can show several clusters at once: without it, lines of two of them have one name."""
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
    """Those of jobs do not, which need not report theirs."""
    for panel in _panels(grafana_dashboards(variant)):
        if panel["type"] == "table":
            shown = panel["transformations"][1]["options"]["renameByName"]
            assert (variant.cluster in shown) is ("app" not in shown), panel["title"]


def test_panels_say_how_many_of_each_cluster_they_show(variant: Scope) -> None:
    """What a topk leaves out is not missed by surprise."""
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
ALWAYS_AT = {"Share of the burst that is used up": 1.0}
"""An alert on tokens below 0, which is a used share above 1."""


def test_red_begins_where_an_alert_does() -> None:
    """At a threshold of an alert to whose runbook the panel links."""
    site = Site(runbook_url="https://wiki.example.com/{alert}")
    thresholds = {
        f"https://wiki.example.com/{rule.name}": [each.value for each in getattr(rule, "thresholds", ())]
        for group in alert_groups(site)
        for rule in group.rules
    }
    red = 0
    for panel in _panels(grafana_dashboards(Scope(site=site))):
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        values = [step["value"] for step in steps if step["color"] == "red"]
        if values and panel["type"] != "table" and panel["title"] not in FOR_EACH:
            alerts = [each["url"] for each in panel["links"]]
            allowed = [each for url in alerts for each in thresholds.get(url, ())]
            allowed += [ALWAYS_AT.get(panel["title"], math.inf)]
            # where red is the lowest color, it ends there
            at = steps[1]["value"] if values[0] is None else values[0]
            assert at in allowed, panel["title"]
            assert any(url in thresholds for url in alerts), panel["title"]
            red += 1
    assert red > 10


RED_CELLS = {
    "Delay": CLIENT_TIMEOUT.value,
    "Used": NEAR_LIMIT.value,
    "Used in the shadow": NEAR_LIMIT.value,
    "Shadow delay": CLIENT_TIMEOUT.value,
    "Waiting": SPARK_THROTTLED.value,
    "In 3 hours": 1.0,  # the alert is about a trend that reaches the limit
    "Burst used": 1.0,  # and this one about tokens below 0
}


def test_cells_are_red_where_an_alert_begins_and_have_no_color_without_a_number(dashboards: Dashboards) -> None:
    """Grafana gives a cell without a number the lowest color: nothing is throttled there."""
    found = set()
    for panel in _panels(dashboards):
        if panel["type"] == "table":
            for override in panel["fieldConfig"]["overrides"]:
                title = override["matcher"]["options"]
                looks = {one["id"]: one["value"] for one in override["properties"]}
                steps = looks.get("thresholds", {}).get("steps", ())
                if not steps or title == "State":  # which every source has
                    continue
                found.add(title)
                (red,) = (step["value"] for step in steps if step["color"] == "red")
                assert red == RED_CELLS[title]
                if looks["custom.cellOptions"]["type"] == "color-background":
                    assert steps[0]["color"] == "transparent", title
                    assert 0 < steps[1]["value"] < 1e-6, title
    assert found == {*RED_CELLS}


def test_untrusted_names_are_free_text(dashboards: Dashboards) -> None:
    """Ten thousand users or client-ids are in no list, and go into no query as they are."""
    for each in _variables(dashboards):
        if each["name"] in {"user", "client_id", "find"}:
            assert each["type"] == "textbox"
    for panel in _panels(dashboards):
        for target in panel["targets"]:
            unsafe = re.findall(r"\$(?!\{|cluster\b|__rate_interval\b)\w*", target["expr"])
            quoted = re.findall(r'"[^"`]*\$\{[^"]*"', target["expr"])
            assert (unsafe, quoted) == ([], [])


def test_every_panel_explains_itself(dashboards: Dashboards) -> None:
    """
    Title, description that is more than the title, a query, a unit; no two panels of a kind share a title.

    What is true now is asked for now; graphs ask for the range and never for topk alone.
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
        titles = [(one["type"], one["title"]) for one in panels_of(dashboard)]
        assert len(titles) == len(set(titles))


def test_every_runbook_can_be_reached() -> None:
    """Panels link to the runbooks of all alerts, and to no others."""
    site = Site(runbook_url="https://wiki.example.com/{alert}")
    linked = {*re.findall(r'"url": "(https:.*?)"', json.dumps(grafana_dashboards(Scope(site=site))))}
    alerts = [rule.name for group in alert_groups(site) for rule in group.rules]
    assert linked == {f"https://wiki.example.com/{alert}" for alert in alerts}


FAMILIES = {each.name: each for each in (*families(), *job_families())}
RECORDED = {value for value in vars(recorded).values() if isinstance(value, str)}
BESIDE_JOBS = {"Jobs that wait for Kafka", "Spark jobs behind it"}
"""Panels that show what brokers say in the rows of jobs."""
COUNTER_FUNCTIONS = {"rate", "increase", "irate", "resets"}

Expressions = list[tuple[str, str]]


@pytest.fixture
def every(variant: Scope) -> Expressions:
    made = grafana_dashboards(variant)
    return [pair for each in made.values() for pair in expressions(each)]


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
    """Without our recording rules nothing is missing but the choice of owners, which they are."""
    names = {name for _, each in every for name, _ in names_and_labels(each)}
    assert bool(names & RECORDED - {ENTITY_OWNER}) is variant.recorded


def test_every_family_with_a_cluster_keeps_to_the_chosen_ones(every: Expressions, variant: Scope) -> None:
    """Series of the exporter are selected by the variable of the cluster; jobs do not know their cluster."""
    jobs = {family.name for family in job_families()}
    for title, expression in every:
        for name, labels in names_and_labels(expression):
            assert (variant.cluster in labels) is (name not in jobs), title


def test_rates_are_of_counters_over_the_rate_interval(every: Expressions) -> None:
    """A rate of a gauge means nothing, and a fixed range fails with another scrape interval; jobs are looked at for ten minutes."""
    ranges = [
        (title, function, name)
        for title, expression in every
        for function, name in re.findall(r"(\w+)\((\w+)\{[^{}]*\}\[", re.sub(r"\$\{\w+:\w+\}", "x", expression))
    ]
    assert ranges
    for title, function, name in ranges:
        if function == "predict_linear":
            assert FAMILIES[name].type is FamilyType.GAUGE, title
        elif function != "last_over_time":
            assert function in COUNTER_FUNCTIONS, title
            assert FAMILIES[name].type is FamilyType.COUNTER, title
    windows = {each for _, text in every for each in re.findall(r"\[([^]]*)\]", text)}
    others = {TREND_WINDOW, f"{TREND_WINDOW}:10m", WAITS_WINDOW, LONGEST_GAP, "1d", "14d:5m"}
    assert windows - others == {"$__rate_interval"}


def test_counters_are_never_shown_as_they_are(every: Expressions) -> None:
    """Their values say when a broker was started; only their growth means something."""
    for title, node in _nodes(every, "AggregateExpr"):
        if type(node.expr).__name__ == "VectorSelector" and node.expr.name in FAMILIES:
            assert FAMILIES[node.expr.name].type is FamilyType.GAUGE, title


def test_two_exporters_of_a_cluster_count_once(variant: Scope) -> None:
    """A sum is over what was made one for each broker before; jobs, and the exporters' own health, are another matter."""
    made = grafana_dashboards(variant)
    shown = [
        pair for board in ("overview", "brokers", "mutations") for pair in expressions(made[f"quotascope-{board}"])
    ]
    sums = [(title, node) for title, node in _nodes(shown, "AggregateExpr") if str(node.op) == "sum"]
    assert len(sums) > len(made)
    for title, node in sums:
        below = [type(each).__name__ for each in nodes(node.expr)]
        assert below.index("AggregateExpr") < below.index("VectorSelector"), title


def test_every_aggregation_keeps_the_cluster(every: Expressions, variant: Scope) -> None:
    """Clusters of one Prometheus are never added up, nor take each other's place among the highest; beside a job, which need not report its cluster, stands the worst of them."""
    for title, node in _nodes(every, "AggregateExpr"):
        beside_a_job = str(node.op) == "max" and title in BESIDE_JOBS
        labels = re.findall(r"\w+", str(node.modifier).partition("(")[2])
        assert beside_a_job or variant.cluster in labels, title


def test_nothing_is_divided_by_what_may_be_zero(every: Expressions) -> None:
    """A limit of 0 would give infinity, an absent one nothing."""
    divisions = [(title, node) for title, node in _nodes(every, "BinaryExpr") if str(node.op) == "/"]
    assert divisions
    for title, node in divisions:
        guard = node.rhs.expr
        number = type(guard.rhs).__name__ == type(guard.lhs).__name__ == "NumberLiteral"
        assert number or (str(guard.op), guard.rhs.val) == (">", 0.0), title
