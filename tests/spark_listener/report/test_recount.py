"""The report against a count by other code, and on logs of which lines were dropped, repeated, moved or broken."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders.spark_events import (
    QUOTA,
    TIMEOUT,
    Event,
    application_ended,
    application_started,
    ended,
    executor_removed,
    log_started,
    python_failure,
    query_progressed,
    query_started,
    query_terminated,
    stage_completed,
    stage_submitted,
    started,
)
from tests.spark_listener.recordings import RECORDED, VERSIONS, log_of

from quotascope.spark_listener.report import Application, read_application

KEPT = {"Success", "TaskCommitDenied"}
CANCELED = ("another attempt succeeded", "Stage cancelled", "Stage finished", "cancelled")
GIVEN_BACK = ("Executor killed by driver.", "Executor decommission")


def recount(events: Iterable[Event]) -> dict[str, Any]:
    """Count what a log shows by its JSON alone: an attempt is one dictionary entry, no figure depends on the order."""
    ends: dict[tuple[int, bool], Event] = {}
    starts: dict[int, Event] = {}
    removed: dict[str, tuple[int, str]] = {}
    times: list[int] = []
    end_of_application = None
    stages, runs = set(), Counter[str]()
    for event in events:
        kind = event["Event"].rpartition("$")[2].rpartition(".")[2]
        if kind in ("SparkListenerTaskStart", "SparkListenerTaskEnd"):
            info = event["Task Info"]
            times.append(info["Launch Time"])
            if kind == "SparkListenerTaskStart":
                starts[info["Task ID"]] = event
            else:
                times.append(info["Finish Time"])
                ends[info["Task ID"], event["Task End Reason"]["Reason"] == "Resubmitted"] = event
        elif kind == "SparkListenerExecutorRemoved":
            removed.setdefault(event["Executor ID"], (event["Timestamp"], event["Removed Reason"]))
        elif kind == "SparkListenerApplicationEnd":
            end_of_application = event["Timestamp"]
            times.append(event["Timestamp"])
        elif kind == "SparkListenerStageSubmitted":
            stages.add((event["Stage Info"]["Stage ID"], event["Stage Info"]["Stage Attempt ID"]))
        elif kind == "QueryStartedEvent":
            runs[event["id"]] += 1
    failed = [event for event in ends.values() if is_failure(event["Task End Reason"])]
    lost = {event["Task Info"]["Executor ID"] for event in failed if is_loss(event["Task End Reason"])}
    for executor, (time, reason) in removed.items():
        if not reason.startswith(GIVEN_BACK) and (end_of_application is None or time < end_of_application):
            lost.add(executor)
    return {
        "failures": Counter(event["Task End Reason"]["Reason"] for event in failed),
        "stage_retries": sum(attempt > 0 for _, attempt in stages),
        "executors_lost": len(lost),
        "finished": end_of_application is not None,
        "last": max(times, default=0) / 1_000,
        "attempts": len({task for task, _ in ends}),
        "restarts": sum(count - 1 for count in runs.values()),
    }


def is_failure(reason: Mapping[str, str]) -> bool:
    why = reason.get("Kill Reason", "")
    return reason["Reason"] not in KEPT and not (
        reason["Reason"] == "TaskKilled" and any(text in why for text in CANCELED)
    )


def is_loss(reason: Mapping[str, str]) -> bool:
    return reason["Reason"] == "ExecutorLostFailure" and not reason.get("Loss Reason", "").startswith(GIVEN_BACK)


def reported(application: Application) -> dict[str, Any]:
    snapshot = application.snapshot
    return {
        "failures": sum(snapshot.failures.values()),
        "stage_retries": snapshot.stage_retries,
        "executors_lost": snapshot.executors_lost,
        "finished": application.finished,
        "restarts": sum(query.restarts for query in snapshot.queries),
    }


def lines_of(path: Path) -> list[bytes]:
    files = sorted(path.glob("events_*")) if path.is_dir() else [path]
    data = b"".join(file.read_bytes() for file in files)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        data = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(data)
    return data.splitlines()


LOGS = [
    *(log_of(version, kind) for version in VERSIONS for kind in ("plain", "zstd", "rolling")),
    *sorted(RECORDED.glob("*/*.jsonl")),
]


def by_name(path: Path) -> str:
    return "-".join(path.parts[-2:]) if path.suffix == ".jsonl" else "-".join(path.parts[-4:])


@pytest.mark.parametrize("path", LOGS, ids=by_name)
def test_recorded_logs_are_counted_alike(path: Path) -> None:
    """Failures, stages, executors, restarts and the last moment of a recorded log equal a count by other code."""
    events = [json.loads(line) for line in lines_of(path)]
    right, application = recount(events), read_application(path)
    assert reported(application) == {
        **{name: right[name] for name in reported(application)},
        "failures": right["failures"].total(),
    }
    assert application.ended >= right["last"]
    assert len(application.attempts) == right["failures"].total()
    assert application.repeated_lines == 0
    assert not application.disordered


def generated(seed: int) -> list[Event]:
    """
    Return the events of an application.

    It has failures of several causes, retries, a repeated stage, a speculative copy, lost executors and a query.
    """
    choose = random.Random(seed)  # noqa: S311 - a case
    now, task = 1_000, 0
    events: list[Event] = [
        log_started(),
        application_started(),
        query_started(began=2),
    ]
    reasons = [
        python_failure(QUOTA),
        python_failure(TIMEOUT),
        python_failure("ValueError: x"),
        LOST,
        {"Reason": "FetchFailed"},
    ]
    for stage in range(choose.randint(1, 4)):
        repeated = choose.random() < 0.3
        for stage_attempt in range(1 + repeated):
            info = {"Number of Tasks": 3, "Submission Time": now}
            events.append(stage_submitted(stage, stage_attempt, query="id-1", info=info))
            for partition in range(3):
                number = 0
                while True:
                    now += choose.randint(1, 900)
                    numbers = {"stage": stage, "stage_attempt": stage_attempt, "partition": partition, "number": number}
                    attempt = {**numbers, "task": task, "executor": str(task), "began": now / 1_000}
                    events.append(started(**attempt))
                    now += choose.randint(1, 900)
                    task += 1
                    fails = number < 3 and choose.random() < 0.4
                    events.append(ended(choose.choice(reasons) if fails else "Success", over=now / 1_000, **attempt))
                    if not fails:
                        break
                    number += 1
            now += choose.randint(1, 900)
            over = {**info, "Completion Time": now}
            failed = "FetchFailed" if repeated and not stage_attempt else ""
            events.append(stage_completed(stage, stage_attempt, failed, info=over))
            if choose.random() < 0.5:
                reason = choose.choice([GIVEN_BACK[0], "Command exited with code 137"])
                events.append(executor_removed(f"x{stage}{stage_attempt}", now / 1_000, reason))
        events.append(query_progressed(began=now / 1_000 - 2.5, batchId=stage))
    events.append(query_terminated())
    if choose.random() < 0.5:
        events += [query_started(run="run-2", began=now / 1_000), query_terminated(run="run-2")]
    return [*events, application_ended((now + 300) / 1_000)]


LOST = {"Reason": "ExecutorLostFailure", "Loss Reason": "Command exited with code 137"}


def write(path: Path, lines: Sequence[bytes]) -> Application:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return read_application(path)


def dumped(events: Iterable[Event]) -> list[bytes]:
    return [json.dumps(event, separators=(",", ":")).encode() for event in events]


SEEDS = st.integers(0, 10**6)
FOLDERS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@given(SEEDS)
@FOLDERS
def test_generated_logs_are_counted_alike(tmp_path: Path, seed: int) -> None:
    """A log that has everything is exact, and is said to be."""
    events = generated(seed)
    right, application = recount(events), write(tmp_path / "a", dumped(events))
    assert reported(application) == {
        **{name: right[name] for name in reported(application)},
        "failures": right["failures"].total(),
    }
    assert application.counts_complete
    assert (application.missing_ends, application.open_attempts, application.repeated_lines) == (0, 0, 0)
    assert not application.disordered
    assert application.ended == right["last"]


def figures(application: Application) -> tuple[object, ...]:
    """Return all that depends on each line."""
    snapshot = application.snapshot
    attempts = sorted(
        (attempt.stage, attempt.partition, attempt.number, attempt.cause, attempt.query, attempt.began)
        for attempt in application.attempts
    )
    stages = [
        (stage.stage, stage.attempt, stage.tasks, stage.began, stage.ended, stage.failures, stage.failed)
        for stage in application.stages
    ]
    counts = snapshot.failures, snapshot.retries, snapshot.stage_retries, snapshot.executors_lost
    batches = sorted(batch.number for batch in application.batches)
    queries = [(query.name, query.restarts, query.active) for query in snapshot.queries]
    period = application.began, application.ended, application.finished, application.app_id
    return counts, attempts, stages, batches, queries, period


@given(SEEDS, st.randoms(use_true_random=False))
@FOLDERS
def test_lines_in_another_order(tmp_path: Path, seed: int, choose: random.Random) -> None:
    """Whatever the order of its lines, a log is reported alike; where the order is not Spark's, that is said."""
    lines = dumped(generated(seed))
    right = write(tmp_path / "a", lines)
    if choose.random() < 0.5:  # neighbors, or a part of the log, or all of it
        index = choose.randrange(1, len(lines) - 1)
        moved = [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]
    else:
        moved = choose.sample(lines, len(lines))
    application = write(tmp_path / "a", moved)
    assert figures(application) == figures(right)
    assert application.counts_complete


