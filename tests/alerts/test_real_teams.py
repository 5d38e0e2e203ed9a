"""Alerts on clients reach their team: a real Prometheus sets the label `team`, a real Alertmanager routes by it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.alerts.promtool import ALERTMANAGER
from tests.integration.alerting.alertmanager import Message, Pager, alerting
from tests.integration.alerting.hurry import hurried
from tests.integration.eventually import eventually, some
from tests.integration.prometheus import Prometheus, running
from tests.servers import served

from quotascope.alerts.files import write
from quotascope.cli.alerts_config import read_alerts_config
from quotascope.dashboards.scope import Scope

pytestmark = pytest.mark.real

ALERT = "KafkaQuotaThrottleBeyondClientTimeout"
HOSTILE = 'a"b\\c\n{{ $x }} `d` 中$1'
TEAM = 'the "team" {{ $1 }} of \\d'
TEAMS = [
    {"team": "payments", "clients": [{"user": "alice"}]},
    {"team": "etl", "clients": [{"user_pattern": "(?i)ETL-.*", "client_id_pattern": "load[0-9]+"}]},
    {"team": TEAM, "clients": [{"user": "none", "client_id": "x"}, {"client_id": HOSTILE}]},
    {"team": "late", "clients": [{"user_pattern": ".*alice"}]},
    {"team": "platform", "clients": [{"user_pattern": ".*"}]},
]
CLIENTS = {
    ("alice", ""): "payments",
    ("malice", ""): "late",
    ("alice2", ""): "platform",
    ("etl-eu", "load7"): "etl",
    ("etl-eu", "load"): "platform",
    ("", HOSTILE): TEAM,
    ("line\nalice", "x"): "late",
}
"""Teams of alerts, by user and client-id."""
Watch = tuple[Pager, Prometheus]


def exposition() -> str:
    """Return the exposition of an exporter that reports a throttle time of 40 s for each client."""
    lines = ['quotascope_build_info{version="1"} 1']
    for names in CLIENTS:
        user, client_id = (json.dumps(name, ensure_ascii=False) for name in names)
        entity = f'quota_type="produce",broker="1",user={user},client_id={client_id}'
        lines.append(f"kafka_quota_throttle_time_seconds{{{entity}}} 40")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Run Prometheus with the rules, Alertmanager with the example, and a receiver of its messages."""
    folder = tmp_path_factory.mktemp("teams")
    (folder / "metrics").write_text(exposition(), encoding="utf-8")
    config = folder / "alerts.yaml"
    teams_file = folder / "teams.yaml"
    teams_file.write_text(json.dumps({"teams": TEAMS}), encoding="utf-8")
    settings = {"teams": str(teams_file), "alerts": {ALERT: {"enabled": True, "for": "0s"}}}
    config.write_text(json.dumps(settings), encoding="utf-8")
    rules = write(folder / "rules", read_alerts_config(config))
    with served(Pager(folder)) as pager:
        routes = yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))
        teams = dict.fromkeys(CLIENTS.values())
        (ours,) = routes["route"]["routes"]
        ours["routes"][:0] = [{"matchers": [f"team={json.dumps(team)}"], "receiver": team} for team in teams]
        routes["receivers"] += [{"name": team} for team in teams]
        for receiver in routes["receivers"]:
            receiver["webhook_configs"] = [{"url": pager.url}]
        with alerting(folder / "alertmanager", hurried(routes)) as alertmanager:
            scraped = [{"targets": [pager.url.removeprefix("http://")]}]
            document: dict[str, Any] = {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": list(map(str, rules)),
                "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]},
                "scrape_configs": [
                    {"job_name": "quotascope", "metrics_path": "/files/metrics", "static_configs": scraped}
                ],
            }
            with running(folder / "prometheus", document) as prometheus:
                yield pager, prometheus


def test_an_alert_arrives_at_its_team(watch: Watch) -> None:
    """An alert arrives at the first team with an entry that matches the full names; the last team has all others."""
    pager, _ = watch

    def arrived() -> list[Message]:
        reported = some(pager.reported("firing", alertname=ALERT))
        assert len({_client(message) for message in reported}) == len(CLIENTS)
        return reported

    messages = eventually(arrived, seconds=60)
    team_of = {_client(message): message.labels["team"] for message in messages}
    assert team_of == CLIENTS
    # a webhook has the name of its receiver as a regular expression
    assert all(re.fullmatch(message.receiver, message.labels["team"]) for message in messages)


def test_the_recorded_team_is_the_same(watch: Watch) -> None:
    """The recorded team, by which dashboards filter, is the team of the alert."""
    _, prometheus = watch

    def recorded() -> None:
        team_of = {
            (labels["user"], labels["client_id"]): labels["team"]
            for labels, _ in prometheus.query("entity:kafka_quota_team:info")
        }
        assert team_of == CLIENTS

    eventually(recorded, seconds=30)


def _client(message: Message) -> tuple[str, str]:
    labels = message.labels
    return labels.get("user", ""), labels.get("client_id", "")


@pytest.mark.parametrize(("chosen", "clients"), [("payments", {("alice", "")}), (".*", {*CLIENTS})])
def test_a_dashboard_shows_the_chosen_teams_clients(watch: Watch, chosen: str, clients: set[tuple[str, str]]) -> None:
    """The filter of the variable *Team* selects the team's clients; *All* selects all clients."""
    _, prometheus = watch
    every = "max by (cluster, user, client_id) (kafka_quota_throttle_time_seconds)"
    query = Scope(by_team=True).of_teams(every)
    query = query.replace("$cluster", ".*").replace("${team:regex}", chosen)

    def filtered() -> None:
        entities = {(labels["user"], labels["client_id"]) for labels, _ in prometheus.query(query)}
        assert entities == clients

    eventually(filtered, seconds=30)
