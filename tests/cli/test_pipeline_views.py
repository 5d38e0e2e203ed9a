"""Terminal output of `quotascope whatif`, `recommend` and `blame`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import Run
from tests.pipeline.blame.logs import row as request
from tests.pipeline.blame.logs import saturated, stored
from tests.pipeline.recommend.rows import make_folder, mutated, produced
from tests.pipeline.report.results import HOSTILE

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.words import percent, seconds
from quotascope.pipeline.rates import rate

Printed = Callable[..., str]
Asked = Callable[..., tuple[object, ...]]


@pytest.fixture
def printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> Printed:
    """Run a command, and return its standard output. It must succeed and print nothing else."""
    monkeypatch.setenv("COLUMNS", "80")

    def succeed(*arguments: object) -> str:
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        return out

    return succeed


@pytest.fixture(scope="module")
def usage(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a minute of three users, of whom one has a hostile name and one creates topics."""
    rows = [produced(time, 40_000, user=user) for user in ("alice", "bob", HOSTILE) for time in range(0, 60_000, 1_000)]
    rows += [mutated(time, 30, user="alice") for time in range(0, 60_000, 10_000)]
    return make_folder(tmp_path_factory.mktemp("views") / "usage", rows)


@pytest.fixture
def whatif(usage: str, tmp_path: Path) -> Asked:
    """The command for these candidates of the history."""

    def command(kind: str, *candidates: object) -> tuple[object, ...]:
        file = tmp_path / "candidates.yaml"
        file.write_text(yaml.safe_dump({kind: [*candidates]}), encoding="utf-8")
        return "whatif", usage, "--candidates", file

    return command


def each_user(*limits: int) -> dict[str, object]:
    """Return a grid of candidates with one limit for each user."""
    return {"user": "<default>", "key": "producer_byte_rate", "values": [*limits]}


SEVEN = each_user(*range(10_000, 80_000, 10_000))
"""More than the terminal has room for."""


def test_whatif_fits_a_terminal(whatif: Asked, printed: Printed) -> None:
    """
    The table has candidates as rows and clients as columns.

    Rows and columns without room are counted, and names cannot move the cursor.
    """
    out = printed(*whatif("grid", SEVEN))
    assert max(map(len, out.splitlines())) <= 80
    for words in ("Candidates, open loop", "3 of 3", "3 clients, 7 candidates"):
        assert words in out
    for words in ("-: unlimited", "\x1b[2J", "\u202e"):
        assert words not in out


@pytest.mark.parametrize("by", ["client", "api", "topic"])
def test_blame_fits_a_terminal(by: str, tmp_path: Path, printed: Printed) -> None:
    """Culprits, also hostile names, are rows, victims columns, the rest a row; brokers beyond ten are counted."""
    brokers = [{**request, "broker": f"b{number}"} for number in range(12) for request in saturated("erin", seconds=1)]
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


def test_waits_of_minutes_fit_a_terminal(tmp_path: Path, printed: Printed) -> None:
    """Waits of minutes leave no column out, so that a row adds up."""
    waits = [request(1_000_000.0 + n, 690_000.0, 1, f"v{n}") for n in range(5)]
    folder = stored(tmp_path, [request(300_000.0, 0.1, 700_000, "dana-of-analytics", client_id="notebook"), *waits])
    lines = printed("blame", folder, "--io-threads", 1).splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = (line for line in lines if "culprit" in line)
    assert head.split() == ["culprit", "caused", "share", "#1", "#2", "#3", "others"]
    assert "57.5 min" in " ".join(lines)


def test_names_in_brackets_are_no_markup(tmp_path: Path, printed: Printed) -> None:
    """A client-id that closes a style of Rich ends no report, and one that begins a style is shown in full."""
    for name in ("[/red]dana", "[red]dana"):
        out = printed("blame", stored(tmp_path / name[1:4].strip("/"), saturated(name)), "--io-threads", 1)
        assert f"#1 {name} / notebook" in out


def test_blame_of_a_period(tmp_path: Path, printed: Printed) -> None:
    """Times are in the zone that the output names."""
    folder = stored(tmp_path, saturated())
    berlin = ("--time-zone", "Europe/Berlin", "--begin", "2026-11-23T01:00:30", "--end", "2026-11-23T01:00:50")
    out = " ".join(printed("blame", folder, "--io-threads", 1, *berlin).split())
    assert "2026-11-23 01:00:30 CET to 2026-11-23 01:00:50 CET Between 01:00:30 and 01:00:40 dana" in out
    assert json.loads(printed("blame", folder, *berlin, "--json"))["begin_us"] == 1_795_392_030_000_000


