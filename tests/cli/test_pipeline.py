"""Commands of docs/guides/whatif.md on a real broker's log; their extras, and Spark for `ingest kafka://…`."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.pipeline.report.reader import Reader

from quotascope.cli import options
from quotascope.cli.ingest import content_hint
from quotascope.pipeline.errors import MissingExtra, NoTable, PipelineError
from quotascope.pipeline.ingest import IngestOptions, IngestReport
from quotascope.pipeline.runs import ingest as topic_runs
from quotascope.pipeline.runs.ingest import ingest_logs

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "pipeline" / "captures"
CAPTURE = CAPTURES / "kafka-4.3.1-request.log.gz"


def bash(script: str, folder: Path) -> str:
    """Return the output of a script; fail if the script does."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", script]
    environ = {**os.environ, "PATH": path, "COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder in which the documented commands have run, and what they printed."""
    folder = tmp_path_factory.mktemp("tried")
    (folder / "tests").symlink_to(ROOT / "tests")
    page = (ROOT / "docs" / "guides" / "whatif.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return folder, bash(script, folder)


def test_documented_commands_run_as_they_stand(tried: tuple[Path, str]) -> None:
    """Commands print and write what the page promises; the effect of twice a throttled limit is unknown."""
    folder, reported = tried
    assert "5,403 lines: 5,395 requests added, 8 second lines" in reported
    assert "app1 may do twice as much" in reported
    for page in ("whatif.html", "recommend.html"):
        assert (folder / page).read_text(encoding="utf-8").startswith("<!doctype html>")
    with (folder / "whatif.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["candidate"] for row in rows} >= {"as it was", "each user producer_byte_rate=20000"}
    client = {"user": "alice", "client_id": "app1", "quota_type": "produce"}
    of_app1 = {row["candidate"]: row for row in rows if client.items() <= row.items()}
    muted = {name: int(row["muted_ms"]) for name, row in of_app1.items()}
    assert muted["as it was"] > 5_000
    assert muted["app1 may do twice as much"] == 0
    assert all(int(row["held_back_requests"]) > 0 for row in of_app1.values())
    text = Reader((folder / "whatif.html").read_text(encoding="utf-8")).text
    throttled = re.findall(
        r"\|alice / app1\|produce\|app1 may do twice as much\|100 kB/s\|1 alice / app1\|[\d,]+\|(\w+)\|(\w+)\|", text
    )
    assert throttled == [("unknown", "unknown")]
    assert "understates it under a higher one for clients that were throttled while the log was written" in text


@pytest.mark.slow
def test_recommended_limits_hit_no_one_longer_than_wanted(tried: tuple[Path, str], run: Run) -> None:
    """Recommended limits throttle no client longer than the wanted share, with no other quota configured."""
    windows = ("--windows", "11x1", "--controller-windows", "11x1")
    _, out, err = run("recommend", tried[0] / "usage", "--short-log", "--share", 1, *windows, "--json")
    assert err == ""
    reported = json.loads(out)
    assert {recommendation["user"] for recommendation in reported["recommended"]} == {
        "ANONYMOUS",
        "alice",
        "bob",
        "carol",
        "svc:team a",
    }
    assert all(hit["share"] <= 0.01 for hit in reported["hits"])
    assert all(recommendation["limit"] >= recommendation["lowest"] for recommendation in reported["recommended"])
    script = (tried[0] / "set-quotas.sh").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if "kafka-configs.sh -" in line] == reported["commands"]


@pytest.mark.slow
def test_reading_a_log_again_adds_nothing(tried: tuple[Path, str], run: Run) -> None:
    """A log that is read again adds nothing, as every line is known."""
    code, out, _ = run("ingest", CAPTURE, "--broker", 1, "--into", tried[0] / "usage")
    assert code == 0
    assert ": 0 requests added" in out
    assert "5,395 known before" in out


def test_broken_log_is_read_as_far_as_it_is_whole(tmp_path: Path, run: Run) -> None:
    """The whole members of a broken log count, the file is named, and the exit code is 1."""
    (tmp_path / "cut.log.gz").write_bytes(CAPTURE.read_bytes() + CAPTURE.read_bytes()[:50_000])
    code, out, err = run("ingest", tmp_path / "cut.log.gz", "--broker", 1, "--into", tmp_path / "usage")
    assert code == 1
    assert "requests added" in out
    assert "cut.log.gz" in err
    assert "Traceback" not in err


def test_a_pipe_is_not_read_again(tmp_path: Path) -> None:
    """A pipe is not read a second time to say what it holds: no process may write to it any more."""
    os.mkfifo(tmp_path / "pipe")
    assert content_hint([str(tmp_path / "pipe"), "-"]) == ""


@pytest.mark.slow
def test_what_is_no_request_log_is_called_so(tmp_path: Path, run: Run) -> None:
    """If all lines are quarantined, now and before, the likely mistake is named; one request prevents the message."""
    log = tmp_path / "server.log"
    log.write_text("[2026-11-21 09:02:00,655] INFO started\n")
    for _ in range(2):
        code, _, err = run("ingest", log, "--into", tmp_path / "usage")
        assert code == 1
        assert "server.log seems to hold the log of another logger" in err
        assert "give the log of kafka.request.logger at DEBUG" in err
    script = f"(cat server.log; gzip -dc {CAPTURE} | sed -n 1p) | quotascope ingest - --into usage"
    assert "1 requests added" in bash(script, tmp_path)


@pytest.mark.parametrize("command", [("whatif", "usage", "--candidates", "candidates.yaml"), ("recommend", "usage")])
def test_outputs_that_cannot_be_written_are_reported_first(tmp_path: Path, run: Run, command: tuple[str, ...]) -> None:
    """Outputs that cannot be written are reported before anything is read: here there is not even a history."""
    code, _, err = run(*command, "--html", tmp_path / "no/page.html")
    assert code == 1
    assert "no/page.html cannot be written: No such file or directory" in err
    assert "Traceback" not in err


def test_each_library_of_the_extra_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names all missing libraries of the extra."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingExtra) as raised:
        options.check_extra()
    named = str(raised.value).removeprefix("this needs ").partition(";")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["optional-dependencies"]["pipeline"]
    assert set(named.split(", ")) == {re.split(r"[^\w-]", requirement)[0] for requirement in needed}


@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "logs", "--into", ""),
        ("history", "clean", ""),
        ("whatif", " ", "--candidates", "candidates.yaml"),
        ("recommend", ""),
    ],
)
def test_an_empty_folder_is_refused(run: Run, command: tuple[str, ...]) -> None:
    """An unset variable of a shell would mean tables at the root of the file system."""
    code, _, err = run(*command)
    assert (code, "a folder or URI is needed" in err) == (2, True)


