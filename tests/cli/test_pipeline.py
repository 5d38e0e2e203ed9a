"""The commands of the pipeline as docs/whatif.md has them, on the log of a real broker."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CAPTURE = ROOT / "tests" / "pipeline" / "captures" / "kafka-4.3.1-request.log.gz"


def blocks(page: Path) -> list[str]:
    """The commands of a page that run as they stand."""
    return re.findall(r"^```bash\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def bash(script: str, folder: Path) -> str:
    """What a script prints; it must not fail."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the documented commands have run, and what they printed."""
    folder = tmp_path_factory.mktemp("tried")
    (folder / "tests").symlink_to(ROOT / "tests")
    (script,) = blocks(ROOT / "docs" / "whatif.md")
    return folder, bash(script, folder)


def test_documented_commands_run_as_they_stand(tried: tuple[Path, str]) -> None:
    """From the log to a decision: what they print and write is what the page promises."""
    folder, reported = tried
    assert "5,403 lines: 5,395 requests added, 8 second lines" in reported
    assert "app1 may do twice as much" in reported
    for page in ("whatif.html", "recommend.html"):
        assert (folder / page).read_text(encoding="utf-8").startswith("<!doctype html>")
    with (folder / "whatif.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["candidate"] for row in rows} >= {"as it was", "each user producer_byte_rate=20000"}


def test_candidate_of_twice_as_much_frees_the_client(tried: tuple[Path, str]) -> None:
    """The capture's throttled client is not throttled by its byte rate under twice the limit."""
    with (tried[0] / "whatif.csv").open(encoding="utf-8", newline="") as file:
        muted = {
            row["candidate"]: int(row["muted_ms"])
            for row in csv.DictReader(file)
            if (row["user"], row["client_id"], row["quota_type"]) == ("alice", "app1", "produce")
        }  # fmt: skip
    assert muted["as it was"] > 5_000
    assert muted["app1 may do twice as much"] == 0


@pytest.mark.slow
def test_recommended_limits_hit_no_one_longer_than_wanted(tried: tuple[Path, str]) -> None:
    """They were looked for without the configured quotas, so that nothing else decides."""
    reported = json.loads(
        bash(
            "quotascope recommend usage --short-log --share 1 --windows 11x1 --controller-windows 11x1 --json", tried[0]
        )
    )
    assert {each["user"] for each in reported["recommended"]} == {"ANONYMOUS", "alice", "bob", "carol", "svc:team a"}
    assert all(hit["share"] <= 0.01 for hit in reported["hits"])
    assert all(each["limit"] >= each["lowest"] for each in reported["recommended"])
    script = (tried[0] / "set-quotas.sh").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if "kafka-configs.sh -" in line] == reported["commands"]


@pytest.mark.slow
def test_reading_a_log_again_adds_nothing(tried: tuple[Path, str]) -> None:
    """Every line is known before."""
    reported = bash(f"quotascope ingest {CAPTURE} --broker 1 --into usage", tried[0])
    assert ": 0 requests added" in reported
    assert "5,395 known before" in reported


@pytest.mark.slow
def test_broken_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """What could be read counts, the file is named, and the exit code is 1."""
    (tmp_path / "cut.log.gz").write_bytes(CAPTURE.read_bytes()[:50_000])
    done = subprocess.run(
        [BIN / "quotascope", "ingest", "cut.log.gz", "--into", "usage"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "requests added" in done.stdout
    assert "cut.log.gz" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_empty_log_makes_no_history(tmp_path: Path) -> None:
    """Nothing to read and nothing to replay are failures that say so, and leave nothing behind."""
    (tmp_path / "empty.log").touch()
    done = subprocess.run(
        [BIN / "quotascope", "ingest", "empty.log", "--into", "usage"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "0 lines: 0 requests added" in done.stdout
    assert "empty.log is empty: give the log of kafka.request.logger" in done.stderr
    assert not (tmp_path / "usage").exists()
    done = subprocess.run(
        [BIN / "quotascope", "recommend", "usage"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "usage: there is no such folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_what_is_no_request_log_is_called_so(tmp_path: Path) -> None:
    """Where all lines go to quarantine, now or before, the likely mistake is named; one request among them is enough to say nothing."""
    (tmp_path / "server.log").write_text("[2026-11-21 09:02:00,655] INFO started\n")
    for _ in range(2):
        done = subprocess.run(
            [BIN / "quotascope", "ingest", "server.log", "--into", "usage"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "server.log seems to hold the log of another logger" in done.stderr
        assert "give the log of kafka.request.logger at DEBUG" in done.stderr
    script = f"(cat server.log; gzip -dc {CAPTURE} | sed -n 1p) | quotascope ingest - --into usage"
    assert "1 requests added" in bash(script, tmp_path)


@pytest.mark.parametrize("command", ["whatif usage --candidates candidates.yaml", "recommend usage"])
def test_outputs_that_cannot_be_written_are_reported_first(tmp_path: Path, command: str) -> None:
    """Before anything is read: here there is not even a history."""
    arguments = [*command.split(), "--html", "no/page.html"]
    done = subprocess.run([BIN / "quotascope", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no/page.html cannot be written: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
