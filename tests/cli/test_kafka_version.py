"""Which release of Kafka `whatif` and `recommend` follow: three requests of a real broker, 3 MB under a limit of 1 B/s."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
    return subprocess.run(
        [BIN / "quotascope", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def usage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the history of a 4.4.0 broker that throttled for 2147483647 ms, and the limit that did so."""
    folder = tmp_path_factory.mktemp("month")
    log = str(CAPTURES / "kafka-4.4.0-month-request.log")
    quotascope(folder, "ingest", log, "--into", "usage").check_returncode()
    (folder / "candidates.yaml").write_text(CANDIDATES)
    return folder


def told(usage: Path, *options: str) -> dict[str, Any]:
    """What what-if says."""
    done = quotascope(usage, "whatif", "usage", "--candidates", "candidates.yaml", "--json", "-", *options)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("mode", ["open", "closed"])
def test_the_newest_release_is_followed(usage: Path, mode: str) -> None:
    """The longest throttle is the one that the broker wrote into its log, and the result names the release."""
    found = told(usage, "--mode", mode)
    assert found["kafka"] == {"version": "4.4", "known_by": "default"}
    (row,) = found["results"]
    assert row["throttled_requests"] > 0
    if mode == "open":
        assert row["longest_throttle_ms"] == 2_147_483_647


def test_another_release_on_request(usage: Path) -> None:
    """Up to 4.3 the third throttle wraps around to none."""
    found = told(usage, "--kafka-version", "4.3.1")
    assert found["kafka"] == {"version": "4.3", "known_by": "option"}
    (row,) = found["results"]
    assert row["throttled_requests"] == 2
    assert "follow Kafka 4.3, as --kafka-version says" in " ".join(found["notes"])


def test_terminal_and_page_name_the_release(usage: Path) -> None:
    """So do the table and the pages of both commands."""
    done = quotascope(usage, "whatif", "usage", "--candidates", "candidates.yaml")
    assert "follow Kafka 4.4, the newest" in " ".join(done.stdout.split())
    options = ("--html", "-", "--kafka-version", "4.3")
    for command in (("whatif", "usage", "--candidates", "candidates.yaml"), ("recommend", "usage", "--short-log")):  # fmt: skip
        done = quotascope(usage, *command, *options)
        assert "follow Kafka 4.3, as --kafka-version says" in done.stdout


@pytest.mark.parametrize("text", ["latest", "4", "4.4\n4.3"])
def test_no_release(usage: Path, text: str) -> None:
    """What is no version is refused with an example."""
    done = quotascope(usage, "whatif", "usage", "--candidates", "candidates.yaml", "--kafka-version", text)  # fmt: skip
    assert done.returncode == 2
    assert "Invalid value for --kafka-version" in done.stderr
    assert "Traceback" not in done.stderr
