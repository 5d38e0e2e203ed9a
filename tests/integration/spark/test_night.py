"""A real throttled job on its dashboard: from the listener by Prometheus to every panel, beside what the broker says."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from tests.alerts.runbook_parts import blocks
from tests.cluster.cluster import Cluster
from tests.dashboards.boards import names_and_labels, panels_of
from tests.integration.alerting.questions import GENERATED, Question, linked_dashboard, questions
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter
from tests.integration.spark.night import APP, CLUSTER, Night, night
from tools.pictures.prometheus import Prometheus

from quotascope.alerts.runbook import runbooks
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.job_clients import SEEN_AS
from quotascope.dashboards.scope import Scope
from quotascope.metrics import catalog

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

JOBS: Final = "quotascope-spark"
ENTITY: Final = "quotascope-entity"
QUIET: Final[Mapping[str, str]] = {catalog.SPARK_LISTENER_PROBLEMS.name: "nothing of the listener failed"}
"""The families without series in this job, and why."""


@pytest.fixture(scope="module")
def at_night(kafka: Cluster, exporter: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    with night(kafka, exporter, tmp_path_factory.mktemp("night")) as at_night:
        yield at_night


def models() -> Iterator[dict[str, Any]]:
    """The dashboard of jobs: the committed JSON, and what reads recorded series instead."""
    yield json.loads((GENERATED / f"{JOBS}.json").read_text())
    model = grafana_dashboards(Scope(recorded=True))[JOBS]
    yield {**model, "uid": f"{JOBS}, recorded"}


def grafana(at_night: Night, **choices: str) -> Prometheus:
    """Asks as Grafana does, with these choices at the top of the dashboard."""
    return Prometheus(
        f"http://{at_night.prometheus.address}",
        end=time.time(),
        minutes=5,
        variables={"cluster": CLUSTER, **choices},
        scrape_seconds=1,
    )


@pytest.mark.parametrize("model", [*models()], ids=lambda model: model["uid"])
def test_every_panel_of_jobs_has_an_answer(model: dict[str, Any], at_night: Night) -> None:
    """Nothing on the dashboard stays empty but what this job gives no reason for."""
    left = [each for each in questions(model) if not _quiet(each)]
    assert len(left) > 20

    def answered() -> None:
        left[:] = [each for each in left if not each.hurried().answered(grafana(at_night, app=APP))]
        assert [str(each) for each in left] == []

    eventually(answered, seconds=240, pause=1)


def _quiet(question: Question) -> bool:
    return question.kind != "values" and any(name in QUIET for name, _ in names_and_labels(question.query))


@pytest.mark.parametrize("family", [*catalog.job_families()], ids=lambda each: each.name)
def test_every_family_of_the_job_is_in_prometheus(family: catalog.Family, at_night: Night) -> None:
    """Under the job's name, with its labels as they are in the catalog; the list of excuses is no longer than it must be."""

    def found() -> None:
        series = at_night.prometheus.query(family.name)
        assert bool(series) is (family.name not in QUIET)
        assert {labels["app"] for labels, _ in series} <= {APP}
        assert not [labels for labels, _ in series if "exported_app" in labels]

    eventually(found, seconds=240, pause=1)


def rows(at_night: Night, uid: str, title: str, **choices: str) -> dict[str, list[Any]]:
    """What each query of a table has, by its letter."""
    model = json.loads((GENERATED / f"{uid}.json").read_text())
    (panel,) = [each for each in panels_of(model) if each["title"] == title]
    asked = grafana(at_night, **choices)
    found = {
        target["refId"]: Question(dashboard=uid, title=title, query=target["expr"], kind="instant")
        .hurried()
        .answered(asked)
        for target in panel["targets"]
    }
    assert asked.refused == []
    return found


