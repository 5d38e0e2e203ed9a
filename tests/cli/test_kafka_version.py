"""Which release of Kafka `whatif` and `recommend` follow: three requests of a real broker, 3 MB under a limit of 1 B/s."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quotascope.pipeline.ingest import IngestOptions
from quotascope.pipeline.runs.ingest import ingest_logs

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CAPTURES = ROOT / "tests" / "pipeline" / "captures"
CANDIDATES = """
candidates:
  - name: as it was
    quotas:
      - user: alice
        client-id: heavy
        producer_byte_rate: 1
"""


def quotascope(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as it ended."""
    return subprocess.run([BIN / "quotascope", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def log_of(version: str, edit: str = "") -> str:
    """The log of a broker whose third throttle would be longer than 2147483647 ms; `edit` stands where it names its features."""
    text = (CAPTURES / f"kafka-{version}-month-request.log").read_text()
    return text.replace("metadata.version", edit) if edit else text


@pytest.fixture(scope="module")
def usage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Histories of 4.3.1, of 4.4.0, of both, and of a log that names no release; and the limit that throttled."""
    folder = tmp_path_factory.mktemp("month")
    logs = {"4.3.1": [log_of("4.3.1")], "4.4.0": [log_of("4.4.0")], "silent": [log_of("4.3.1", "other")]}
    logs["both"] = [*logs["4.4.0"], *logs["4.3.1"]]
    for name, texts in logs.items():
        (folder / f"{name}.log").write_text("".join(texts))
        ingest_logs([str(folder / f"{name}.log")], str(folder / name), IngestOptions())
    (folder / "candidates.yaml").write_text(CANDIDATES)
    return folder


def reported(usage: Path, *options: str, of: str = "4.4.0") -> dict[str, Any]:
    """What what-if says."""
    done = quotascope(usage, "whatif", of, "--candidates", "candidates.yaml", "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("version", "release", "throttled", "longest_ms"),
    [("4.3.1", "4.3", 2, 1_980_241_989), ("4.4.0", "4.4", 3, 2_147_483_647)],
)
def test_the_release_that_wrote_the_log_is_followed(
    usage: Path, version: str, release: str, throttled: int, longest_ms: int
) -> None:
    """Without any option the throttles are those that the broker wrote into its log, and the result says why."""
    found = reported(usage, of=version)
    assert found["kafka"] == {"version": release, "known_by": "log", "also_named": []}
    assert f"follow Kafka {release}, as the log says:" in " ".join(found["notes"])
    (row,) = found["results"]
    assert row["throttled_requests"] == throttled
    assert row["longest_throttle_ms"] == pytest.approx(longest_ms, rel=1e-4)


def test_a_log_of_two_releases_follows_the_newer(usage: Path) -> None:
    """It says which other one the log names; a closed loop likewise."""
    found = reported(usage, "--mode", "closed", of="both")
    assert found["kafka"] == {"version": "4.4", "known_by": "log", "also_named": ["4.3"]}
    assert "as the log says (the newest that it names; some of it is of 4.3)" in " ".join(found["notes"])


def test_the_newest_release_is_followed_where_none_is_named(usage: Path) -> None:
    """A folder that does not know, such as one of an earlier release of this program, stays readable."""
    found = reported(usage, of="silent")
    assert found["kafka"] == {"version": "4.4", "known_by": "default", "also_named": []}
    assert found["results"][0]["longest_throttle_ms"] == 2_147_483_647


def test_another_release_on_request(usage: Path) -> None:
    """Up to 4.3 the third throttle wraps around to none."""
    found = reported(usage, "--kafka-version", "4.3.1")
    assert found["kafka"] == {"version": "4.3", "known_by": "option", "also_named": []}
    (row,) = found["results"]
    assert row["throttled_requests"] == 2
    assert "follow Kafka 4.3, as --kafka-version says" in " ".join(found["notes"])


@pytest.mark.slow
def test_terminal_and_page_name_the_release(usage: Path) -> None:
    """So do the table and the pages of both commands."""
    done = quotascope(usage, "whatif", "4.4.0", "--candidates", "candidates.yaml")
    assert "follow Kafka 4.4, as the log says" in " ".join(done.stdout.split())
    whatif = ("whatif", "4.4.0", "--candidates", "candidates.yaml", "--kafka-version", "4.3")
    recommend = ("recommend", "4.3.1", "--short-log")
    for command, why in ((whatif, "--kafka-version"), (recommend, "the log")):
        done = quotascope(usage, *command, "--html", "-")
        assert f"follow Kafka 4.3, as {why} says" in done.stdout


@pytest.mark.parametrize("text", ["latest", "4", "4.4\n4.3"])
def test_no_release(usage: Path, text: str) -> None:
    """What is no version is refused with an example."""
    done = quotascope(usage, "whatif", "4.4.0", "--candidates", "candidates.yaml", "--kafka-version", text)
    assert done.returncode == 2
    assert "Invalid value for --kafka-version" in done.stderr
    assert "Traceback" not in done.stderr
