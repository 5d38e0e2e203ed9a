"""The plugin's Java, asked part by part in a JVM."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, TypeAlias
from urllib.parse import quote

import pytest
from tests.builders.spark_events import ended, started
from tests.simulation.listener.queue import EventQueue, Posted
from tests.spark_listener.recordings import RECORDED, VERSIONS, recorded
from tools.build_spark_jar import class_path, compile_to

from quotascope.spark_listener.events import FailureCause, classify

pytestmark = pytest.mark.java

UUID = "0a1b2c3d-0000-4111-8222-0123456789ab"
Lines: TypeAlias = Callable[..., list[str]]
Ask: TypeAlias = Callable[..., Any]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lines]:
    """Asks `Facts`, which runs beside the plugin and the classes of Kafka and Spark, for the lines of an answer."""
    classes = tmp_path_factory.mktemp("classes")
    compile_to(classes)
    programs = sorted(str(path) for path in Path(__file__).parent.glob("java/*.java"))
    path = f"{classes}:{class_path()}"
    javac = ["javac", "-proc:none", "-cp", path, "-d", str(classes), *programs]
    subprocess.run(javac, check=True, capture_output=True)
    java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path, "io.quotascope.spark.Facts"]
    with subprocess.Popen(java, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        stdin, answered = running.stdin, running.stdout

        def ask(*words: object) -> list[str]:
            stdin.write(" ".join(quote(str(word), safe="") for word in words) + "\n")
            stdin.flush()
            answer_lines: list[str] = []
            for line in answered:
                if line == ".\n":
                    return answer_lines
                answer_lines.append(line)
            raise AssertionError(f"it ended after {answer_lines}")

        yield ask


@pytest.fixture(scope="module")
def ask(lines: Lines) -> Ask:
    return lambda *words: json.loads("".join(lines(*words)))


def test_names_of_clients_are_the_same_in_each_run(ask: Ask) -> None:
    """UUIDs, hashes, places and numbers in names are removed where the connector or Kafka puts them."""
    names = {
        f"consumer-spark-kafka-source-{UUID}--1234567-executor-3": "consumer-spark-kafka-source",
        f"consumer-spark-kafka-source-{UUID}-1234567-driver-0-4": "consumer-spark-kafka-source",
        f"consumer-spark-kafka-relation-{UUID}-executor-1": "consumer-spark-kafka-relation",
        f"consumer-mine-{UUID}-77-executor-2": "consumer-mine",
        "producer-12": "producer",
        "consumer-group-1-2": "consumer-group-1",
        "etl-1": "etl-1",
        f"{UUID}-etl": f"{UUID}-etl",
        "": "",
        "x" * 10_000: "x" * 256,
    }
    assert ask("clients", *names) == [*names.values()]


def test_user_is_that_of_a_login_with_a_password(ask: Ask) -> None:
    """The password may hold any text; a token's name is no principal, and other logins have none."""
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    users = {
        f'{plain} username="alice" password="pw";': "alice",
        f'{plain} password="username=\\"eve\\" ;" username="team a";': "team a",
        f"{plain} /* username=eve */ serviceName=kafka username=bob password=pw;": "bob",
        f"{plain} username='carol' password='pw';": "carol",
        f'{scram} tokenauth="true" username="token-id" password="hmac";': "",
        f'{scram} username="token-id" password="hmac" tokenauth=true;': "",
        "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;": "",
        'unfinished username="': "",
        "": "",
    }
    assert ask("users", *users) == [*users.values()]


def test_clients_that_come_too_late_are_counted_together(ask: Ask) -> None:
    """Clients beyond a thousand are counted as one, and no count is lost."""
    counted = ask("overflow", 1_005)
    assert len(counted) == 1_001
    assert sum(ms for _, (ms, *_) in counted) == 1_005
    assert [["", "__overflow__", "__overflow__", "read"], [5, 5, 1, 1]] in counted


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        pytest.param(
            ["executors", 700],
            [[[], [700, 700, 699, 0]]],
            id="each executor that is gone, however often it spoke",
        ),
        pytest.param(["hourly", 300], [[[], [300, 300, 1, 0]]], id="each of many executors that report once an hour"),
        pytest.param(["minutes"], [5, 5, 3, 0, 0], id="the longest of the last one or two minutes"),
        pytest.param(["ended"], [[["", "alice", "etl", "read"], [5, 1, 5, 5]]], id="until the application ended"),
    ]
)  # fmt: skip
def test_counts(ask: Ask, question: list[object], counted: list[object]) -> None:
    """Each throttle counts once, for one application, and for readers that come once a minute."""
    assert ask(*question) == counted


def test_counts_begin_with_the_application(ask: Ask) -> None:
    """Throttle times of an earlier application in the same JVM do not count."""
    assert dict(ask("since")) == {"old": [5, 1, 5, 5], "new": [1, 1, 1, 1]}


