"""
A real throttled job on its dashboard.

From the listener by Prometheus to every panel, beside what the broker says.
"""

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
    """Yield the dashboard of jobs: the committed JSON, and the variant that reads recorded series."""
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
    """Every panel of the dashboard has an answer, except for figures that this job cannot have."""
    unanswered = [question for question in questions(model) if not _quiet(question)]
    assert len(unanswered) > 20

    def answered() -> None:
        unanswered[:] = [
            question for question in unanswered if not question.hurried().answered(grafana(at_night, app=APP))
        ]
        assert [str(question) for question in unanswered] == []

    eventually(answered, seconds=240, pause=1)


def _quiet(question: Question) -> bool:
    if question.is_line_of_zero:
        return True
    return question.kind != "values" and any(name in QUIET for name, _ in names_and_labels(question.query))


@pytest.mark.parametrize("family", [*catalog.job_families()], ids=lambda family: family.name)
def test_every_family_of_the_job_is_in_prometheus(family: catalog.Family, at_night: Night) -> None:
    """
    Each family is under the job's name, with its labels as in the catalog.

    The list of excuses is no longer than it must be.
    """

    def found() -> None:
        series = at_night.prometheus.query(family.name)
        assert bool(series) is (family.name not in QUIET)
        assert {labels["app"] for labels, _ in series} <= {APP}
        assert not [labels for labels, _ in series if "exported_app" in labels]

    eventually(found, seconds=240, pause=1)


def rows(at_night: Night, uid: str, title: str, **choices: str) -> dict[str, list[Any]]:
    """Return the answer to each query of a table, by its letter."""
    model = json.loads((GENERATED / f"{uid}.json").read_text())
    (panel,) = [candidate for candidate in panels_of(model) if candidate["title"] == title]
    prometheus = grafana(at_night, **choices)
    answers = {
        target["refId"]: Question(dashboard=uid, title=title, query=target["expr"], kind="instant")
        .hurried()
        .answered(prometheus)
        for target in panel["targets"]
    }
    assert prometheus.refused == []
    return answers


def test_each_client_stands_beside_what_its_broker_says(at_night: Night) -> None:
    """A client is shown beside the rule for its pair, user or client-id, and one unknown to the broker is marked."""
    waited: set[str] = set()  # each reports it when a task ends, every half a minute
    delayed: set[str] = set()

    def joined() -> None:
        answers = rows(at_night, JOBS, "Jobs that wait for Kafka", app=APP)
        views = {row["metric"]["client_id"]: SEEN_AS[row["value"][1]] for row in answers["E"]}
        assert (
            views.items()
            >= {
                "spark-pair": "user + client-id",
                "spark-user": "user",
                "spark-client": "client-id",
                "spark-clicks": "client-id",
                "spark-anonymous": "not seen",
            }.items()
        )
        waits = _by_client(answers["A"])
        delays = _by_client(answers["C"])
        for client_id, view in views.items():
            assert (client_id in delays) <= (view != "not seen")
        waited.update(client_id for client_id, value in waits.items() if value > 0)
        delayed.update(client_id for client_id, value in delays.items() if value > 0)
        throttled = {"spark-pair", "spark-user", "spark-client", "spark-clicks"}
        assert throttled - delayed == set()
        assert throttled | {"spark-anonymous"} <= waited

    eventually(joined, seconds=240, pause=1)


def _by_client(series: list[Any]) -> dict[str, float]:
    return {row["metric"]["client_id"]: float(row["value"][1]) for row in series}


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
    """
    The dashboard about a user and client-id has the jobs' rows, with the job's name.

    Of the quotas of the pair, the user, and the client-id.
    """

    def led() -> None:
        answers = rows(at_night, ENTITY, "Spark jobs behind it", user=user, client_id=client_id)["A"]
        assert {row["metric"]["client_id"] for row in answers} == behind
        assert {row["metric"]["app"] for row in answers} <= {APP}

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
    """The text of the alerts has the names of the job, and a link leads to its dashboard."""

    def fired() -> None:
        firing = [
            candidate
            for candidate in at_night.prometheus.get("alerts")["alerts"]
            if candidate["state"] == "firing" and candidate["labels"]["alertname"] == alert
        ]
        assert [fired_alert for fired_alert in firing if labels.items() <= fired_alert["labels"].items()]
        for fired_alert in firing:
            assert APP in fired_alert["annotations"]["description"]
            model, chosen = linked_dashboard(fired_alert["annotations"]["dashboard_url"])
            assert (model["uid"], chosen["app"]) == (JOBS, APP)

    eventually(fired, seconds=240, pause=1)


@pytest.mark.parametrize("runbook", ["SparkJobThrottled", "SparkRetries", "SparkQueryStalled"])
def test_queries_of_runbooks_have_answers(at_night: Night, runbook: str) -> None:
    """The queries of the runbook find this job."""
    text = dict(runbooks())[f"KafkaQuota{runbook}"]
    queries = [block.text for block in blocks(text) if block.language == "promql"]
    assert queries
    for query in queries:
        named = query.replace('"alice"', '"bob"')

        def answered(query: str = named) -> None:
            assert at_night.prometheus.query(query)

        eventually(answered, seconds=120, pause=1)


def test_prometheus_finds_the_driver(at_night: Night) -> None:
    """The driver's entry makes a target with the application's id."""
    (entry,) = at_night.entries.iterdir()
    target = at_night.prometheus.targets()["spark"]
    assert target["labels"]["app_id"] == entry.stem
    assert target["health"] == "up"
