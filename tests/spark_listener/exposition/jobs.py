"""Books of jobs to show."""

from __future__ import annotations

import math
from dataclasses import replace

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.exposition import JobCollector, Reporting, start_reporting
from quotascope.spark_listener.exposition.collector import Snapshots
from quotascope.spark_listener.job import CatchUp, Job, JobSnapshot, QuerySnapshot
from quotascope.spark_listener.settings import resolve

Key = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels, the empty ones left out."""

HOSTILE = 'a"b\\c\n# HELP evil\r\n<b>\u2028é😀' + "x" * 10_000
BROKEN = "half \ud800 a pair"
"""Text that UTF-8 cannot hold."""


def job(app: str = "nightly", query: str = "clicks") -> JobSnapshot:
    """Return a job that has every number."""
    reader = Client("alice", "app1", "read")
    admin = Client("alice", "topics", "admin")
    return JobSnapshot(
        app=app,
        failures=dict.fromkeys(FailureCause, 0) | {FailureCause.KAFKA_QUOTA: 3, FailureCause.OTHER: 1},
        retries=dict.fromkeys(FailureCause, 0) | {FailureCause.KAFKA_QUOTA: 2},
        stage_retries=1,
        executors_lost=1,
        queries=(
            QuerySnapshot(
                name=query,
                active=True,
                restarts=2,
                phases={"addBatch": 1.5, "triggerExecution": 2.0},
                progress_age_seconds=12.5,
                trigger_seconds=300.0,
                max_offsets_behind=700.0,
                avg_offsets_behind=350.5,
                catch_up=CatchUp(backlog=900.0, read_per_second=7.0, added_per_second=8.0, seconds=math.inf),
            ),
        ),
        throttles=(
            ("", ClientTotals(admin, 250, 1, 250, 250, 4)),
            ("", ClientTotals(reader, 1_500, 6, 1_000, 0, 0)),
            (query, ClientTotals(reader, 750, 3, 250, 250, 0)),
        ),
        seen_clients=("python",),
        tasks_seen=True,
        unknown_attempts=2,
        events=1_000,
        lost_events=7,
        lag_seconds=0.5,
        sources=("pull",),
        problems=(("throttles", 1),),
    )


def hostile() -> JobSnapshot:
    """Return a job whose names try to break a page."""
    snapshot = job(HOSTILE, HOSTILE)
    client = Client(HOSTILE, BROKEN, "write")
    return replace(snapshot, throttles=((BROKEN, ClientTotals(client, 1_000, 1)),))


def key_of(sample: Sample) -> Key:
    return sample.name, tuple(sorted((k, v) for k, v in sample.labels.items() if v))


def scraped(*jobs: JobSnapshot, cluster: str | None = None) -> dict[Key, float]:
    """Return the series of jobs as Prometheus would keep them; assert that there is none twice."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(JobCollector(lambda: jobs, cluster))
    numbers: dict[Key, float] = {}
    for metric in registry.collect():
        for sample in metric.samples:
            key = key_of(sample)
            assert key not in numbers
            numbers[key] = sample.value
    return numbers


def reported(properties: dict[str, str], snapshots: Snapshots, app_id: str = "app-1") -> Reporting:
    settings, problems = resolve(properties, {})
    assert problems == ()
    return start_reporting(settings, properties, snapshots, app_id=app_id)


def report_waiting(folder: str, app_id: str) -> Reporting:
    """Report a job that has done nothing yet."""
    properties = {
        "spark.app.name": "nightly",
        "spark.driver.host": "127.0.0.1",
        "spark.quotascope.fileSd.path": f"{folder}/{{app_id}}.json",
    }
    job = Job("nightly")
    return reported(properties, lambda: [job.snapshot()], app_id)