def test_a_folder_of_reports_may_hold_anything(ask: Ask, tmp_path: Path) -> None:
    """
    A folder may hold a pipe, a link out of it, and bytes that are no text.

    A reader would wait at the pipe for ever; the reports that follow are read all the same.
    """
    folder = tmp_path / "quotascope"
    folder.mkdir()
    outside = tmp_path / "outside.txt"
    outside.write_text(" alice outside read 1 1 1")
    os.mkfifo(folder / "pipe.txt")
    (folder / "link.txt").symlink_to(outside)
    (folder / "bytes.txt").write_bytes(b"\xff\xfe")
    (folder / "large.txt").write_text(" alice large read 1 1 1\n" * 50_000)
    (folder / "report.txt").write_text(" alice a%20b read 5 2 3")
    (folder / "written now").write_text(" alice unfinished read 1 1 1")
    assert ask("spool", folder) == [[["", "alice", "a b", "read"], [5, 2, 3, 3]]]
    assert [path.name for path in folder.iterdir()] == ["written now"]
    assert outside.exists()


def test_interval_that_is_none_is_a_second(ask: Ask) -> None:
    """An invalid interval is a second; valid ones are from 50 ms to an hour, as in Python."""
    bounds = {"0.05": 0.05, "3600": 3600.0, " 2.5 ": 2.5}
    invalid = ("NaN", "Infinity", "-1", "0", "0.049", "3601", "soon", "")
    assert ask("intervals", *bounds, *invalid) == [*bounds.values(), *[1.0] * 8]


def trials(lines: Lines, seconds: int) -> list[tuple[int, int, int]]:
    """Return the truth, the estimate and the plain sum of averages of forty random clients of Kafka's own average."""
    rows = [line.split() for line in lines("trial", 40, seconds)]
    return [(int(truth), int(ours), int(plain)) for truth, ours, plain in rows if int(truth)]


def test_estimate_is_exact_at_first(lines: Lines) -> None:
    """The sum is right to the ms as long as the average has forgotten nothing."""
    results = trials(lines, 55)
    assert len(results) > 10
    assert [ours for _, ours, _ in results] == [truth for truth, _, _ in results]


def test_estimate_stays_close(lines: Lines) -> None:
    """The estimate is a few per cent off after half an hour, where averages times responses are far more."""
    results = trials(lines, 1_800)
    ours = [abs(estimate / truth - 1) for truth, estimate, _ in results]
    plain = [abs(estimate / truth - 1) for truth, _, estimate in results]
    assert median(ours) < 0.05 < median(plain)
    assert sorted(ours)[-3] < 0.5


@pytest.mark.parametrize(
    ("capacity", "successes", "expected", "skipped", "refused"),
    [
        (99, "false", ["repeated", "resubmitted", "failed", "job end"], 2, 0),
        (99, "true", ["first", "succeeded", "repeated", "resubmitted", "failed", "job end"], 0, 0),
        (3, "false", ["repeated", "resubmitted", "failed"], 2, 1),
        (1, "true", ["first"], 0, 5),
    ],
)
def test_queue_holds_what_is_worth_it(
    lines: Lines, capacity: int, successes: str, expected: list[str], skipped: int, refused: int
) -> None:
    """
    First starts and successes are only counted unless asked for.

    Unwanted events are not counted, and an event without a place is lost.
    """
    *events, left_out, lost = lines("queued", capacity, successes)
    assert [_called(json.loads(event)) for event in events] == expected
    assert (int(left_out), int(lost)) == (skipped, refused)


def _posted(operation: str) -> Posted:
    """Return the event of an operation of `Queued`."""
    numbers = {"stage": 1, "partition": 1, "task": 1}
    match operation:
        case "unwanted":
            return Posted({"Event": "SparkListenerUnpersistRDD"})
        case "first" | "repeated" | "resubmitted":
            attempt = {"stage_attempt": int(operation == "resubmitted"), "number": int(operation == "repeated")}
            return Posted(started(**numbers, **attempt))
        case "broken":
            return Posted(started(**numbers, stage_attempt=1), json="")
        case "huge":
            return Posted(ended({"Reason": "TaskKilled", "Kill Reason": "x" * 1_000_001}, **numbers))
        case _:
            return Posted(ended("Success" if operation == "succeeded" else "TaskResultLost", **numbers))


