"""What `quotascope whatif`, `recommend` and `blame` show in the terminal."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import Run
from tests.pipeline.blame.logs import row as request
from tests.pipeline.blame.logs import saturated, stored
from tests.pipeline.recommend.rows import make_folder, mutated, produced
from tests.pipeline.report.results import HOSTILE

from quotascope.pages.words import seconds

QUOTASCOPE = Path(sys.executable).with_name("quotascope")


@pytest.fixture
def printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command; returns what it prints on standard output. It must succeed and print nothing else."""
    monkeypatch.setenv("COLUMNS", "80")

    def succeed(*arguments: object) -> str:
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        return out

    return succeed


@pytest.fixture(scope="module")
def usage(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A minute of three users, of whom one has a terrible name and one makes topics."""
    rows = [produced(at, 40_000, user=user) for user in ("alice", "bob", HOSTILE) for at in range(0, 60_000, 1_000)]
    rows += [mutated(at, 30, user="alice") for at in range(0, 60_000, 10_000)]
    return make_folder(tmp_path_factory.mktemp("views") / "usage", rows)


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    """Seven candidates: more than the terminal has room for."""
    file = tmp_path / "candidates.yaml"
    grid = {"user": "<default>", "key": "producer_byte_rate", "values": [n * 10_000 for n in range(1, 8)]}
    file.write_text(yaml.safe_dump({"grid": [grid]}), encoding="utf-8")
    return file


def test_whatif_fits_a_terminal(usage: str, candidates: Path, printed: Callable[..., str]) -> None:
    """Candidates below, clients beside each other; what does not fit is counted, and names cannot move the cursor."""
    out = printed("whatif", usage, "--candidates", candidates)
    assert max(map(len, out.splitlines())) <= 80
    assert "Candidates, open loop" in out
    assert "3 of 3" in out
    assert "3 clients, 7 candidates" in out
    assert "-: unlimited" not in out
    assert "\x1b[2J" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize("by", ["client", "api", "topic"])
def test_blame_fits_a_terminal(by: str, tmp_path: Path, printed: Callable[..., str]) -> None:
    """A culprit with a terrible name in rows, victims in columns, and what is left in a row of its own; brokers beyond ten are counted."""
    brokers = [{**each, "broker": f"b{number}"} for number in range(12) for each in saturated("erin", seconds=1)]
    folder = stored(tmp_path, [*saturated(HOSTILE), *brokers])
    out = printed("blame", folder, "--by", by, "--io-threads", 1)
    assert max(map(len, out.splitlines())) <= 80
    words = " ".join(out.split())
    assert "held 70 % of broker 2's handler time; 10 other clients waited 1.2 s longer each." in words
    assert {"client": "alert('hit')", "api": "Produce", "topic": "raw"}[by] in out
    assert "not in the log" in out
    assert "and 3 more brokers" in out
    assert "\x1b[2J" not in out
    assert "\u202e" not in out


def test_waits_of_minutes_fit_a_terminal(tmp_path: Path, printed: Callable[..., str]) -> None:
    """No column is left out, so that a row adds up."""
    waits = [request(1_000_000.0 + n, 690_000.0, 1, f"v{n}") for n in range(5)]
    folder = stored(tmp_path, [request(300_000.0, 0.1, 700_000, "dana-of-analytics", client_id="notebook"), *waits])
    lines = printed("blame", folder, "--io-threads", 1).splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = (line for line in lines if "culprit" in line)
    assert head.split() == ["culprit", "caused", "share", "#1", "#2", "#3", "others"]
    assert "57.5 min" in " ".join(lines)


def test_blame_of_a_period(tmp_path: Path, printed: Callable[..., str]) -> None:
    """By clocks of a zone, which the output names."""
    folder = stored(tmp_path, saturated())
    berlin = ("--time-zone", "Europe/Berlin", "--begin", "2026-11-23T01:00:30", "--end", "2026-11-23T01:00:50")
    out = " ".join(printed("blame", folder, "--io-threads", 1, *berlin).split())
    assert "2026-11-23 01:00:30 CET to 2026-11-23 01:00:50 CET Between 01:00:30 and 01:00:40 dana" in out
    assert json.loads(printed("blame", folder, *berlin, "--json"))["begin_us"] == 1_795_392_030_000_000


def test_whatif_shows_unlimited_and_unthrottled_apart(usage: str, tmp_path: Path, printed: Callable[..., str]) -> None:
    """A client under a limit that never throttles it is throttled for 0 s; one without a limit has none, and what an open loop does not measure is null."""
    file = tmp_path / "candidates.yaml"
    made = [
        {"name": name, "quotas": [{"user": "alice", "producer_byte_rate": limit}]}
        for name, limit in (("tight", 10_000), ("wide", 10**9))
    ]
    bob = {"name": "bob", "quotas": [{"user": "bob", "producer_byte_rate": 10_000}]}
    file.write_text(yaml.safe_dump({"candidates": [*made, bob]}), encoding="utf-8")
    asked = ("whatif", usage, "--candidates", file)
    out = printed(*asked)
    rows = {line.split()[0]: line.split() for line in out.splitlines() if "app1" in line}
    assert rows["alice"][-3:] == ["0", "s", "-"]
    assert rows["bob"][-5:-2] == ["produce", "-", "-"]
    assert "-: unlimited under this candidate" in out
    read = json.loads(printed(*asked, "--json"))
    for row in (*read["candidates"], *read["results"]):
        assert row["late_ms"] is row["unsent_requests"] is None
        assert row["muted_ms"] is not None
    closed = json.loads(printed(*asked, "--mode", "closed", "--json"))
    assert all(row["late_ms"] is not None for row in closed["results"])
    for mode, cells in (("open", {""}), ("closed", {"0"})):
        text = printed(*asked, "--mode", mode, "--csv", "-")
        found = list(csv.DictReader(text.splitlines()))
        assert {row["unsent_bytes"] for row in found} == cells
        assert all(row["muted_ms"].isdigit() for row in found)


def test_whatif_shows_delays(usage: str, tmp_path: Path, printed: Callable[..., str]) -> None:
    """In closed loop: by how much each candidate makes requests later, and how many it keeps back; open loop has no such thing."""
    file = tmp_path / "candidates.yaml"
    grid = {"user": "<default>", "key": "producer_byte_rate", "values": [400, 10_000]}
    file.write_text(yaml.safe_dump({"grid": [grid]}), encoding="utf-8")
    asked = ("whatif", usage, "--candidates", file)
    out = printed(*asked, "--mode", "closed")
    as_json = printed(*asked, "--mode", "closed", "--json")
    assert max(map(len, out.splitlines())) <= 80
    lines = [" ".join(words.split()) for words in out.splitlines()]
    made = json.loads(as_json)["candidates"]
    late = " ".join(seconds(each["late_ms"] / 1_000) for each in made)
    assert f"later by {late}" in lines
    unsent = " ".join(str(each["unsent_requests"]) for each in made)
    assert f"not sent {unsent}" in lines
    assert "later by" not in printed(*asked)


def test_whatif_prints_one_thing_at_a_time(usage: str, candidates: Path, printed: Callable[..., str]) -> None:
    """With - as a file, standard output holds that document and nothing else."""
    out = printed("whatif", usage, "--candidates", candidates, "--json")
    assert len(json.loads(out)["candidates"]) == 7
    out = printed("whatif", usage, "--candidates", candidates, "--csv", "-")
    assert out.startswith('"candidate",')


def test_recommend_fits_a_terminal(usage: str, tmp_path: Path, printed: Callable[..., str]) -> None:
    """Limits beside the configured ones, what would change, throttled clients; a command is one line, to be copied."""
    now = tmp_path / "now.yaml"
    rules = [
        {"user": "alice", "client-id": "app1", "producer_byte_rate": 20_000},
        {"user": "bob", "producer_byte_rate": 9_000},
    ]
    now.write_text(yaml.safe_dump({"quotas": rules}), encoding="utf-8")
    out = printed("recommend", usage, "--short-log", "--quotas", now)
    lines = out.splitlines()
    commands = [line for line in lines if line.startswith("kafka-configs.sh ")]
    assert len(commands) == 3
    assert max(len(line) for line in lines if line not in commands) <= 80
    for words in (
        "The log covers 1 min ",
        "in 1 of the 168 hours",
        "less than a day",
        "0 of 186 requests (0 %)",
        "What would change",
        "~ producer_byte_rate 9000 -> ",
        "alice / app1",
        "none of which was run",
        "Nothing was applied.",
    ):
        assert words in out, words
    assert "\u202e" not in out


def test_recommend_writes_files(usage: str, tmp_path: Path, printed: Callable[..., str]) -> None:
    """A page, a table, a document, a script and manifests, all at once, beside what is shown."""
    files = {name: tmp_path / f"out.{name}" for name in ("html", "csv", "json-file", "commands", "strimzi")}
    options = [each for name, file in files.items() for each in (f"--{name}", file)]
    out = printed(
        "recommend",
        usage,
        "--short-log",
        *options,
        "--key",
        "producer_byte_rate",
        "--floor",
        "producer_byte_rate=77000",
    )
    assert "3 limits" in out
    assert "77 kB/s" in out
    assert all(file.stat().st_size > 100 for file in files.values())
    assert "producerByteRate: 77000" in files["strimzi"].read_text(encoding="utf-8")
    assert "producer_byte_rate=77000" in files["commands"].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ([], ["the history covers 1 min, with requests in 1 hour: less than a day", "--short-log"]),
        (["--short-log", "--html", "missing/page.html"], ["No such file or directory"]),
    ],
    ids=["short log", "no folder"]
)  # fmt: skip
def test_recommend_fails(options: list[str], messages: list[str], usage: str, run: Run) -> None:
    """With one line that says what to do, and exit code 1; nothing is printed."""
    code, out, err = run("recommend", usage, *options)
    assert (code, out) == (1, "")
    assert all(message in err for message in messages)


def test_progress_is_shown_on_a_terminal(usage: str) -> None:
    """A bar of buckets, which is gone at the end."""
    ours, theirs = pty.openpty()
    command: list[str | Path] = [
        QUOTASCOPE,
        "recommend",
        usage,
        "--short-log",
        "--json",
    ]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, check=True, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert json.loads(done.stdout)["recommended"]
    assert "searching" in shown
