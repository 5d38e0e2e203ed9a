"""The families of the catalogue out of the books of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from quotascope.clients.accounting import ClientTotals
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family, FamilyType

from ..events import Cause
from ..job import JobSnapshot, QuerySnapshot

Series = tuple[tuple[str, ...], float]
"""The values of a family's labels, and the number."""
Reader = Callable[[JobSnapshot], Iterator[Series]]


def series_of(
    family: Family, jobs: Iterable[JobSnapshot]
) -> dict[tuple[str, ...], float]:
    """
    The series of a family. Text that UTF-8 cannot hold is spelled out.

    Jobs with the same name are one to whoever looks at the metrics: their counts are added, of other numbers the highest is shown.
    """
    found: dict[tuple[str, ...], float] = {}
    adds = family.type is FamilyType.COUNTER
    for job in jobs:
        for labels, value in READERS[family](job):
            key = tuple(map(_encodable, labels))
            known = found.get(key)
            if known is None:
                found[key] = value
            else:
                found[key] = known + value if adds else max(known, value)
    return found


def _of_clients(number: Callable[[ClientTotals], float]) -> Reader:
    def read(job: JobSnapshot) -> Iterator[Series]:
        for query, totals in job.throttles:
            client = totals.client
            labels = (job.app, query, client.side, client.user, client.client_id)
            yield labels, number(totals)

    return read


def _admin_retries(job: JobSnapshot) -> Iterator[Series]:
    for _, totals in job.throttles:
        if totals.client.side == "admin":
            labels = (job.app, totals.client.user, totals.client.client_id)
            yield labels, totals.quota_retries


def _by_cause(counts: Callable[[JobSnapshot], Mapping[Cause, int]]) -> Reader:
    def read(job: JobSnapshot) -> Iterator[Series]:
        for cause, count in counts(job).items():
            yield (job.app, cause.value), count

    return read


def _of_job(number: Callable[[JobSnapshot], float]) -> Reader:
    def read(job: JobSnapshot) -> Iterator[Series]:
        yield (job.app,), number(job)

    return read


def _of_queries(number: Callable[[QuerySnapshot], float | None]) -> Reader:
    def read(job: JobSnapshot) -> Iterator[Series]:
        for query in job.queries:
            value = number(query)
            if value is not None:
                yield (job.app, query.name), value

    return read


def _phases(job: JobSnapshot) -> Iterator[Series]:
    for query in job.queries:
        for phase, seconds in query.phases.items():
            yield (job.app, query.name, phase), seconds


def _problems(job: JobSnapshot) -> Iterator[Series]:
    for part, count in job.problems:
        yield (job.app, part), count


def _sources(job: JobSnapshot) -> Iterator[Series]:
    for source in job.sources:
        yield (job.app, source), 1


READERS: Final[Mapping[Family, Reader]] = {
    catalog.SPARK_THROTTLED_SECONDS: _of_clients(
        lambda totals: totals.throttled_ms / 1_000
    ),
    catalog.SPARK_THROTTLED_RESPONSES: _of_clients(lambda totals: totals.responses),
    catalog.SPARK_THROTTLE_MAX_SECONDS: _of_clients(
        lambda totals: totals.recent_longest_ms / 1_000
    ),
    catalog.SPARK_ADMIN_QUOTA_RETRIES: _admin_retries,
    catalog.SPARK_UNKNOWN_ATTEMPTS: _of_job(lambda job: job.unknown_attempts),
    catalog.SPARK_TASK_FAILURES: _by_cause(lambda job: job.failures),
    catalog.SPARK_TASK_RETRIES: _by_cause(lambda job: job.retries),
    catalog.SPARK_STAGE_RETRIES: _of_job(lambda job: job.stage_retries),
    catalog.SPARK_EXECUTORS_LOST: _of_job(lambda job: job.executors_lost),
    catalog.SPARK_QUERY_RESTARTS: _of_queries(lambda query: query.restarts),
    catalog.SPARK_QUERY_BATCH_DURATION_SECONDS: _phases,
    catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS: _of_queries(
        lambda query: query.progress_age_seconds
    ),
    catalog.SPARK_QUERY_MAX_OFFSETS_BEHIND: _of_queries(
        lambda query: query.max_offsets_behind
    ),
    catalog.SPARK_QUERY_AVG_OFFSETS_BEHIND: _of_queries(
        lambda query: query.avg_offsets_behind
    ),
    catalog.SPARK_LISTENER_EVENTS: _of_job(lambda job: job.events),
    catalog.SPARK_LISTENER_LOST_EVENTS: _of_job(lambda job: job.lost_events),
    catalog.SPARK_LISTENER_PROBLEMS: _problems,
    catalog.SPARK_LISTENER_LAG_SECONDS: _of_job(lambda job: job.lag_seconds),
    catalog.SPARK_LISTENER_SOURCE_INFO: _sources,
}
"""Of every family of `job_families()`."""


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