@pytest.mark.parametrize("seed", range(40))
def test_queue_is_as_its_model(lines: Lines, seed: int) -> None:
    """The model of the simulation keeps, skips, refuses and cuts the same events as the class in Java, in any order."""
    random = Random(seed)  # noqa: S311 - repeats
    capacity, successes = random.choice((1, 2, 5, 50)), random.random() < 0.5
    names = ["first", "repeated", "resubmitted", "succeeded", "failed", "broken", "unwanted"]
    operations = [random.choice([*names, *names, "huge", "1", "3", "200"]) for _ in range(60)] + ["0", "200"]
    scheduler = "org.apache.spark.scheduler.SparkListener"
    model = EventQueue(capacity, {scheduler + name for name in ("TaskStart", "TaskEnd", "JobEnd")}, successes)
    ours: list[str] = []
    for operation in operations:
        if operation.isdecimal():
            ours += model.take(int(operation)).split("\n")
        else:
            model.onEvent(_posted(operation))
    theirs = lines("queueing", capacity, str(successes).lower(), *operations)
    assert [*map(_summary, theirs)] == [*map(_summary, ours)]


def _summary(line: str) -> str:
    """Return what is compared of a line: counts, the sort of an event, or that there is no whole event."""
    text = line.strip()
    if text.isdecimal() or not text:
        return text
    return _called(json.loads(text)) if text.endswith("}") else text[:31]


def _called(event: dict[str, Any]) -> str:
    match event["Event"], event:
        case "SparkListenerJobEnd", _:
            return "job end"
        case "SparkListenerTaskEnd", {"Task End Reason": {"Reason": reason}}:
            return "succeeded" if reason == "Success" else "failed"
        case "SparkListenerTaskStart", {"Stage Attempt ID": 1}:
            return "resubmitted"
        case "SparkListenerTaskStart", {"Task Info": {"Attempt": attempt}}:
            return "repeated" if attempt else "first"
    raise AssertionError(event)


def test_metrics_count_what_failed(ask: Ask) -> None:
    """
    Metrics count failed attempts, without canceled ones and removed executors.

    A note counts only for its own attempt, once, and may be anything else.
    """
    rows: list[list[object]] = [["u", "etl", "write", 250, 1, 250, 0]]
    attempt = {"stage": 7, "number": 2, "task": 1, "query": "", "clients": rows}
    notes = [
        attempt,
        attempt | {"clients": []},
        attempt | {"stage": 8},
        attempt | {"clients": [["u", "etl", "write", -1, 1, 250, 0]]},
        attempt | {"clients": [["u", "etl", "no side", 250, 1, 250, 0]]},
        attempt | {"clients": 3, "task": "1"},
        [],
    ]
    line = "quotascope throttles: "
    texts = [f"Traceback\n{line}{json.dumps(note)}\nend" for note in notes]
    texts += [f"  | {line}{json.dumps(attempt)}", f"says {line}{json.dumps(attempt)}", f"{line}{{"]
    two = f"{line}{json.dumps(attempt | {'clients': []})}\n{line}{json.dumps(attempt)}"
    # as in a worker without an accumulator, of which the plugin took the counts between two exceptions of a chain
    later = attempt | {"clients": [["u", "etl", "write", 3, 1, 3, 0]], "reported": rows}
    chained = f"{line}{json.dumps(attempt)}\n{line}{json.dumps(later)}"
    reported_note = f"{line}{json.dumps(attempt)}\n{line}{json.dumps(attempt | {'clients': [], 'reported': rows})}"
    assert dict(ask("metrics", *texts, two, chained, reported_note)) == {
        "executorsLost": 1,
        "kafkaQuotaFailures": 0,
        "kafkaThrottledMs.read.caf___x_": 5,
        "kafkaThrottledMs.read.caf_____": 7,
        "kafkaThrottledMs.write.etl": 753,
        "kafkaThrottledResponses.read.caf___x_": 1,
        "kafkaThrottledResponses.read.caf_____": 1,
        "kafkaThrottledResponses.write.etl": 4,
        "stageRetries": 0,
        "taskFailures": 13,
        "taskFailures.ExceptionFailure": 13,
        "taskRetries": 15,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_metrics_count_refusals_as_the_listener_does(ask: Ask, version: str) -> None:
    """
    Both count the same refusals in all recorded cases.

    Quoted source, messages of several lines and groups of exceptions are among them.
    """
    cases = sorted(path.stem for path in (RECORDED / version).glob("*.jsonl"))
    failures = [
        (case, event["Task End Reason"])
        for case in cases
        for event in recorded(version, case)
        if event.get("Task End Reason", {}).get("Reason") == "ExceptionFailure"
    ]
    caused = [
        case for case, reason in failures if (failure := classify(reason)) and failure.cause is FailureCause.KAFKA_QUOTA
    ]
    texts = [f"{reason['Description']}\n{reason['Full Stack Trace']}" for _, reason in failures]
    assert len(set(caused)) > 4
    assert dict(ask("metrics", *texts))["kafkaQuotaFailures"] == len(caused)
