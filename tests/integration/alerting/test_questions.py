"""Every query of every dashboard, runbook and rule, asked of a Prometheus that watches a real broker."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.alerts.expressions import ONE_TEAM
from tests.alerts.runbook_parts import blocks
from tests.cluster.cluster import Cluster
from tests.cluster.configs import Configs
from tests.cluster.quotas import Quotas, Rule
from tests.dashboards.boards import names_and_labels
from tests.integration.alerting.questions import GENERATED, Question, questions
from tests.integration.alerting.watch import CLUSTER, Watch, watching
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tools.pictures.prometheus import Prometheus

from quotascope.alerts.render import alerts, profiles_of, records
from quotascope.alerts.runbook import runbooks
from quotascope.alerts.settings import Profile
from quotascope.cli.alerts_config import AlertsConfig
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.recorded import ENTITY_UTILIZATION_PREDICTED
from quotascope.dashboards.scope import Scope
from quotascope.metrics import catalog

pytestmark = pytest.mark.real

ADDRESS: Final[Rule] = ({"ip": "127.0.0.1"}, {"connection_creation_rate": 1000.0})
DYNAMIC: Final = {
    "max.connection.creation.rate": "1000",
    "leader.replication.throttled.rate": "1000000",
    "follower.replication.throttled.rate": "1000000",
}
CONFIG: Final = {"objectives": [{"name": "alice", "objective_percent": 99, "user": "alice"}]}
"""Configuration of the alerts: with an objective and a team there are all rules."""
TEAMS: Final = """
# entities of the scene, all limited: others, which the shared broker remembers of earlier tests, may be unlimited now
teams:
  - team: platform
    clients:
      - {user: alice, client_id_pattern: "scene-.*"}
      - {user_pattern: "bob|carol"}
      - {client_id_pattern: "scene-.*"}
    produce_bytes_per_second: 1000000
    fetch_bytes_per_second: 1000000
    request_threads: 1
    controller_mutations_per_second: 10
"""
SHADOW: Final = """
candidates:
  - name: low
    quotas:
      - {user: <default>, client-id: <default>, producer_byte_rate: 10, controller_mutation_rate: 0.1}
"""
"""Throttles each client that produces, changes a mutation quota, and divides what is measured by client-id."""
CHOICES: Final = (
    {"user": "alice", "client_id": "scene-app"},
    {"user": "carol", "client_id": ""},
    {"user": "bob", "client_id": ""},
    {"user": "", "client_id": "scene-spam"},
    {"user": "", "client_id": ""},
)
"""Texts that a user types into the boxes of a dashboard: an entity of each quota type, and nothing."""
EMPTY: Final[Mapping[str, str]] = {
    **{family.name: "no Spark job runs here" for family in catalog.job_families()},
    catalog.UTILIZATION_DISAGREEMENTS.name: "this Kafka reports no utilization (KIP-1373)",
    catalog.DISCOVERED_SOURCES.name: "this exporter is given its broker",
    catalog.DISCOVERY_ERRORS.name: "this exporter is given its broker",
    catalog.OTLP_EXPORTS.name: "this exporter pushes nowhere",
    catalog.CERTIFICATE_EXPIRY_SECONDS.name: "this exporter has no certificate",
    catalog.CALLBACK_THROTTLE_TIME_SECONDS.name: "this broker has no custom callback",
    catalog.REPLICATION_BYTES_PER_SECOND.name: "a single broker replicates nothing",
    catalog.TEAM_FAIRNESS_RATIO.name: "a single broker has all traffic",
    catalog.REMOTE_STORAGE_BYTES_PER_SECOND.name: "no remote storage",
    catalog.REMOTE_STORAGE_LIMIT.name: "no remote storage",
    catalog.REMOTE_STORAGE_THROTTLE_SECONDS.name: "no remote storage",
}
"""The families without series in this scene, and why: queries that need one of them may have no answer."""

OF_THE_TREND: Final = ("predict_linear(", ENTITY_UTILIZATION_PREDICTED)
"""Queries that need four hours of history, which are four minutes here."""


@pytest.fixture(scope="module")
def sampling(kafka: Cluster, scene: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """Yield another exporter of the scene, which reads the broker between scrapes, and has a shadow."""
    assert scene.child.running
    settings = settings_for(kafka.brokers, kafka.admin)
    settings["collection"]["sample_every_seconds"] = 0.5
    folder = tmp_path_factory.mktemp("sampling")
    (folder / "shadow.yaml").write_text(SHADOW)
    settings["shadow"] = {"file": str(folder / "shadow.yaml")}
    (folder / "teams.yaml").write_text(TEAMS)
    settings["teams"] = str(folder / "teams.yaml")
    with serving(folder / "serve", settings) as exporter:
        yield exporter


@pytest.fixture(scope="module")
def watch(kafka: Cluster, sampling: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Yield all programs that watch the scene, on a broker that limits connections and replication as well."""
    folder = tmp_path_factory.mktemp("questions")
    teams = folder / "teams.yaml"
    teams.write_text(TEAMS)
    with (
        closing(Quotas(kafka.connection())) as quotas,
        closing(Configs(kafka)) as configs,
        watching(folder, sampling, {**CONFIG, "teams": str(teams)}) as watch,
        configs.with_broker(1, DYNAMIC),
    ):
        quotas.set(ADDRESS)
        yield watch