CANDIDATES = """
candidates:
  - name: as it was
    quotas: [{user: alice, client-id: heavy, producer_byte_rate: 1}]
"""
"""Under which a real broker logged three requests of 3 MB in all, whose throttles differ by release."""


def log_of(version: str, edit: str = "metadata.version") -> str:
    """Return a log whose third throttle would exceed 2147483647 ms, with `edit` in place of a feature's name."""
    return (CAPTURES / f"kafka-{version}-month-request.log").read_text().replace("metadata.version", edit)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return histories of 4.3.1, of 4.4.0, of both, and of a log without a release; and the limit that throttled."""
    folder = tmp_path_factory.mktemp("month")
    logs = {"4.3.1": log_of("4.3.1"), "4.4.0": log_of("4.4.0"), "silent": log_of("4.3.1", "other")}
    # a broker keeps the ports of its listeners when it is upgraded
    logs["both"] = logs["4.4.0"].replace(":25302-", ":27227-").replace(":20945-", ":25890-") + logs["4.3.1"]
    for name, text in logs.items():
        (folder / f"{name}.log").write_text(text)
        ingest_logs([str(folder / f"{name}.log")], str(folder / name), IngestOptions(broker="1"))
    (folder / "candidates.yaml").write_text(CANDIDATES)
    return folder


def whatif(month: Path, of: str, *more: object) -> tuple[object, ...]:
    return "whatif", month / of, "--candidates", month / "candidates.yaml", *more


OLDER, NEWER = (2, 1_980_241_989), (3, 2_147_483_647)
"""Throttled requests, and the longest throttle in ms: up to 4.3 the third one wraps around to none."""


@pytest.mark.parametrize(
    ("asked", "kafka", "note", "throttled"),
    [
        (["4.3.1"], ("4.3", "log", []), "follow Kafka 4.3, as the log says:", OLDER),
        (["4.4.0"], ("4.4", "log", []), "follow Kafka 4.4, as the log says:", NEWER),
        (["both"], ("4.4", "log", ["4.3"]), "says (the newest that it names; broker 1 is replayed as of 4.3)", None),
        (["silent"], ("4.4", "default", []), "", NEWER),
        (["4.4.0", "--kafka-version", "4.3.1"], ("4.3", "option", []), "4.3, as --kafka-version says", OLDER),
    ],
)
def test_the_release_that_wrote_the_log_is_followed(
    run: Run,
    month: Path,
    asked: list[str],
    kafka: tuple[str, str, list[str]],
    note: str,
    throttled: tuple[int, int] | None,
) -> None:
    """Throttles are those in the broker's log; another release is followed on request, by default the newest."""
    mode = "open" if throttled else "closed"
    code, out, err = run(*whatif(month, *asked, "--json", "--mode", mode))
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    assert tuple(answer["kafka"][name] for name in ("version", "known_by", "also_named")) == kafka
    assert note in " ".join(answer["notes"])
    for row in answer["results"] if throttled else ():
        assert (row["throttled_requests"], row["longest_throttle_ms"]) == pytest.approx(throttled, rel=1e-4)


