from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import pytest
from tests.builders.spark_events import (
    QUOTA,
    Event,
    ended,
    job_ended,
    python_failure,
    stage_completed,
    stage_submitted,
    started,
)
from tests.spark_listener.recordings import VERSIONS, after, recorded

from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job
from quotascope.spark_listener.job.recent import Recent

FAILED = python_failure("ValueError: x")
LOSER = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
FAILED_BY = {  # the causes of the failed attempts, as tests/spark_listener/recorded/README.md lists them
    "python_exception": [FailureCause.OTHER],
    "gives_up": [FailureCause.OTHER] * 4,
    "confluent_quota": [FailureCause.KAFKA_QUOTA],
    "kafka_python_quota": [FailureCause.KAFKA_QUOTA],
    "chained_quota": [FailureCause.KAFKA_QUOTA],
    "handled_quota": [FailureCause.KAFKA_QUOTA],
    "confluent_timeout": [FailureCause.KAFKA_TIMEOUT],
    "kafka_python_timeout": [FailureCause.KAFKA_TIMEOUT],
    "confluent_throttled": [FailureCause.KAFKA_TIMEOUT_THROTTLED],  # by the note on the failure
    "kafka_python_throttled": [FailureCause.KAFKA_TIMEOUT_THROTTLED],
    "confluent_other": [FailureCause.KAFKA_OTHER],
    "quoted_source": [FailureCause.OTHER],
    "quoted_message": [FailureCause.OTHER],
    "exception_group": [FailureCause.KAFKA_QUOTA],
    "worker_exit": [FailureCause.PYTHON_WORKER_DIED],
    "jvm_quota": [FailureCause.KAFKA_QUOTA],
    "jvm_timeout": [FailureCause.KAFKA_TIMEOUT],
    "executor_killed": [FailureCause.EXECUTOR_LOST] * 2,
    "shuffle_lost": [FailureCause.FETCH_FAILED],
    "shuffle_lost_with_executor": [FailureCause.EXECUTOR_LOST, FailureCause.FETCH_FAILED],
    "cancelled": [],
    "killed": [FailureCause.KILLED],
    "speculated": [],
    "restarted": [FailureCause.KAFKA_QUOTA] * 4,
}
RETRIED = {  # the causes that are repeated; what is not here repeats each failure
    "gives_up": [FailureCause.OTHER] * 3,
    "restarted": [FailureCause.KAFKA_QUOTA] * 3,
}
STAGE_RETRIES = {"shuffle_lost": 2, "shuffle_lost_with_executor": 2}


def counts(by_cause: Mapping[FailureCause, int]) -> dict[FailureCause, int]:
    return {cause: count for cause, count in by_cause.items() if count}


def filtered(events: Iterable[Event]) -> Iterable[Event]:
    """Return the events that a source passes on if it filters successes and first attempts in the JVM."""
    for event in events:
        numbers = (event.get("Stage Attempt ID"), event.get("Task Info", {}).get("Attempt"))
        success = event.get("Task End Reason") == {"Reason": "Success"}
        if numbers != (0, 0) or not (event["Event"] == "SparkListenerTaskStart" or success):
            yield event


