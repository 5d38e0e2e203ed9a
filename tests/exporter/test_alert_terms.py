import json
from pathlib import Path

import pytest
from tests.exporter.examples import limits, snapshot, team, usage
from typer.testing import CliRunner

from quotascope.cli.alerts_config import read_alert_terms, read_alerts_config
from quotascope.cli.compose import build_exporter
from quotascope.cli.main import app
from quotascope.cli.top.choices import Choices
from quotascope.cli.top.screen import chosen
from quotascope.cli.usage_table import style_of
from quotascope.exporter.api.answers import snapshot_document
from quotascope.exporter.api.client import observed
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.config.load import load_config
from quotascope.exporter.diagnosis.findings import diagnose, quota_findings
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.page.page import entity_list_page
from quotascope.exporter.page.query import EntityQuery, find_entities
from quotascope.exporter.page.render import PageFrame
from quotascope.exporter.page.rules import RuleQuery, find_rules
from quotascope.exporter.page.teams import Teams
from quotascope.exporter.snapshot import NodeUsage
from quotascope.metrics import catalog
from quotascope.metrics.catalog.thresholds import DEFAULTS, NEAR_LIMIT, SharedThresholds

EARLY = SharedThresholds(near_limit=0.4, handlers_idle=0.3, heavy_bytes=100.0)
"""Thresholds of a site that wants to know earlier than by default."""
HALF = usage(user="half", usage=500.0, limit=1000.0, configured=limits())
LITTLE = usage(user="little", usage=300.0, limit=1000.0, configured=limits())
FILE = """
thresholds: {NEAR_LIMIT: 0.4, HANDLERS_IDLE: 0.3, HEAVY_BYTES: 100}
teams: {teams}
"""


@pytest.mark.parametrize(("thresholds", "near"), [(DEFAULTS, set()), (EARLY, {"half"})])
def test_page_api_and_terminal_call_near_what_the_alert_does(thresholds: SharedThresholds, near: set[str]) -> None:
    """Colors, the legend, the filter and the order follow a threshold that is configured for the alerts."""
    state = snapshot(HALF, LITTLE, thresholds=thresholds)
    result = find_entities(state, Trails(), EntityQuery.read({"show": "near"}), Teams())
    assert {row.entity.user for row in result.rows} == near
    text = entity_list_page(result, PageFrame())
    assert f"■ {thresholds.near_limit * 100:g} % of the limit and more" in text
    everything = find_entities(state, Trails(), EntityQuery.read({}), Teams())
    rows = entity_list_page(everything, PageFrame()).partition("<tbody>")[2].partition("</tbody>")[0]
    assert ('class="near' in rows) is bool(near)
    assert {row.entity.user for row in (HALF, LITTLE) if style_of(row, thresholds.near_limit) == "yellow"} == near
    rules = find_rules(
        snapshot(usage(usage=500.0, limit=1000.0, configured=limits()), thresholds=thresholds),
        RuleQuery.read({"show": "near"}),
    )
    assert bool(rules.total) is bool(near)


def test_a_terminal_that_reads_an_exporter_has_its_thresholds() -> None:
    """The API has the exporter's thresholds, by which `top` puts entities near a limit before unknown ones."""
    unknown = usage(user="unknown", usage=7.0)
    state, _ = observed(encoded(snapshot_document(snapshot(HALF, unknown, thresholds=EARLY))))
    assert state.thresholds == EARLY
    assert [row.entity.user for row in chosen(state, Choices())] == ["half", "unknown"]
    state, _ = observed(encoded(snapshot_document(snapshot(HALF, unknown))))
    assert [row.entity.user for row in chosen(state, Choices())] == ["unknown", "half"]


def test_findings_have_the_thresholds_of_the_alerts() -> None:
    """Findings about idle handlers and heavy traffic use the thresholds of the alerts."""
    idle = (NodeUsage(broker="1", numbers={catalog.REQUEST_HANDLER_IDLE: {(): 0.2}}),)
    users = [usage(user=name, usage=bytes_s) for name, bytes_s in (("proxy", 900.0), ("bob", 10.0), ("carol", 10.0))]
    for thresholds, expected in ((DEFAULTS, set()), (EARLY, {"node_saturated", "one_user_has_traffic"})):
        state = snapshot(*users, thresholds=thresholds, nodes=idle)
        codes = {finding.code for finding in (*diagnose(state), *quota_findings(state))}
        assert codes & {"node_saturated", "one_user_has_traffic"} == expected