def test_whatif_shows_unlimited_and_unthrottled_apart(whatif: Asked, printed: Printed) -> None:
    """A limit that never throttles has 0 s; without a limit there is no figure, and unmeasured ones are null."""
    command = whatif(
        "candidates",
        *(
            {"name": name, "quotas": [{"user": user, "producer_byte_rate": limit}]}
            for name, user, limit in (("tight", "alice", 10_000), ("wide", "alice", 10**9), ("bob", "bob", 10_000))
        ),
    )
    out = printed(*command)
    rows = {line.split()[0]: line.split() for line in out.splitlines() if "app1" in line}
    assert rows["alice"][-3:] == ["0", "s", "-"]
    assert rows["bob"][-5:-2] == ["produce", "-", "-"]
    assert "-: unlimited under this candidate" in out
    document = json.loads(printed(*command, "--json"))
    for row in (*document["candidates"], *document["results"]):
        assert row["late_ms"] is row["unsent_requests"] is None
        assert row["muted_ms"] is not None
    closed = json.loads(printed(*command, "--mode", "closed", "--json"))
    assert all(row["late_ms"] is not None for row in closed["results"])
    for mode, cells in (("open", {""}), ("closed", {"0"})):
        records = list(csv.DictReader(printed(*command, "--mode", mode, "--csv", "-").splitlines()))
        assert {row["unsent_bytes"] for row in records} == cells
        assert all(row["muted_ms"].isdigit() for row in records)


def test_whatif_shows_delays(whatif: Asked, printed: Printed) -> None:
    """Closed loop has the delay of requests by each candidate, and the number of requests that it keeps back."""
    command = whatif("grid", each_user(400, 10_000))
    lines = printed(*command, "--mode", "closed").splitlines()
    assert max(map(len, lines)) <= 80
    words = [" ".join(line.split()) for line in lines]
    candidates = json.loads(printed(*command, "--mode", "closed", "--json"))["candidates"]
    assert f"later by {' '.join(seconds(candidate['late_ms'] / 1_000) for candidate in candidates)}" in words
    assert f"not sent {' '.join(str(candidate['unsent_requests']) for candidate in candidates)}" in words
    assert "later by" not in printed(*command)


@pytest.mark.parametrize("width", [60, 80])
def test_recommend_fits_a_terminal(
    usage: str, tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """The terminal has limits, changes and throttled clients, cuts no figure, and has commands on one line."""
    monkeypatch.setenv("COLUMNS", str(width))
    configured = tmp_path / "now.yaml"
    rules = [
        {"user": "alice", "client-id": "app1", "producer_byte_rate": 20_000},
        {"user": "bob", "producer_byte_rate": 9_000},
    ]
    configured.write_text(yaml.safe_dump({"quotas": rules}), encoding="utf-8")
    command = ("recommend", usage, "--short-log", "--quotas", configured)
    out = printed(*command)
    lines = out.splitlines()
    commands = [line for line in lines if line.startswith("kafka-configs.sh ")]
    assert len(commands) == 3
    assert max(len(line) for line in lines if line not in commands) <= width
    document = json.loads(printed(*command, "--json"))
    figures = [rate(QuotaType[limit["quota_type"].upper()], limit["limit"]) for limit in document["recommended"]]
    figures += [seconds(hit["longest_ms"] / 1_000) for hit in document["hits"]]
    figures += [percent(hit["share"]) for hit in document["hits"]]
    assert len(figures) > 5
    assert [figure for figure in figures if not any(figure in line for line in lines)] == []
    assert any(line.split()[:2] == ["entity", "quota"] for line in lines) == (width == 80)
    sentences = " ".join(out.split())
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
        assert words in sentences, words
    assert "\u202e" not in out
    assert "…" not in out


def test_recommend_writes_files(usage: str, tmp_path: Path, printed: Printed) -> None:
    """`recommend` writes a page, a table, a document, a script and manifests at once, beside its output."""
    files = {name: tmp_path / f"out.{name}" for name in ("html", "csv", "json-file", "commands", "strimzi")}
    options = [word for name, file in files.items() for word in (f"--{name}", file)]
    floor = ("--key", "producer_byte_rate", "--floor", "producer_byte_rate=77000")
    out = printed("recommend", usage, "--short-log", *options, *floor)
    assert "3 limits" in out
    assert "77 kB/s" in out
    assert all(file.stat().st_size > 100 for file in files.values())
    assert "producerByteRate: 77000" in files["strimzi"].read_text(encoding="utf-8")
    assert "producer_byte_rate=77000" in files["commands"].read_text(encoding="utf-8")


def test_recommend_needs_a_day(usage: str, run: Run) -> None:
    """A history of less than a day ends with exit code 1 and one line that says what to do."""
    code, out, err = run("recommend", usage)
    assert (code, out) == (1, "")
    assert "the history covers 1 min, with requests in 1 hour: less than a day" in err
    assert "--short-log" in err


def test_progress_is_shown_on_a_terminal(usage: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar of buckets grows beside the output."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, errors = run("recommend", usage, "--short-log", "--json")
    assert json.loads(out)["recommended"]
    assert "searching" in errors
