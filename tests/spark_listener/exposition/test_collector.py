import math
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from tests.spark_listener.exposition.jobs import BROKEN, hostile, job, scraped, value

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.metrics.catalog import job_families
from quotascope.spark_listener.exposition import JobCollector
from quotascope.spark_listener.exposition.collector import SERIES
from quotascope.spark_listener.job import Job, JobSnapshot


def test_every_family_of_a_job_has_a_reader() -> None:
    """The catalog and what is shown are the same families in the same order."""
    assert tuple(SERIES) == tuple(job_families())


def test_each_number_stands_in_its_own_series() -> None:
    """No two of a job that are swapped, and none that is shown in another unit."""
    shown = replace(job(), stage_retries=11, executors_lost=12, problems=(("x", 13),))
    series = scraped(shown)
    query = {"app": "nightly", "query": "clicks"}
    own = {
        "spark_stage_retries_total": 11,
        "spark_executors_lost_total": 12,
        "spark_kafka_unknown_attempts_total": 2,
        "spark_listener_events_total": 1_000,
        "spark_listener_lost_events_total": 7,
        "spark_listener_lag_seconds": 0.5,
    }
    of_query = {
        "spark_query_restarts_total": 2,
        "spark_query_progress_age_seconds": 12.5,
        "spark_query_trigger_seconds": 300,
        "spark_query_max_offsets_behind": 700,
        "spark_query_avg_offsets_behind": 350.5,
        "spark_query_backlog_offsets": 900,
        "spark_query_read_offsets_per_second": 7,
        "spark_query_catch_up_seconds": math.inf,
    }
    names = {name for name, _ in series}
    assert {*own, *of_query} <= names, sorted(names)
    found = {name: value(series, name, app="nightly") for name in own}
    assert found == own
    assert {name: value(series, name, **query) for name in of_query} == of_query
    duration = "spark_query_batch_duration_seconds"
    assert value(series, duration, **query, phase="addBatch") == 1.5
    assert value(series, duration, **query, phase="triggerExecution") == 2
    failures = "spark_task_failures_total"
    assert value(series, failures, app="nightly", cause="kafka_quota") == 3
    assert value(series, failures, app="nightly", cause="other") == 1
    info, problems = "spark_listener_source_info", "spark_listener_problems_total"
    assert value(series, info, app="nightly", source="pull") == 1
    assert value(series, problems, app="nightly", part="x") == 13


def test_throttles_have_query_and_client() -> None:
    """Seconds, responses and the longest of late have the labels of their client; what belongs to no query has none."""
    series = scraped(job())
    client = {"app": "nightly", "side": "read", "user": "alice", "client_id": "app1"}
    assert value(series, "spark_kafka_throttled_seconds_total", **client) == 1.5
    assert value(series, "spark_kafka_throttled_responses_total", **client) == 6
    assert value(series, "spark_kafka_throttle_max_seconds", **client) == 0
    client["query"] = "clicks"
    assert value(series, "spark_kafka_throttled_seconds_total", **client) == 0.75
    assert value(series, "spark_kafka_throttle_max_seconds", **client) == 0.25


def test_repeated_admin_calls_are_those_of_admin_clients() -> None:
    """A client that reads or writes has no such series; queries are added up."""
    shown = job()
    admin = Client("alice", "topics", "admin")
    more = (*shown.throttles, ("clicks", ClientTotals(admin, quota_retries=2)))
    series = scraped(replace(shown, throttles=more))
    found = {key: count for key, count in series.items() if "admin_quota" in key[0]}
    name = "spark_kafka_admin_quota_retries_total"
    labels = (("app", "nightly"), ("client_id", "topics"), ("user", "alice"))
    assert found == {(name, labels): 6}


def test_causes_that_did_not_occur_are_shown_as_zeros() -> None:
    """The first failure of a cause is growth from 0, and no series that begins at 1."""
    series = scraped(job())
    retries = "spark_task_retries_total"
    assert value(series, retries, app="nightly", cause="kafka_quota") == 2
    assert value(series, retries, app="nightly", cause="fetch_failed") == 0


def test_what_is_not_known_is_absent() -> None:
    """A query without an age and without offsets has no such series, and a job without a source none either."""
    shown = job()
    quiet = replace(
        shown.queries[0],
        progress_age_seconds=None,
        trigger_seconds=None,
        max_offsets_behind=None,
        avg_offsets_behind=None,
        catch_up=None,
        phases={},
    )
    names = {name for name, _ in scraped(replace(shown, queries=(quiet,), sources=()))}
    assert "spark_query_restarts_total" in names
    assert not names & {
        "spark_query_progress_age_seconds",
        "spark_query_trigger_seconds",
        "spark_query_max_offsets_behind",
        "spark_query_avg_offsets_behind",
        "spark_query_backlog_offsets",
        "spark_query_read_offsets_per_second",
        "spark_query_catch_up_seconds",
        "spark_query_batch_duration_seconds",
        "spark_listener_source_info",
    }


def test_jobs_of_one_name_are_one() -> None:
    """Counts are added, of other numbers the highest stands: two series with the same labels would spoil the page."""
    late = replace(job(), lag_seconds=3.0)
    series = scraped(job(), late, job("hourly"))
    assert value(series, "spark_listener_events_total", app="nightly") == 2_000
    assert value(series, "spark_listener_lag_seconds", app="nightly") == 3.0
    assert value(series, "spark_listener_events_total", app="hourly") == 1_000


def test_text_that_utf_8_cannot_hold_is_spelled_out() -> None:
    """Half of a surrogate pair does not end the scrape."""
    spelled = BROKEN.encode(errors="backslashreplace").decode()
    assert any(spelled in dict(labels).values() for _, labels in scraped(hostile()))


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
    """Failures of tasks that no source can see have no series, nor do missing reports where no client reports; also after the end."""
    watched = Job("app")
    for source in sources:
        watched.source(source)
        watched.source_ended(source)
    if reports:
        watched.add_throttles(lambda: [("", ClientTotals(Client("", "a", "read")))])
    found = {name for name, _ in scraped(watched.snapshot())}
    assert TASKS - found == hidden


def test_a_registry_knows_them_before_there_is_a_job() -> None:
    """Another collector cannot take their names."""
    described = {metric.name for metric in JobCollector(list).describe()}
    assert described == {family.name.removesuffix("_total") for family in job_families()}


def test_the_cluster_is_a_label_of_every_series() -> None:
    """As on the exporter's page, so that both can be joined."""
    for _, labels in scraped(job(), cluster="prod"):
        assert dict(labels)["cluster"] == "prod"


def test_hostile_names_come_back_from_the_page_as_they_were() -> None:
    """Quotes, line ends and markup in names end no line and no label, and the page can be read in both formats."""
    registry = CollectorRegistry()
    registry.register(JobCollector(lambda: [hostile()]))
    text = generate_latest(registry).decode()
    open_text: bytes = open_metrics(registry)  # type: ignore[no-untyped-call]
    assert open_text.endswith(b"# EOF\n")
    read = {
        (
            sample.name,
            tuple(sorted((k, v) for k, v in sample.labels.items() if v)),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert read == scraped(hostile())


def test_a_scrape_is_of_one_moment() -> None:
    """The snapshot is made once, whatever the number of families."""
    asked = []

    def snapshots() -> list[JobSnapshot]:
        asked.append(1)
        return [job()]

    registry = CollectorRegistry(auto_describe=False)
    registry.register(JobCollector(snapshots))
    generate_latest(registry)
    assert len(asked) == 1
