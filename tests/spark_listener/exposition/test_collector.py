import math
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from tests.spark_listener.exposition.jobs import BROKEN, hostile, job, key_of, scraped

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.metrics.catalog import job_families
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.exposition import JobCollector
from quotascope.spark_listener.exposition.collector import SERIES
from quotascope.spark_listener.job import Job, JobSnapshot


def test_every_family_of_a_job_has_a_reader() -> None:
    """Exposed families are those of the catalog in its order; a registry knows them before a job."""
    assert tuple(SERIES) == tuple(job_families())
    described = {metric.name for metric in JobCollector(list).describe()}
    assert described == {family.name.removesuffix("_total") for family in job_families()}


def test_each_number_stands_in_its_own_series() -> None:
    """
    Each number is in its unit, with the cluster as on the exporter's page; a number of no query has no such label.

    A cause that did not occur is 0, so that its first failure is growth. Repeated calls of an admin client are added up
    over queries, and other clients have none.
    """
    snapshot = job()
    again = ("clicks", ClientTotals(Client("alice", "topics", "admin"), quota_retries=2))
    snapshot = replace(snapshot, stage_retries=11, problems=(("x", 13),), throttles=(*snapshot.throttles, again))
    by_family: dict[str, dict[str, float]] = {}
    for (name, labels), number in scraped(snapshot, cluster="prod").items():
        label_values = dict(labels)
        assert (label_values.pop("app"), label_values.pop("cluster")) == ("nightly", "prod")
        by_family.setdefault(name, {})[" ".join(label_values.values())] = number
    causes = {cause.value: 0 for cause in FailureCause}
    assert by_family == {
        "spark_task_failures_total": {**causes, "kafka_quota": 3, "other": 1},
        "spark_task_retries_total": {**causes, "kafka_quota": 2},
        "spark_stage_retries_total": {"": 11},
        "spark_executors_lost_total": {"": 1},
        "spark_query_restarts_total": {"clicks": 2},
        "spark_query_batch_duration_seconds": {"addBatch clicks": 1.5, "triggerExecution clicks": 2},
        "spark_query_progress_age_seconds": {"clicks": 12.5},
        "spark_query_trigger_seconds": {"clicks": 300},
        "spark_query_max_offsets_behind": {"clicks": 700},
        "spark_query_avg_offsets_behind": {"clicks": 350.5},
        "spark_query_backlog_offsets": {"clicks": 900},
        "spark_query_read_offsets_per_second": {"clicks": 7},
        "spark_query_catch_up_seconds": {"clicks": math.inf},
        "spark_kafka_throttled_seconds_total": {
            "topics admin alice": 0.25,
            "app1 read alice": 1.5,
            "app1 clicks read alice": 0.75,
            "topics clicks admin alice": 0,
        },
        "spark_kafka_throttled_responses_total": {
            "topics admin alice": 1,
            "app1 read alice": 6,
            "app1 clicks read alice": 3,
            "topics clicks admin alice": 0,
        },
        "spark_kafka_throttle_max_seconds": {
            "topics admin alice": 0.25,
            "app1 read alice": 0,
            "app1 clicks read alice": 0.25,
            "topics clicks admin alice": 0,
        },
        "spark_kafka_admin_quota_retries_total": {"topics alice": 6},
        "spark_kafka_unknown_attempts_total": {"": 2},
        "spark_listener_events_total": {"": 1_000},
        "spark_listener_lost_events_total": {"": 7},
        "spark_listener_lag_seconds": {"": 0.5},
        "spark_listener_source_info": {"pull": 1},
        "spark_listener_problems_total": {"x": 13},
    }


def test_what_is_not_known_is_absent() -> None:
    """
    Unknown figures of a query have no series, nor has the source while there is none.

    Phases end with their query.
    """
    snapshot = job()
    unknown = dict.fromkeys(
        ["progress_age_seconds", "trigger_seconds", "max_offsets_behind", "avg_offsets_behind", "catch_up"]
    )
    quiet = replace(snapshot.queries[0], phases={}, **unknown)  # type: ignore[arg-type] # None in each
    names = {name for name, _ in scraped(replace(snapshot, queries=(quiet,), sources=()))}
    assert {name for name in names if name.startswith("spark_query")} == {"spark_query_restarts_total"}
    assert "spark_listener_source_info" not in names
    over = replace(snapshot.queries[0], phases={}, active=False)
    assert {name for name, _ in scraped(replace(snapshot, queries=(over,)))} == names | {"spark_listener_source_info"}


def test_jobs_of_one_name_are_one() -> None:
    """Jobs of one name have one series, with the sum of counts and the maximum of other numbers."""
    series = scraped(job(), replace(job(), lag_seconds=3.0), job("hourly"))
    nightly, hourly = (("app", "nightly"),), (("app", "hourly"),)
    assert series["spark_listener_events_total", nightly] == 2_000
    assert series["spark_listener_lag_seconds", nightly] == 3.0
    assert series["spark_listener_events_total", hourly] == 1_000


TASKS = {
    f"spark_{name}_total"
    for name in ("task_failures", "task_retries", "stage_retries", "executors_lost", "kafka_unknown_attempts")
}  # fmt: skip


@pytest.mark.parametrize(
    ("sources", "reports", "hidden"),
    [
        ((), True, TASKS),
        (("streaming",), True, TASKS),
        (("pull",), False, {"spark_kafka_unknown_attempts_total"}),
        (("streaming", "event_log"), True, set()),
    ],
)
def test_what_no_source_sees_is_not_zero(sources: tuple[str, ...], *, reports: bool, hidden: set[str]) -> None:
    """
    Failures of tasks that no source can see have no series, also after the end.

    Nor do missing reports where no client reports.
    """
    watched = Job("app")
    for source in sources:
        watched.source(source)
        watched.source_ended(source)
    if reports:
        watched.add_throttles(lambda: [("", ClientTotals(Client("", "a", "read")))])
    names = {name for name, _ in scraped(watched.snapshot())}
    assert TASKS - names == hidden


def test_hostile_names_come_back_from_the_page_as_they_were() -> None:
    """
    Quotes, line ends and markup in names end no line and no label, and the page can be read in both formats.

    Half of a surrogate pair, which UTF-8 cannot hold, is spelled out.
    """
    registry = CollectorRegistry()
    registry.register(JobCollector(lambda: [hostile()]))
    text = generate_latest(registry).decode()
    open_text: bytes = open_metrics(registry)  # type: ignore[no-untyped-call]
    assert open_text.endswith(b"# EOF\n")
    read_series = {
        key_of(sample): sample.value for family in text_string_to_metric_families(text) for sample in family.samples
    }
    assert read_series == scraped(hostile())
    spelled = BROKEN.encode(errors="backslashreplace").decode()
    assert any(spelled in dict(labels).values() for _, labels in read_series)


def test_a_scrape_is_of_one_moment() -> None:
    """The snapshot is made once, whatever the number of families."""
    calls = []

    def snapshots() -> list[JobSnapshot]:
        calls.append(1)
        return [job()]

    registry = CollectorRegistry(auto_describe=False)
    registry.register(JobCollector(snapshots))
    generate_latest(registry)
    assert len(calls) == 1
