"""The commands of the pipeline as docs/whatif.md has them, on the log of a real broker, what they need, and what `ingest kafka://…` asks of Spark."""

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

from quotascope.cli import options
from quotascope.cli.ingest import seen_in
from quotascope.pipeline.errors import MissingExtra, NoTable, PipelineError
from quotascope.pipeline.ingest import IngestOptions, IngestReport
from quotascope.pipeline.runs import ingest as topic_runs
from quotascope.pipeline.runs.ingest import ingest_logs

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "pipeline" / "captures"
CAPTURE = CAPTURES / "kafka-4.3.1-request.log.gz"


def bash(script: str, folder: Path) -> str:
    """What a script prints; it must not fail."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", script]
    environ = {**os.environ, "PATH": path, "COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the documented commands have run, and what they printed."""
    folder = tmp_path_factory.mktemp("tried")
    (folder / "tests").symlink_to(ROOT / "tests")
    page = (ROOT / "docs" / "whatif.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return folder, bash(script, folder)


def test_documented_commands_run_as_they_stand(tried: tuple[Path, str]) -> None:
    """From the log to a decision: what they print and write is what the page promises; twice the limit frees the throttled client."""
    folder, reported = tried
    assert "5,403 lines: 5,395 requests added, 8 second lines" in reported
    assert "app1 may do twice as much" in reported
    for page in ("whatif.html", "recommend.html"):
        assert (folder / page).read_text(encoding="utf-8").startswith("<!doctype html>")
    with (folder / "whatif.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["candidate"] for row in rows} >= {"as it was", "each user producer_byte_rate=20000"}
    client = {"user": "alice", "client_id": "app1", "quota_type": "produce"}
    muted = {row["candidate"]: int(row["muted_ms"]) for row in rows if client.items() <= row.items()}
    assert muted["as it was"] > 5_000
    assert muted["app1 may do twice as much"] == 0


@pytest.mark.slow
def test_recommended_limits_hit_no_one_longer_than_wanted(tried: tuple[Path, str], run: Run) -> None:
    """They were looked for without the configured quotas, so that nothing else decides."""
    windows = ("--windows", "11x1", "--controller-windows", "11x1")
    _, out, err = run("recommend", tried[0] / "usage", "--short-log", "--share", 1, *windows, "--json")
    assert err == ""
    reported = json.loads(out)
    assert {each["user"] for each in reported["recommended"]} == {"ANONYMOUS", "alice", "bob", "carol", "svc:team a"}
    assert all(hit["share"] <= 0.01 for hit in reported["hits"])
    assert all(each["limit"] >= each["lowest"] for each in reported["recommended"])
    script = (tried[0] / "set-quotas.sh").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if "kafka-configs.sh -" in line] == reported["commands"]


@pytest.mark.slow
def test_reading_a_log_again_adds_nothing(tried: tuple[Path, str], run: Run) -> None:
    """Every line is known before."""
    code, out, _ = run("ingest", CAPTURE, "--broker", 1, "--into", tried[0] / "usage")
    assert code == 0
    assert ": 0 requests added" in out
    assert "5,395 known before" in out


def test_broken_log_is_read_as_far_as_it_goes(tmp_path: Path, run: Run) -> None:
    """What could be read counts, the file is named, and the exit code is 1."""
    (tmp_path / "cut.log.gz").write_bytes(CAPTURE.read_bytes()[:50_000])
    code, out, err = run("ingest", tmp_path / "cut.log.gz", "--into", tmp_path / "usage")
    assert code == 1
    assert "requests added" in out
    assert "cut.log.gz" in err
    assert "Traceback" not in err


def test_a_pipe_is_not_read_again(tmp_path: Path) -> None:
    """To say what it holds: nothing may write to it any more."""
    os.mkfifo(tmp_path / "pipe")
    assert seen_in([str(tmp_path / "pipe"), "-"]) == ""


@pytest.mark.slow
def test_what_is_no_request_log_is_called_so(tmp_path: Path, run: Run) -> None:
    """Where all lines go to quarantine, now or before, the likely mistake is named; one request among them is enough to say nothing."""
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
    """Before anything is read: here there is not even a history."""
    code, _, err = run(*command, "--html", tmp_path / "no/page.html")
    assert code == 1
    assert "no/page.html cannot be written: No such file or directory" in err
    assert "Traceback" not in err


def test_each_library_of_the_extra_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none of them is installed, the message names them all."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingExtra) as raised:
        options.check_extra()
    named = str(raised.value).removeprefix("this needs ").partition(":")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["optional-dependencies"]["pipeline"]
    assert set(named.split(", ")) == {re.split(r"[^\w-]", each)[0] for each in needed}


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
    """The log of a broker whose third throttle would be longer than 2147483647 ms; `edit` stands where it names its features."""
    return (CAPTURES / f"kafka-{version}-month-request.log").read_text().replace("metadata.version", edit)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Histories of 4.3.1, of 4.4.0, of both, and of a log that names no release; and the limit that throttled."""
    folder = tmp_path_factory.mktemp("month")
    logs = {"4.3.1": log_of("4.3.1"), "4.4.0": log_of("4.4.0"), "silent": log_of("4.3.1", "other")}
    logs["both"] = logs["4.4.0"] + logs["4.3.1"]
    for name, text in logs.items():
        (folder / f"{name}.log").write_text(text)
        ingest_logs([str(folder / f"{name}.log")], str(folder / name), IngestOptions())
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
        (["both"], ("4.4", "log", ["4.3"]), "says (the newest that it names; some of it is of 4.3)", None),
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
    """The throttles are those that the broker wrote into its log; another release is followed on request, and the newest where none is named."""
    mode = "open" if throttled else "closed"
    code, out, err = run(*whatif(month, *asked, "--json", "--mode", mode))
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    assert found["kafka"] == dict(zip(("version", "known_by", "also_named"), kafka, strict=True))
    assert note in " ".join(found["notes"])
    for row in found["results"] if throttled else ():
        assert (row["throttled_requests"], row["longest_throttle_ms"]) == pytest.approx(throttled, rel=1e-4)


def test_terminal_and_page_name_the_release(run: Run, month: Path) -> None:
    """So do the table and the pages of both commands."""
    recommend = ("recommend", month / "4.3.1", "--short-log")
    for command, known in (
        (whatif(month, "4.4.0"), "4.4, as the log"),
        (whatif(month, "4.4.0", "--kafka-version", "4.3", "--html", "-"), "4.3, as --kafka-version"),
        ((*recommend, "--html", "-"), "4.3, as the log"),
    ):
        assert f"follow Kafka {known} says" in " ".join(run(*command)[1].split())


@pytest.mark.parametrize("text", ["latest", "4", "4.4\n4.3"])
def test_no_release(run: Run, month: Path, text: str) -> None:
    """What is no version is refused with an example."""
    code, _, err = run(*whatif(month, "4.4.0", "--kafka-version", text))
    assert code == 2
    assert "Invalid value for --kafka-version" in err


TOPIC = "kafka://b:1,c:2/t"


def topic_command(*options: str, logs: str = TOPIC) -> list[str]:
    return ["ingest", *logs.split(), "--into", "/u", *options]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of Spark; the query ends after one batch."""
    asked: list[Any] = []

    def start(*arguments: Any, **keywords: Any) -> None:
        asked.append((arguments, keywords))
        keywords["done"](3, IngestReport(read=5, kept=4, quarantined=1))

    monkeypatch.setattr(topic_runs, "ingest_topic", start)
    return asked


def test_options_of_a_topic(run: Run, asked: list[Any]) -> None:
    """They go to the source, the trigger and the reading of lines; each batch is a line of output, once a minute unless another time is given."""
    more = ["--option", "kafka.ssl.key=a=b", "--option", "startingOffsets=latest"]
    code, out, _ = run(*topic_command(*more, "--broker", "7", "--once", "--buckets", "3"))
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
    assert json.loads(run(*topic_command("--json"))[1])["batch"] == 3
    run(*topic_command("--checkpoint", "/c", "--every", "10s"))
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
def test_mistakes_about_a_topic(
    run: Run, asked: list[Any], logs: str, options: list[str], code: int, message: str
) -> None:
    """They are named before Spark is asked anything, without secrets."""
    found, _, err = run(*topic_command(*options, logs=logs))
    assert found == code
    assert message in " ".join(err.replace("│", "").split())
    assert "hunter2" not in err
    assert asked == []


def test_what_ends_the_stream(run: Run, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Is a message and an exit code."""
    error: PipelineError = NoTable("/u")

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(topic_runs, "ingest_topic", refuse)
    code, _, err = run(*topic_command())
    assert code == 1
    assert err == f"quotascope: {error}\n"
    assert asked == []