def models() -> Iterator[dict[str, Any]]:
    """Yield every dashboard: the committed JSON, and the variant that reads recorded series."""
    for path in sorted(GENERATED.glob("*.json")):
        yield json.loads(path.read_text())
    for model in grafana_dashboards(Scope(recorded=True)).values():
        yield {**model, "uid": f"{model['uid']}, recorded"}


def written() -> Iterator[tuple[str, str]]:
    """Name and expression of every rule."""
    site = replace(AlertsConfig.model_validate(CONFIG).site(), teams=ONE_TEAM.teams)
    yield from ((rule["record"], rule["expr"]) for rule in records(site))
    names = ((rule["alert"], rule["expr"]) for rule in alerts(site))
    yield from (pair for pair in names if Profile.ALL in profiles_of(pair[0]))


@pytest.mark.parametrize("model", [*models()], ids=lambda model: model["uid"])
def test_every_panel_has_an_answer(model: dict[str, Any], watch: Watch) -> None:
    """Prometheus takes each query of panels, annotations and variables, and has something for it."""
    unanswered = list(questions(model))
    assert len(unanswered) > 10

    def answered() -> None:
        unanswered[:] = [question for question in unanswered if not _answered(question, watch)]
        assert [str(question) for question in unanswered if not _excused(question)] == []

    eventually(answered, seconds=30, pause=1)


@pytest.mark.parametrize("family", EMPTY)
def test_what_is_said_to_be_empty_is(family: str, watch: Watch) -> None:
    """The list of excuses has no panel that this scene could fill."""
    assert watch.prometheus.query(family) == []


def test_every_query_of_a_runbook_is_taken(watch: Watch, subtests: pytest.Subtests) -> None:
    """Anyone who copies a query at night gets an answer, and no complaint."""
    for name, text in runbooks():
        for block in blocks(text):
            if block.language == "promql":
                with subtests.test(runbook=name, query=block.text):
                    watch.prometheus.get("query", query=block.text)


def test_every_rule_is_evaluated(watch: Watch) -> None:
    """Prometheus has each rule, and evaluates it without an error on what a real broker gives."""
    expected = {name for name, _ in written()}

    def healthy() -> None:
        rules = [rule for group in watch.prometheus.get("rules")["groups"] for rule in group["rules"]]
        assert {rule["name"] for rule in rules} == expected
        assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}

    eventually(healthy)


def test_every_expression_is_taken_as_it_is_written(watch: Watch, subtests: pytest.Subtests) -> None:
    """Prometheus accepts the durations of the generated files, which it does not evaluate here."""
    for name, expression in written():
        with subtests.test(rule=name):
            watch.prometheus.get("query", query=expression)


def _answered(question: Question, watch: Watch) -> bool:
    return any(_answers(question, watch, choice) for choice in CHOICES)


def _answers(question: Question, watch: Watch, choice: Mapping[str, str]) -> list[object]:
    grafana = Prometheus(
        f"http://{watch.prometheus.address}",
        end=time.time(),
        minutes=10,
        variables={"cluster": CLUSTER, **choice},
        scrape_seconds=1,
    )
    answer = question.hurried().answered(grafana)
    assert grafana.refused == []
    return answer


def _excused(question: Question) -> bool:
    query = question.query
    if question.kind == "values":
        query = query.removeprefix("label_values(").rpartition(",")[0]
    if question.is_line_of_zero or any(text in query for text in OF_THE_TREND):
        return True
    return any(name in EMPTY for name, _ in names_and_labels(query))
