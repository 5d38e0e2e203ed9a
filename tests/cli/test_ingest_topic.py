"""What `quotascope ingest kafka://…` asks of Spark, and what it prints; tests/spark/pipeline/test_stream.py runs it on a topic."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Run

from quotascope.pipeline.errors import NoTable, PipelineError
from quotascope.pipeline.ingest import IngestReport
from quotascope.pipeline.runs import ingest as runs

TOPIC = "kafka://b:1,c:2/t"


def command(*options: str, logs: str = TOPIC) -> list[str]:
    """The command line with that."""
    return ["ingest", *logs.split(), "--into", "/u", *options]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of Spark; the query ends after one batch."""
    asked: list[Any] = []

    def start(*arguments: Any, **keywords: Any) -> None:
        asked.append((arguments, keywords))
        keywords["done"](3, IngestReport(read=5, kept=4, quarantined=1))

    monkeypatch.setattr(runs, "ingest_topic", start)
    return asked


def test_options(run: Run, asked: list[Any]) -> None:
    """They go to the source, the trigger and the reading of lines; each batch is a line of output, once a minute unless another time is given."""
    more = ["--option", "kafka.ssl.key=a=b", "--option", "startingOffsets=latest"]
    code, out, _ = run(*command(*more, "--broker", "7", "--once", "--buckets", "3"))
    counts = "5 lines: 4 requests added, 0 second lines of forwarded requests, 0 known before, 1 quarantined"
    assert (code, out) == (0, f"batch 3: {counts}\n")
    (((source, into, checkpoint, options), keywords),) = asked
    assert (into, checkpoint) == ("/u", "/u/stream-t")
    assert source == {
        "kafka.bootstrap.servers": "b:1,c:2",
        "subscribe": "t",
        "kafka.ssl.key": "a=b",
        "startingOffsets": "latest",
    }
    assert keywords["buckets"] == 3
    assert options.broker == "7"
    assert json.loads(run(*command("--json"))[1])["batch"] == 3
    run(*command("--checkpoint", "/c", "--every", "10s"))
    assert asked[2][0][2] == "/c"
    assert [each["every"] for _, each in asked] == [None, "60000 milliseconds", "10000 milliseconds"]


@pytest.mark.parametrize(
    ("logs", "options", "code", "message"),
    [
        (TOPIC, ["--log-time-zone", "nowhere"], 1, "Europe/Berlin"),
        (TOPIC, ["--option", "novalue"], 2, "KEY=VALUE"),
        (TOPIC, ["--option", "=value"], 2, "KEY=VALUE"),
        (TOPIC, ["--every", "soon"], 1, "--every"),
        (TOPIC, ["--engine", "local"], 2, "read by Spark"),
        (f"a.log {TOPIC}", [], 2, "kafka://SERVERS/TOPIC,TOPIC"),
        ("kafka://b:1", [], 2, "kafka://broker-1:9092"),
        ("kafka:///t", [], 2, "kafka://broker-1:9092"),
        ("kafka://b:1/t/u", [], 2, "kafka://broker-1:9092"),
        ("kafka://me:hunter2@b:1/t", [], 2, "JAAS"),
        ("a.log", ["--once"], 2, "--once"),
        ("a.log", ["--every", "1m"], 2, "--every"),
        ("a.log", ["--checkpoint", "/c"], 2, "--checkpoint"),
        ("a.log", ["--option", "a=b"], 2, "--option"),
    ],
)
def test_mistakes(run: Run, asked: list[Any], logs: str, options: list[str], code: int, message: str) -> None:
    """They are named before Spark is asked anything, without secrets."""
    found, _, err = run(*command(*options, logs=logs))
    assert found == code
    assert message in " ".join(err.replace("│", "").split())
    assert "hunter2" not in err
    assert asked == []


def test_what_ends_the_stream(run: Run, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Is a message and an exit code."""
    error: PipelineError = NoTable("/u")

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(runs, "ingest_topic", refuse)
    code, _, err = run(*command())
    assert code == 1
    assert err == f"quotascope: {error}\n"
    assert asked == []