@given(SEEDS, st.randoms(use_true_random=False))
@FOLDERS
def test_lines_that_stand_there_twice(tmp_path: Path, seed: int, choose: random.Random) -> None:
    """Repeated lines count once, as where parts of a log overlap, and their number is reported."""
    lines = dumped(generated(seed))
    right = write(tmp_path / "a", lines)
    doubled = choose.sample(range(len(lines)), choose.randint(1, len(lines)))
    again = [line for number, line in enumerate(lines) for _ in range(1 + (number in doubled))]
    application = write(tmp_path / "a", again)
    assert figures(application) == figures(right)
    assert application.repeated_lines == len(doubled)
    twice = write(tmp_path / "a", lines + lines)
    assert figures(twice) == figures(right)
    assert twice.repeated_lines == len(lines)


@given(SEEDS, st.randoms(use_true_random=False))
@FOLDERS
def test_lines_that_are_dropped(tmp_path: Path, seed: int, choose: random.Random) -> None:
    """A log that lacks lines is counted exactly; a missing end of an attempt makes counts lower bounds."""
    events = generated(seed)
    dropped = set(choose.sample(range(len(events)), choose.randint(1, max(1, len(events) // 4))))
    left = [event for number, event in enumerate(events) if number not in dropped]
    if not any(event["Event"].startswith("SparkListener") for event in left):
        return
    right, application = recount(left), write(tmp_path / "a", dumped(left))
    assert sum(application.snapshot.failures.values()) == right["failures"].total()
    assert application.snapshot.executors_lost == right["executors_lost"]
    assert application.finished == right["finished"]
    gone = [events[number] for number in dropped]
    ends = [event for event in gone if event["Event"] == "SparkListenerTaskEnd"]
    known = {event["Task Info"]["Task ID"] for event in left if "Task Info" in event}
    if ends and max(event["Task Info"]["Task ID"] for event in ends) < max(known, default=-1):
        told = application.missing_ends + application.open_attempts
        assert told >= 1
        assert application.missing_ends <= len(ends)
        assert told <= len(ends)
    if not ends:
        assert application.missing_ends == 0


@given(SEEDS, st.randoms(use_true_random=False))
@FOLDERS
def test_lines_that_are_broken(tmp_path: Path, seed: int, choose: random.Random) -> None:
    """
    Lines that were wrapped are unreadable, their number is said, and the counts are lower bounds.

    Lines that were joined are read.
    """
    lines = dumped(generated(seed))
    right = write(tmp_path / "a", lines)
    joined = [b"".join(lines[index : index + 3]) for index in range(0, len(lines), 3)]
    assert figures(write(tmp_path / "a", joined)) == figures(right)
    index = choose.randrange(2, len(lines))
    middle = choose.randrange(5, len(lines[index]) - 5)
    wrapped = [*lines[:index], lines[index][:middle], lines[index][middle:], *lines[index + 1 :]]
    application = write(tmp_path / "a", wrapped)
    assert 1 <= application.unreadable_lines <= 2  # a line without its last brackets may look whole
    assert not application.counts_complete
    assert sum(application.snapshot.failures.values()) >= sum(right.snapshot.failures.values()) - 1