def test_each_client_stands_beside_what_its_broker_says(at_night: Night) -> None:
    """Under a rule for the pair, the user, or the client-id; and one of whom the broker says nothing is said to be so."""
    waited: set[str] = set()  # each reports it when a task ends, every half a minute
    delayed: set[str] = set()

    def joined() -> None:
        found = rows(at_night, JOBS, "Jobs that wait for Kafka", app=APP)
        seen = {each["metric"]["client_id"]: SEEN_AS[each["value"][1]] for each in found["E"]}
        assert (
            seen.items()
            >= {
                "spark-pair": "user + client-id",
                "spark-user": "user",
                "spark-client": "client-id",
                "spark-clicks": "client-id",
                "spark-anonymous": "not seen",
            }.items()
        )
        waits = _by_client(found["A"])
        delays = _by_client(found["C"])
        for client_id, how in seen.items():
            assert (client_id in delays) <= (how != "not seen")
        waited.update(client_id for client_id, value in waits.items() if value > 0)
        delayed.update(client_id for client_id, value in delays.items() if value > 0)
        both = {"spark-pair", "spark-user", "spark-client", "spark-clicks"}
        assert both - delayed == set()
        assert both | {"spark-anonymous"} <= waited

    eventually(joined, seconds=240, pause=1)


def _by_client(series: list[Any]) -> dict[str, float]:
    return {each["metric"]["client_id"]: float(each["value"][1]) for each in series}


@pytest.mark.parametrize(
    ("user", "client_id", "behind"),
    [
        ("alice", "spark-pair", {"spark-pair"}),
        ("bob", "", {"spark-user"}),
        ("bob", "spark-topics", {"spark-topics", "spark-user"}),
        ("", "spark-clicks", {"spark-clicks"}),
        ("alice", "", set()),
    ],
)
def test_a_throttled_entity_leads_to_the_jobs_behind_it(
    at_night: Night, user: str, client_id: str, behind: set[str]
) -> None:
    """The dashboard about a user and client-id has their rows, with the job's name: of the quotas of the pair, the user, and the client-id."""

    def led() -> None:
        found = rows(at_night, ENTITY, "Spark jobs behind it", user=user, client_id=client_id)["A"]
        assert {each["metric"]["client_id"] for each in found} == behind
        assert {each["metric"]["app"] for each in found} <= {APP}

    eventually(led, seconds=120, pause=1)


@pytest.mark.parametrize(
    ("alert", "labels"),
    [
        ("KafkaQuotaSparkJobThrottled", {"app": APP}),
        ("KafkaQuotaSparkRetries", {"app": APP, "cause": "kafka_quota"}),
        ("KafkaQuotaSparkQueryStalled", {"app": APP, "query": "backlog"}),
    ],
)
def test_alerts_on_jobs_fire(at_night: Night, alert: str, labels: dict[str, str]) -> None:
    """With the names of the job in the text, and a link to its dashboard."""

    def fired() -> None:
        firing = [
            each
            for each in at_night.prometheus.get("alerts")["alerts"]
            if each["state"] == "firing" and each["labels"]["alertname"] == alert
        ]
        assert [each for each in firing if labels.items() <= each["labels"].items()]
        for each in firing:
            assert APP in each["annotations"]["description"]
            model, chosen = linked_dashboard(each["annotations"]["dashboard_url"])
            assert (model["uid"], chosen["app"]) == (JOBS, APP)

    eventually(fired, seconds=240, pause=1)


@pytest.mark.parametrize("runbook", ["SparkJobThrottled", "SparkRetries", "SparkQueryStalled"])
def test_queries_of_runbooks_have_answers(at_night: Night, runbook: str) -> None:
    """What stands in the runbook finds this job."""
    text = dict(runbooks())[f"KafkaQuota{runbook}"]
    asked = [block.text for block in blocks(text) if block.language == "promql"]
    assert asked
    for query in asked:
        named = query.replace('"alice"', '"bob"')

        def answered(query: str = named) -> None:
            assert at_night.prometheus.query(query)

        eventually(answered, seconds=120, pause=1)


def test_prometheus_finds_the_driver(at_night: Night) -> None:
    """Its entry makes a target with the application's id."""
    (entry,) = at_night.entries.iterdir()
    target = at_night.prometheus.targets()["spark"]
    assert target["labels"]["app_id"] == entry.stem
    assert target["health"] == "up"
