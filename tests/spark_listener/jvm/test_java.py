"""The plugin's Java, asked part by part in a JVM."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias
from urllib.parse import quote

import pytest
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
        asked, answered = running.stdin, running.stdout

        def ask(*words: object) -> list[str]:
            asked.write(" ".join(quote(str(word), safe="") for word in words) + "\n")
            asked.flush()
            found: list[str] = []
            for line in answered:
                if line == ".\n":
                    return found
                found.append(line)
            raise AssertionError(f"it ended after {found}")

        yield ask


@pytest.fixture(scope="module")
def ask(lines: Lines) -> Ask:
    return lambda *words: json.loads("".join(lines(*words)))


def test_names_of_clients_are_the_same_in_each_run(ask: Ask) -> None:
    """UUIDs, hashes, places and numbers go, but only where the connector or Kafka puts them."""
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
    """Whatever the password holds; a token's name is no principal, and other logins have none."""
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
    """After a thousand the others are one, and none is lost."""
    counted = ask("overflow", 1_005)
    assert len(counted) == 1_001
    assert sum(ms for _, (ms, *_) in counted) == 1_005
    assert [["", "__overflow__", "__overflow__", "read"], [5, 5, 1, 1]] in counted


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        pytest.param(["executors", 700], [[[], [700, 700, 699, 0]]], id="each executor that is gone, however often it spoke"),
        pytest.param(["hourly", 300], [[[], [300, 300, 1, 0]]], id="each of many executors that report once an hour"),
        pytest.param(["minutes"], [5, 5, 3, 0, 0], id="the longest of the last one or two minutes"),
        pytest.param(["ended"], [[["", "alice", "etl", "read"], [5, 1, 5, 5]]], id="until the application ended"),
    ]
)  # fmt: skip
def test_counts(ask: Ask, question: list[object], counted: list[object]) -> None:
    """Each once, of one application, and for those who read once a minute."""
    assert ask(*question) == counted


def test_counts_begin_with_the_application(ask: Ask) -> None:
    """Throttle times from before, of an earlier application in the same JVM, are not this one's: none is longer than all of this one."""
    assert dict(ask("since")) == {"old": [5, 1, 5, 5], "new": [1, 1, 1, 1]}


def test_a_folder_of_reports_may_hold_anything(ask: Ask, tmp_path: Path) -> None:
    """A pipe, on which a reader would wait for ever, a link out of the folder, and bytes that are no text do not stop those that follow."""
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
    assert [left.name for left in folder.iterdir()] == ["written now"]
    assert outside.exists()


def test_interval_that_is_none_is_a_second(ask: Ask) -> None:
    """As in Python: from 50 ms to an hour; above all, no value makes a JVM poll without a pause."""
    bounds = {"0.05": 0.05, "3600": 3600.0, " 2.5 ": 2.5}
    others = ("NaN", "Infinity", "-1", "0", "0.049", "3601", "soon", "")
    assert ask("intervals", *bounds, *others) == [*bounds.values(), *[1.0] * 8]


def trials(lines: Lines, seconds: int) -> list[tuple[int, int, int]]:
    """The truth, the estimate and the plain sum of averages of forty random clients of Kafka's own average."""
    found = [line.split() for line in lines("trial", 40, seconds)]
    return [(int(truth), int(ours), int(plain)) for truth, ours, plain in found if int(truth)]


def test_estimate_is_exact_at_first(lines: Lines) -> None:
    """As long as the average has forgotten nothing, the sum is right to the ms."""
    found = trials(lines, 55)
    assert len(found) > 10
    assert [ours for _, ours, _ in found] == [truth for truth, _, _ in found]


def test_estimate_stays_close(lines: Lines) -> None:
    """After half an hour it is a few per cent off, where averages times responses are far more."""
    found = trials(lines, 1_800)
    ours = [abs(estimate / truth - 1) for truth, estimate, _ in found]
    plain = [abs(estimate / truth - 1) for truth, _, estimate in found]
    assert median(ours) < 0.05 < median(plain)
    assert sorted(ours)[-3] < 0.5


@pytest.mark.parametrize(
    ("capacity", "successes", "kept", "skipped", "refused"),
    [
        (99, "false", ["repeated", "resubmitted", "failed", "job end"], 2, 0),
        (99, "true", ["first", "succeeded", "repeated", "resubmitted", "failed", "job end"], 0, 0),
        (3, "false", ["repeated", "resubmitted", "failed"], 2, 1),
        (1, "true", ["first"], 0, 5),
    ],
)
def test_queue_holds_what_is_worth_it(
    lines: Lines, capacity: int, successes: str, kept: list[str], skipped: int, refused: int
) -> None:
    """First starts and successes are only counted unless asked for, unwanted events not at all, and what finds no place is lost."""
    *events, left_out, lost = lines("queued", capacity, successes)
    assert [_called(json.loads(event)) for event in events] == kept
    assert (int(left_out), int(lost)) == (skipped, refused)


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
    """Canceled attempts and removed executors did not; a note counts only for its own attempt, once, and may be anything else."""
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
    taken = f"{line}{json.dumps(attempt)}\n{line}{json.dumps(attempt | {'clients': [], 'reported': rows})}"
    assert dict(ask("metrics", *texts, two, chained, taken)) == {
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
    """In all recorded cases, with quoted source, messages of several lines and groups of exceptions among them."""
    cases = sorted(each.stem for each in (RECORDED / version).glob("*.jsonl"))
    failures = [
        (case, event["Task End Reason"])
        for case in cases
        for event in recorded(version, case)
        if event.get("Task End Reason", {}).get("Reason") == "ExceptionFailure"
    ]
    caused = [
        case for case, reason in failures if (found := classify(reason)) and found.cause is FailureCause.KAFKA_QUOTA
    ]
    texts = [f"{reason['Description']}\n{reason['Full Stack Trace']}" for _, reason in failures]
    assert len(set(caused)) > 4
    assert dict(ask("metrics", *texts))["kafkaQuotaFailures"] == len(caused)