def without_successes(events: Iterable[Event]) -> Iterable[Event]:
    """Return the events that a source passes on if it filters all successes, those of retries, too."""
    return (event for event in filtered(events) if event.get("Task End Reason") != {"Reason": "Success"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", FAILED_BY)
@pytest.mark.parametrize("source", [list, filtered, without_successes])
def test_real_failures_and_retries(version: str, case: str, source: Any) -> None:
    """Failures and retries are the same in all versions, and whether or not a source filters."""
    snapshot = after(source(recorded(version, case)))
    assert counts(snapshot.failures) == Counter(FAILED_BY[case])
    assert counts(snapshot.retries) == Counter(RETRIED.get(case, FAILED_BY[case]))
    assert snapshot.stage_retries == STAGE_RETRIES.get(case, 0)
    assert snapshot.lost_events == 0


OTHER, LOST = FailureCause.OTHER, FailureCause.EXECUTOR_LOST
CANCELLED = {"Reason": "TaskKilled", "Kill Reason": "Stage cancelled"}
JOB_FAILED = job_ended(result="JobFailed")
begins, ends = partial(started, stage=1), partial(ended, stage=1)
again = partial(begins, stage_attempt=1)
"""An attempt in the second attempt of the stage, where numbers of attempts begin at 0 again."""
NEXT = (stage_completed(1, failed="lost"), stage_submitted(1, 1))
"""The stage fails, and its second attempt begins."""


@pytest.mark.parametrize(
    ("events", "failures", "retries"),
    [
        pytest.param(
            [stage_submitted(1), ends("FetchFailed", task=1), *NEXT, again(task=2), again(partition=1, task=3)],
            {FailureCause.FETCH_FAILED: 1},
            {FailureCause.FETCH_FAILED: 1}, id="a partition that was lost but did not fail is no retry"),
        pytest.param(
            [
                ends(FAILED, task=1),
                begins(number=1, task=2),
                ends("Success", number=1, task=2),
                ends("Resubmitted", number=1, task=2),
            ],
            {OTHER: 1, LOST: 1}, {OTHER: 1}, id="a retry whose output is lost is not counted as a retry again"),
        pytest.param(
            [ends("Success", task=1), ends("Resubmitted", task=1), begins(number=1, task=2)],
            {LOST: 1}, {LOST: 1}, id="output that is lost with its executor is repeated"),
        pytest.param(
            [
                begins(number=1, task=2, speculative=True),
                ends("Success", number=1, task=2, speculative=True),
                ends(LOSER, task=1),
            ],
            {}, {}, id="a racing attempt is no retry, and one that loses no failure"),
        pytest.param(
            [ends("TaskCommitDenied", task=1), begins(number=1, task=2)],
            {},
            {},
            id="a denied commit is no failure",
        ),
        pytest.param(
            [begins(number=1, task=2)],
            {},
            {FailureCause.UNKNOWN: 1},
            id="the cause of a failure that was not seen is not guessed",
        ),
        pytest.param(
            [
                stage_submitted(1),
                stage_completed(1, failed="cancelled"),
                JOB_FAILED,
                ends(python_failure(QUOTA), task=1),
                ends(CANCELLED, task=2),
            ],
            {FailureCause.KAFKA_QUOTA: 1}, {}, id="a task that fails after its cancelled stage counts"),
        pytest.param(
            [ends(FAILED, task=1), ends("Success", number=1, task=2, speculative=True),
             ends(LOSER, partition=1, task=3), stage_completed(1), stage_submitted(1, 1), again(task=4),
             again(partition=1, task=5)],
            {OTHER: 1}, {}, id="tasks of a stage that succeeded repeat a success"),
        pytest.param(
            [ends(FAILED, task=1), stage_completed(1), stage_submitted(1, 1), again(task=2)],
            {OTHER: 1}, {}, id="also where a source leaves successes out"),
        pytest.param(
            [ends(FAILED, task=1), begins(number=1, task=2), *NEXT, again(task=3)],
            {OTHER: 1}, {OTHER: 1}, id="a failure is repeated once"),
        *(
            pytest.param(
                [ends(FAILED, task=1), begins(number=1, task=2, speculative=racing),
                 ends("Success", number=1, task=2, speculative=racing), ends(FAILED, partition=1, task=3), *NEXT,
                 again(task=4), again(partition=1, task=5)],
                {OTHER: 2}, {OTHER: 1 if racing else 2}, id=f"a success clears the failure before it, racing {racing}")
            for racing in (False, True)
        ),
        *(
            pytest.param(
                [ends(FAILED, task=1), *start, ends(reason, number=1, task=2)],
                {OTHER: failed}, {OTHER: 1}, id=f"a retry counts once, starts seen {len(start)}, failures {failed}")
            for start in ([], [begins(number=1, task=2)])
            for reason, failed in (("Success", 1), (FAILED, 2))
        ),
    ]
)  # fmt: skip
def test_failures_and_retries(
    events: list[Event], failures: dict[FailureCause, int], retries: dict[FailureCause, int]
) -> None:
    """A retry repeats the partition of an attempt that failed, once, in this attempt of the stage or in a later one."""
    snapshot = after(events)
    assert counts(snapshot.failures) == failures
    assert counts(snapshot.retries) == retries
    assert snapshot.stage_retries == events.count(stage_submitted(1, 1))


def test_what_is_remembered_is_what_came_last() -> None:
    """The oldest keys are forgotten, and a key that comes again is as young as a new one."""
    recent: Recent[str, int] = Recent(2)
    for number, key in enumerate("abac"):
        recent[key] = number
    assert dict(recent) == {"a": 2, "c": 3}


def test_space_is_bounded() -> None:
    """
    An application that fails for years does not fill the driver.

    A task that is repeated after a very long time has an unknown cause.
    """
    job = Job("app")
    for task in range(20_001):
        job.handle(ended("FetchFailed", stage=task, task=task))
    for stage in (0, 1):
        job.handle(started(stage=stage, number=1, task=30_000 + stage))
    snapshot = job.snapshot()
    assert counts(snapshot.failures) == {FailureCause.FETCH_FAILED: 20_001}
    assert counts(snapshot.retries) == {FailureCause.UNKNOWN: 1, FailureCause.FETCH_FAILED: 1}
    assert len(job._attempts._to_repeat) <= 20_000
