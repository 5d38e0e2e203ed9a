"""The rules of Grafana's dashboard-linter that matter, and some of our own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tests.dashboards.typescript import panels_of

from quotascope.alerts import Dashboard, Site
from quotascope.alerts.book import alert_groups
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope
from quotascope.metrics.catalog import families, job_families

Dashboards = dict[str, dict[str, Any]]
FAMILY_NAMES = {family.name for family in (*families(), *job_families())}
ON_TIME_RANGE_CHANGE = 2


def _panels(dashboards: Dashboards) -> Iterator[dict[str, Any]]:
    for dashboard in dashboards.values():
        yield from (each for each in panels_of(dashboard) if each["type"] != "row")


def _variables(dashboards: Dashboards) -> Iterator[dict[str, Any]]:
    for dashboard in dashboards.values():
        yield from dashboard["templating"]["list"]


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "url" in value:
            yield value["url"]
        for each in value.values():
            yield from _urls(each)
    elif isinstance(value, list):
        for each in value:
            yield from _urls(each)


def test_there_is_every_dashboard_that_alerts_point_to(dashboards: Dashboards) -> None:
    """Each has the variables that a link to it sets."""
    assert set(dashboards) == {each.uid for each in Dashboard}
    for each in Dashboard:
        names = {one["name"] for one in dashboards[each.uid]["templating"]["list"]}
        assert set(each.variables) <= names


def test_data_source_is_a_variable(dashboards: Dashboards) -> None:
    """The first variable chooses it, and everything uses it."""
    for dashboard in dashboards.values():
        first = dashboard["templating"]["list"][0]
        assert (first["name"], first["label"]) == ("datasource", "Data source")
        assert (first["type"], first["query"]) == ("datasource", "prometheus")
    for panel in _panels(dashboards):
        uids = [one["datasource"]["uid"] for one in (panel, *panel.get("targets", ()))]
        assert set(uids) == {"${datasource}"}


def test_variables_ask_only_for_our_own_series(dashboards: Dashboards) -> None:
    """``label_values(user)`` would search everything that a Prometheus has."""
    queries = [each for each in _variables(dashboards) if each["type"] == "query"]
    assert queries
    for each in queries:
        found = re.fullmatch(r"label_values\((\w+)(\{.*\})?, (\w+)\)", each["query"])
        assert found is not None
        assert found[1] in FAMILY_NAMES
        assert each["refresh"] == ON_TIME_RANGE_CHANGE
        assert (each["multi"], each["includeAll"]) == (True, True)
        assert each["allValue"] == ".*"  # .+ would hide series without the label


def test_names_of_strangers_are_free_text(dashboards: Dashboards) -> None:
    """Ten thousand users or client-ids are in no list, and go into no query as they are."""
    for each in _variables(dashboards):
        if each["name"] in {"user", "client_id", "find"}:
            assert each["type"] == "textbox"
    for panel in _panels(dashboards):
        for target in panel["targets"]:
            unsafe = re.findall(
                r"\$(?!\{|cluster\b|__rate_interval\b)\w*", target["expr"]
            )
            quoted = re.findall(r'"[^"`]*\$\{[^"]*"', target["expr"])
            assert (unsafe, quoted) == ([], [])


def test_every_panel_explains_itself(dashboards: Dashboards) -> None:
    """Title, description that is more than the title, a query, a unit."""
    for panel in _panels(dashboards):
        assert panel["title"]
        assert len(panel["description"]) > len(panel["title"])
        assert panel["targets"]
        if panel["type"] != "table":
            assert panel["fieldConfig"]["defaults"]["unit"]


def test_titles_within_a_dashboard_differ(dashboards: Dashboards) -> None:
    """Two panels of a kind under one title could not be talked about."""
    for dashboard in dashboards.values():
        titles = [(one["type"], one["title"]) for one in panels_of(dashboard)]
        assert len(titles) == len(set(titles))


def test_tables_and_numbers_are_instant_queries(dashboards: Dashboards) -> None:
    """What is true now is asked for now; graphs ask for the range and never for topk alone."""
    for panel in _panels(dashboards):
        for target in panel["targets"]:
            is_graph = panel["type"] == "timeseries"
            assert target["instant"] is not is_graph
            assert target["range"] is is_graph
            if is_graph and "topk" in target["expr"]:
                assert "@ end()" in target["expr"]


def test_links_lead_to_our_dashboards_and_runbooks(dashboards: Dashboards) -> None:
    """Inner links keep time and data source and encode what strangers named."""
    urls = [each for one in dashboards.values() for each in _urls(one) if each]
    inner = [each for each in urls if each.startswith("/")]
    assert len(inner) > 10
    for url in inner:
        parts = urlsplit(url)
        assert parts.path.removeprefix("/d/") in dashboards
        assert "${__url_time_range}" in parts.query
        assert "${datasource:queryparam}" in parts.query
        values = re.findall(r"var-\w+=(\$\{[^}]*\})", parts.query)
        assert all(each.endswith(":percentencode}") for each in values)


def test_rows_link_to_variables_that_their_dashboard_has(
    dashboards: Dashboards,
) -> None:
    """A variable that is not there would be dropped, and everything shown."""
    for url in (each for one in dashboards.values() for each in _urls(one)):
        if url.startswith("/d/"):
            target = dashboards[urlsplit(url).path.removeprefix("/d/")]
            names = {one["name"] for one in target["templating"]["list"]}
            assert set(re.findall(r"var-(\w+)=", url)) <= names


def test_every_runbook_can_be_reached() -> None:
    """Panels link to the runbooks of all alerts, and to no others."""
    site = Site(runbook_url="https://wiki.example.com/{alert}")
    urls = [*_urls([*grafana_dashboards(Scope(site=site)).values()])]
    linked = {each for each in urls if each.startswith("https:")}
    alerts = [rule.name for group in alert_groups(site) for rule in group.rules]
    assert linked == {f"https://wiki.example.com/{alert}" for alert in alerts}
