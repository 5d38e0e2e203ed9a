"""What `quotascope ingest-topic` asks of Spark, and what it prints; tests/spark/pipeline/test_stream.py runs it on a topic."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.conftest import Run

from quotascope.pipeline.errors import NoTable, PipelineError
from quotascope.pipeline.ingest import IngestReport
from quotascope.pipeline.spark import session, stream

COMMAND = (
    "ingest-topic",
    "t",
    "--bootstrap-servers",
    "b:1",
    "--into",
    "/u",
    "--checkpoint",
    "/c",
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of Spark; the query ends after one batch."""
    asked: list[Any] = []

    def start(*arguments: Any, **keywords: Any) -> None:
        asked.append((arguments, keywords))
        keywords["done"](3, IngestReport(read=5, kept=4, quarantined=1))

    monkeypatch.setattr(session, "session", lambda: "the session")
    monkeypatch.setattr(stream, "stream", start)
    return asked


def test_options(run: Run, asked: list[Any]) -> None:
    """They go to the source, the trigger and the reading of lines; each batch is a line of output."""
    more = ["--option", "kafka.ssl.key=a=b", "--option", "startingOffsets=latest"]
    code, out, _ = run(*COMMAND, *more, "--broker", "7", "--once", "--buckets", "3")
    assert (code, out) == (0, "batch 3: 5 lines: 4 requests added, 0 second lines of forwarded requests, 0 known before, 1 quarantined\n")  # fmt: skip
    (((spark, source, into, checkpoint), keywords),) = asked
    assert (spark, into, checkpoint) == ("the session", "/u", "/c")
    assert source == {
        "kafka.bootstrap.servers": "b:1",
        "subscribe": "t",
        "kafka.ssl.key": "a=b",
        "startingOffsets": "latest",
    }
    assert (keywords["every"], keywords["buckets"]) == (None, 3)
    assert keywords["options"].broker == "7"


def test_how_often(run: Run, asked: list[Any]) -> None:
    """Without --once it runs on, a batch a minute unless another time is given."""
    assert run(*COMMAND)[0] == run(*COMMAND, "--every", "10s")[0] == 0
    assert [keywords["every"] for _, keywords in asked] == [
        "60000 milliseconds",
        "10000 milliseconds",
    ]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--log-time-zone", "nowhere"], 1, "Europe/Berlin"),
        (["--option", "novalue"], 2, "KEY=VALUE"),
        (["--option", "=value"], 2, "KEY=VALUE"),
    ],
)
def test_mistakes(
    run: Run, asked: list[Any], options: list[str], code: int, message: str
) -> None:
    """They are named before Spark is asked anything."""
    found, _, err = run(*COMMAND, *options)
    assert found == code
    assert message in err
    assert asked == []


def test_what_ends_the_stream(
    run: Run, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is a message and an exit code."""
    error: PipelineError = NoTable("/u")

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(stream, "stream", refuse)
    code, _, err = run(*COMMAND)
    assert code == 1
    assert err == f"quotascope: {error}\n"
    assert asked == []
