"""The program that reads request logs from a topic, without Spark: what it makes of its command line, and what it tells."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pipeline.log_lines import line

from quotascope.pipeline.errors import LostCommit, NoTable
from quotascope.pipeline.ingest import Options, Report, Tables
from quotascope.pipeline.ingest.committing import ATTEMPTS, Committer, next_run
from quotascope.pipeline.ingest.parts import Staged
from quotascope.pipeline.request_log.mutations import MutationLedger
from quotascope.pipeline.request_log.parsing import Source, parse_lines
from quotascope.pipeline.spark import session, stream

COMMAND = ["--bootstrap-servers", "b:1", "--topic", "t", "--into", "/u", "--checkpoint", "/c"]  # fmt: skip


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of Spark; the query ends at once, after one batch."""
    asked: list[Any] = []

    def start(*arguments: Any, **keywords: Any) -> Any:
        asked.append((arguments, keywords))
        keywords["done"](3, Report(read=5, kept=5))
        return SimpleNamespace(awaitTermination=lambda: None)

    monkeypatch.setattr(session, "session", lambda: "the session")
    monkeypatch.setattr(stream, "stream", start)
    return asked


def test_command_line(started: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Options go to the source, the trigger and the reading of lines; each batch is told in a line."""
    more = ["--option", "kafka.ssl.key=a=b", "--option", "startingOffsets=latest"]
    assert stream.main([*COMMAND, *more, "--broker", "7", "--once"]) == 0
    (((spark, source, into, checkpoint), keywords),) = started
    assert (spark, into, checkpoint) == ("the session", "/u", "/c")
    assert source == {
        "kafka.bootstrap.servers": "b:1",
        "subscribe": "t",
        "kafka.ssl.key": "a=b",
        "startingOffsets": "latest",
    }
    assert keywords["trigger"] == {"availableNow": True}
    assert keywords["options"].broker == "7"
    assert capsys.readouterr().out.startswith("batch 3: 5 lines read: 5 requests kept")


def test_how_often(started: list[Any]) -> None:
    """Without --once it runs on, a batch a minute unless told otherwise."""
    assert stream.main(COMMAND) == 0
    assert stream.main([*COMMAND, "--every", "10 seconds"]) == 0
    triggers = [keywords["trigger"]["processingTime"] for _, keywords in started]
    assert triggers == ["1 minute", "10 seconds"]


def test_what_is_wrong(
    started: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An option without sense, and tables that cannot be used, are told in a line; an option without a value as argparse does."""
    assert stream.main([*COMMAND, "--log-time-zone", "nowhere"]) == 1
    assert "Europe/Berlin" in capsys.readouterr().err
    assert started == []

    def refuse(*_: Any, **__: Any) -> None:
        raise NoTable("/u")

    monkeypatch.setattr(stream, "stream", refuse)
    assert stream.main(COMMAND) == 1
    assert "/u" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        stream.main([*COMMAND, "--option", "novalue"])
    assert "KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("others", [1, ATTEMPTS])
def test_a_batch_looks_again_when_another_run_was_quicker(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time it finds out anew what is new; after many times it gives up, and the query ends with what to do."""
    tables = Tables.create(str(tmp_path))
    looked: list[int] = []

    def staged_lines(*_: object) -> list[Staged]:
        looked.append(len(looked))
        if len(looked) <= others:
            run = next_run(tables.requests)
            tables.requests.commit(run.name, [], run.epoch)
        rows = parse_lines([line()], range(1, 2), Source(file="t-0")).requests
        return [Staged(lines=1, requests=tables.requests.stage(rows))]

    monkeypatch.setattr(stream, "staged_lines", staged_lines)
    monkeypatch.setattr(stream, "_query_id", lambda _: "q")
    done: list[Report] = []
    frame: Any = None

    def add() -> None:
        committer = Committer(tables, MutationLedger())
        stream._add(tables, committer, Options(), lambda _, report: done.append(report), frame, 0)  # fmt: skip

    if others == ATTEMPTS:
        with pytest.raises(LostCommit, match="run this again"):
            add()
    else:
        add()
        assert [report.kept for report in done] == [1]
    assert len(looked) == min(others + 1, ATTEMPTS)
    assert len(tables.requests.read()) == len(done)