@pytest.mark.parametrize(("thresholds", "shown"), [(DEFAULTS, "large"), (EARLY, "near")])
def test_an_entity_that_an_alert_may_be_on_keeps_its_series(thresholds: SharedThresholds, shown: str) -> None:
    """Where not all entities are shown, one near its limit comes before one that only uses much."""
    crowd = usage(user="near", usage=45.0, limit=100.0), usage(user="large", usage=4000.0, limit=1e6)
    capped = Cardinality(CardinalityConfig(max_entities=1)).apply(snapshot(*crowd, thresholds=thresholds))
    assert [row.entity.user for row in capped.entities if not row.entity.stands_in] == [shown]


def test_the_exporter_reads_the_file_of_the_alerts(tmp_path: Path) -> None:
    """The exporter has the thresholds and teams of the file from which `alerts write` makes rules."""
    alerts, config, teams = (tmp_path / f"{name}.yaml" for name in ("alerts", "config", "teams"))
    alerts.write_text(FILE.replace("{teams}", str(teams)))
    teams.write_text("teams: [{team: payments, clients: [{user: alice}]}]")
    config.write_text(f"sources: [{{url: 'http://a:1/jolokia'}}]\nalerts_config: {alerts}\nteams: {teams}")
    exporter, _ = build_exporter(load_config(config, {}))
    terms = exporter.parts.alert_terms
    assert terms == read_alert_terms(alerts)
    assert terms.thresholds == EARLY
    assert terms.teams == (team("payments", user="alice"),)
    site = read_alerts_config(alerts)
    assert (site.value(NEAR_LIMIT), site.teams) == (0.4, terms.teams)
    from_environment = {
        "QUOTASCOPE_ALERTS_CONFIG": str(alerts),
        "QUOTASCOPE_TEAMS": str(teams),
        "QUOTASCOPE_SOURCES": "http://a:1/jolokia",
    }
    exporter, _ = build_exporter(load_config(None, from_environment))
    assert exporter.parts.alert_terms == terms


def test_a_mistake_in_the_file_of_the_alerts_is_reported_by_file_line_and_key(tmp_path: Path) -> None:
    """The exporter does not start with thresholds that `alerts write` refuses."""
    alerts, config = tmp_path / "alerts.yaml", tmp_path / "config.yaml"
    alerts.write_text("thresholds:\n  NEAR_LIMIT: 90\n  NEAR: 1\nowners:\n- {team: a}\n")
    config.write_text(f"sources: [{{url: 'http://a:1/jolokia'}}]\nalerts_config: {alerts}")
    with pytest.raises(ConfigError) as caught:
        build_exporter(load_config(config, {}))
    assert caught.value.subject == str(alerts)
    assert caught.value.problems == (
        "line 2: thresholds.NEAR_LIMIT: expected less than or equal to 1, got 90",
        "line 3: unknown key 'NEAR' under thresholds; did you mean 'NEAR_LIMIT'?",
        "line 4: owners is the file of teams now: write `teams: FILE` (documentation: Teams)",
    )
    checked = CliRunner().invoke(app, ["config", "check", str(config), "--json"])
    assert checked.exit_code == 1
    assert "thresholds.NEAR_LIMIT" in json.loads(checked.stdout)["findings"][0]["text"]


def test_other_teams_than_those_of_the_alerts_are_refused(tmp_path: Path) -> None:
    """Teams that differ from the alerts' are refused with what to write, since one client would count for two."""
    alerts, config, teams, others = (tmp_path / f"{name}.yaml" for name in ("alerts", "config", "teams", "others"))
    alerts.write_text(f"teams: {teams}")
    teams.write_text("teams: [{team: payments, clients: [{user: alice}]}]")
    others.write_text("teams: [{team: etl, clients: [{user: alice}]}]")
    for line, said in (("", "names teams, and this configuration none"), (f"teams: {others}", "names other teams")):
        config.write_text(f"sources: [{{url: 'http://a:1/jolokia'}}]\nalerts_config: {alerts}\n{line}")
        with pytest.raises(ConfigError, match=f"{said}; write the same `teams: FILE` in both"):
            build_exporter(load_config(config, {}))


def test_owners_are_refused_with_what_to_do() -> None:
    """A variable is refused as a key of the file is."""
    with pytest.raises(ConfigError, match="QUOTASCOPE_DEFAULT_OWNER is the last team of the file of teams now: write"):
        load_config(None, {"QUOTASCOPE_DEFAULT_OWNER": "platform"})
