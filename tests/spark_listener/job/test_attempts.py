from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from tests.spark_listener.events.test_failure import CASES
from tests.spark_listener.recordings import (
    QUOTA,
    VERSIONS,
    ended,
    python_failure,
    recorded,
    stage_completed,
    stage_submitted,
    started,
)

from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job, JobSnapshot
from quotascope.spark_listener.job.recent import Recent

FAILED = python_failure("ValueError: x")
LOSER = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
NOTED = {  # the causes that notes on the failures make of those
    "confluent_throttled": [FailureCause.KAFKA_TIMEOUT_THROTTLED],
    "kafka_python_throttled": [FailureCause.KAFKA_TIMEOUT_THROTTLED],
}
FAILED_BY = {**CASES, **NOTED}
RETRIED = {  # the causes that are repeated; what is not here repeats each failure
    "gives_up": [FailureCause.OTHER] * 3,
    "restarted": [FailureCause.KAFKA_QUOTA] * 3,
}
STAGE_RETRIES = {"shuffle_lost": 2, "shuffle_lost_with_executor": 2}


def told(events: Iterable[Mapping[str, Any]]) -> JobSnapshot:
    """The books after these events."""
    job = Job("app")
    for event in events:
        job.handle(event)
    return job.snapshot()


def counts(of: Mapping[FailureCause, int]) -> dict[FailureCause, int]:
    """Those above 0."""
    return {cause: count for cause, count in of.items() if count}


def counted(causes: Iterable[FailureCause]) -> dict[FailureCause, int]:
    """How often each occurs."""
    found = list(causes)
    return {cause: found.count(cause) for cause in FailureCause if cause in found}