def test_terminal_and_page_name_the_release(run: Run, month: Path) -> None:
    """The terminal and the pages of both commands name the release of Kafka."""
    recommend = ("recommend", month / "4.3.1", "--short-log")
    for command, known in (
        (whatif(month, "4.4.0"), "4.4, as the log"),
        (whatif(month, "4.4.0", "--kafka-version", "4.3", "--html", "-"), "4.3, as --kafka-version"),
        ((*recommend, "--html", "-"), "4.3, as the log"),
    ):
        assert f"follow Kafka {known} says" in " ".join(run(*command)[1].split())


@pytest.mark.parametrize("text", ["latest", "4", "4.4\n4.3"])
def test_no_release(run: Run, month: Path, text: str) -> None:
    """A text that is no version is refused with an example."""
    code, _, err = run(*whatif(month, "4.4.0", "--kafka-version", text))
    assert code == 2
    assert "invalid value for --kafka-version" in err


TOPIC = "kafka://b:1,c:2/t"


def topic_command(*options: str, logs: str = TOPIC) -> list[str]:
    return ["ingest", *logs.split(), "--into", "/u", *options]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the requests to Spark; the query ends after one batch."""
    asked: list[Any] = []

    def start(*arguments: Any, **keywords: Any) -> None:
        asked.append((arguments, keywords))
        keywords["done"](3, IngestReport(read=5, kept=4, quarantined=1))

    monkeypatch.setattr(topic_runs, "ingest_topic", start)
    return asked


def test_options_of_a_topic(run: Run, asked: list[Any]) -> None:
    """Options reach source, trigger and reader; each batch is a line of output, by default every minute."""
    more = ["--option", "kafka.ssl.key=a=b", "--option", "startingOffsets=latest"]
    code, out, _ = run(*topic_command(*more, "--broker", "7", "--once", "--shards", "3"))
    counts = (
        "5 lines: 4 requests added, 0 second lines of forwarded requests, 0 known before, 0 repeated, 1 quarantined"
    )
    assert (code, out) == (0, f"batch 3: {counts}\n")
    (((source, into, checkpoint, options), keywords),) = asked
    assert (into, checkpoint) == ("/u", "/u/stream-t")
    assert source == {
        "kafka.bootstrap.servers": "b:1,c:2",
        "subscribe": "t",
        "kafka.ssl.key": "a=b",
        "startingOffsets": "latest",
    }
    assert keywords["shards"] == 3
    assert options.broker == "7"
    assert json.loads(run(*topic_command("--json"))[1])["batch"] == 3
    run(*topic_command("--checkpoint", "/c", "--every", "10s"))
    assert asked[2][0][2] == "/c"
    assert [keywords["every"] for _, keywords in asked] == [None, "60000 milliseconds", "10000 milliseconds"]


@pytest.mark.parametrize(
    ("logs", "options", "code", "message"),
    [
        (TOPIC, ["--log-time-zone", "nowhere"], 2, "Europe/Berlin"),
        (TOPIC, ["--option", "novalue"], 2, "KEY=VALUE"),
        (TOPIC, ["--option", "=value"], 2, "KEY=VALUE"),
        (TOPIC, ["--every", "soon"], 2, "--every"),
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
def test_mistakes_about_a_topic(
    run: Run, asked: list[Any], logs: str, options: list[str], code: int, message: str
) -> None:
    """Mistakes about a topic are named before Spark is asked anything, without secrets."""
    exit_code, _, err = run(*topic_command(*options, logs=logs))
    assert exit_code == code
    assert message in " ".join(err.replace("│", "").split())
    assert "hunter2" not in err
    assert asked == []


def test_what_ends_the_stream(run: Run, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that ends the stream is a message and an exit code."""
    error: PipelineError = NoTable("/u")

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(topic_runs, "ingest_topic", refuse)
    code, _, err = run(*topic_command())
    assert code == 1
    assert err == f"quotascope: {error}\n"
    assert asked == []