def filtered(events: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """What a source leaves that filters successes and first attempts in the JVM."""
    for event in events:
        numbers = (
            event.get("Stage Attempt ID"),
            event.get("Task Info", {}).get("Attempt"),
        )
        kind = event["Event"]
        is_first = numbers == (0, 0)
        success = event.get("Task End Reason") == {"Reason": "Success"}
        if not (is_first and (kind == "SparkListenerTaskStart" or success)):
            yield event


def without_successes(
    events: Iterable[Mapping[str, Any]],
) -> Iterable[Mapping[str, Any]]:
    """What a source leaves that filters all successes, those of retries, too."""
    for event in filtered(events):
        if event.get("Task End Reason") != {"Reason": "Success"}:
            yield event


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("source", [list, filtered, without_successes])
def test_real_failures_and_retries(version: str, case: str, source: Any) -> None:
    """What failed and what was repeated is the same in all versions, and whether or not a source filters."""
    snapshot = told(source(recorded(version, case)))
    assert counts(snapshot.failures) == counted(FAILED_BY[case])
    assert counts(snapshot.retries) == counted(RETRIED.get(case, FAILED_BY[case]))
    assert snapshot.stage_retries == STAGE_RETRIES.get(case, 0)
    assert snapshot.lost_events == 0


def test_every_cause_is_told() -> None:
    """Series begin at 0, so that a first failure is seen as growth."""
    snapshot = Job("app").snapshot()
    assert set(snapshot.failures) == set(snapshot.retries) == set(FailureCause)


def test_retry_in_a_new_attempt_of_the_stage() -> None:
    """There numbers begin at 0 again; a partition that was lost, but not failed, is no retry."""
    snapshot = told(
        [
            stage_submitted(1),
            ended({"Reason": "FetchFailed"}, stage=1, partition=0, task=1),
            stage_completed(1, failed="lost"),
            stage_submitted(1, 1),
            started(stage=1, stage_attempt=1, partition=0, task=2),
            started(stage=1, stage_attempt=1, partition=1, task=3),
        ]
    )
    assert counts(snapshot.retries) == {FailureCause.FETCH_FAILED: 1}
    assert snapshot.stage_retries == 1


def test_lost_output_of_a_retry() -> None:
    """The attempt that made it is told to have failed after its end, and is not counted as a retry again."""
    snapshot = told(
        [
            ended(FAILED, stage=1, partition=0, task=1),
            started(stage=1, partition=0, number=1, task=2),
            ended({"Reason": "Success"}, stage=1, partition=0, number=1, task=2),
            ended({"Reason": "Resubmitted"}, stage=1, partition=0, number=1, task=2),
        ]
    )
    assert counts(snapshot.failures) == {
        FailureCause.OTHER: 1,
        FailureCause.EXECUTOR_LOST: 1,
    }
    assert counts(snapshot.retries) == {FailureCause.OTHER: 1}


def test_losers_of_a_speculation() -> None:
    """An attempt that races another one is no retry, and one that loses no failure."""
    snapshot = told(
        [
            started(number=1, task=2, speculative=True),
            ended("Success", number=1, task=2, speculative=True),
            ended(LOSER, number=0, task=1),
        ]
    )
    assert not counts(snapshot.failures)
    assert not counts(snapshot.retries)


def test_retry_after_a_denied_commit() -> None:
    """That attempt did not fail, so what follows repeats no failure."""
    snapshot = told([ended("TaskCommitDenied", task=1), started(number=1, task=2)])
    assert not counts(snapshot.failures)
    assert not counts(snapshot.retries)


def test_retry_of_a_failure_that_was_not_seen() -> None:
    """It is counted, and its cause is not guessed."""
    snapshot = told([started(number=1, task=2)])
    assert counts(snapshot.retries) == {FailureCause.UNKNOWN: 1}


@pytest.mark.parametrize("reason", ["Success", FAILED])
def test_retry_whose_start_was_not_seen(reason: Any) -> None:
    """Its end is enough, and counts once."""
    first = [ended(FAILED, task=1)]
    unseen = told([*first, ended(reason, number=1, task=2)])
    seen = told([*first, started(number=1, task=2), ended(reason, number=1, task=2)])
    assert unseen.retries == seen.retries
    assert counts(seen.retries) == {FailureCause.OTHER: 1}


def test_task_that_ends_after_its_stage() -> None:
    """A cancelled stage has completed before its tasks end; one that fails then still counts."""
    snapshot = told(
        [
            stage_submitted(1),
            stage_completed(1, failed="cancelled"),
            {
                "Event": "SparkListenerJobEnd",
                "Job ID": 1,
                "Completion Time": 1,
                "Job Result": {"Result": "JobFailed"},
            },
            ended(python_failure(QUOTA), stage=1, task=1),
            ended(
                {"Reason": "TaskKilled", "Kill Reason": "Stage cancelled"},
                stage=1,
                task=2,
            ),
        ]
    )
    assert counts(snapshot.failures) == {FailureCause.KAFKA_QUOTA: 1}


def test_stage_that_succeeded_is_forgotten() -> None:
    """When its output is lost later, its tasks repeat a success, whatever failed before that."""
    snapshot = told(
        [
            ended(FAILED, stage=1, task=1),
            ended("Success", stage=1, task=2, number=1, speculative=True),
            ended(LOSER, stage=1, partition=1, task=3),
            stage_completed(1),
            stage_submitted(1, 1),
            started(stage=1, stage_attempt=1, partition=0, task=4),
            started(stage=1, stage_attempt=1, partition=1, task=5),
        ]
    )
    assert not counts(snapshot.retries)


def test_stage_that_succeeded_clears_failures_whose_repetition_was_not_seen() -> None:
    """A source may leave successes out: the stage's own is enough."""
    snapshot = told(
        [
            ended(FAILED, stage=1, task=1),
            stage_completed(1),
            stage_submitted(1, 1),
            started(stage=1, stage_attempt=1, task=2),
        ]
    )
    assert not counts(snapshot.retries)


def test_a_failure_is_repeated_once() -> None:
    """An attempt whose end is not known stands for it: what the next attempt of the stage repeats did not fail."""
    snapshot = told(
        [
            ended(FAILED, stage=1, task=1),
            started(stage=1, task=2, number=1),
            stage_completed(1, failed="lost"),
            stage_submitted(1, 1),
            started(stage=1, stage_attempt=1, task=3),
        ]
    )
    assert counts(snapshot.retries) == {FailureCause.OTHER: 1}


def test_what_is_remembered_is_what_came_last() -> None:
    """A key that comes again is as young as a new one."""
    recent: Recent[str, int] = Recent(2)
    for number, key in enumerate("abac"):
        recent[key] = number
    assert dict(recent) == {"a": 2, "c": 3}


@pytest.mark.parametrize("speculative", [False, True])
def test_a_success_clears_the_failure_before_it(speculative: bool) -> None:  # noqa: FBT001 - a case
    """In a stage that then fails: what its next attempt repeats of that partition is a success, whichever attempt it was."""
    snapshot = told(
        [
            ended(FAILED, stage=1, partition=0, task=1),
            started(stage=1, partition=0, task=2, number=1, speculative=speculative),
            ended("Success", stage=1, partition=0, task=2, number=1, speculative=speculative),
            ended(FAILED, stage=1, partition=1, task=3),
            stage_completed(1, failed="lost"),
            stage_submitted(1, 1),
            started(stage=1, stage_attempt=1, partition=0, task=4),
            started(stage=1, stage_attempt=1, partition=1, task=5),
        ]
    )  # fmt: skip
    retries = 1 if speculative else 2  # a racing attempt repeats nothing
    assert counts(snapshot.retries) == {FailureCause.OTHER: retries}


def test_output_that_is_lost_with_its_executor() -> None:
    """The attempt had succeeded; it is told of again, counts as lost, and is repeated."""
    snapshot = told(
        [
            ended("Success", task=1),
            ended("Resubmitted", task=1),
            started(number=1, task=2),
        ]
    )
    assert counts(snapshot.failures) == {FailureCause.EXECUTOR_LOST: 1}
    assert counts(snapshot.retries) == {FailureCause.EXECUTOR_LOST: 1}


def test_space_is_bounded() -> None:
    """An application that fails for years does not fill the driver: what is repeated after ages has an unknown cause."""
    job = Job("app")
    for task in range(30_000):
        job.handle(ended(FAILED, stage=task, task=task))
    job.handle(started(stage=0, number=1, task=40_000))
    job.handle(started(stage=29_999, number=1, task=40_001))
    snapshot = job.snapshot()
    assert counts(snapshot.failures) == {FailureCause.OTHER: 30_000}
    assert counts(snapshot.retries) == {FailureCause.UNKNOWN: 1, FailureCause.OTHER: 1}
    assert len(job._attempts._to_repeat) <= 20_000
