"""Request quotas that keep a target of the other clients' queue time."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.blame.logs import AGGRESSOR, logged, written
from typer.testing import CliRunner

from quotascope.cli.main import app


def protected(folder: Path, target: str, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["recommend", str(folder), "--protect", target, "--short-log", "--json", *arguments])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(written(tmp_path_factory.mktemp("usage"), logged(40)))


@pytest.mark.parametrize(
    ("target", "answer"), [("p99=2s", "held"), ("p90=20ms", "reached"), ("p99.9=50us", "unreachable")]
)
def test_a_target_is_held_or_reached_or_out_of_reach(folder: Path, target: str, answer: str) -> None:
    """A reached target limits the client that holds the thread, and no other, and has its throttled time."""
    document = protected(folder, target)
    protection = document["protection"]
    assert protection["answer"] == answer
    assert [(advice["user"], advice["quota_type"]) for advice in document["recommended"]] == (
        [(AGGRESSOR, "request")] if answer == "reached" else []
    )
    if answer == "reached":
        (wait,) = protection["waits"]
        assert wait["predicted_ms"] <= 20 < wait["logged_ms"]
        (limit,), (hit,) = document["recommended"], document["hits"]
        assert 5 < limit["limit"] == protection["request_percentage"] < 100
        assert hit["muted_ms"] > 0
        assert document["commands"]


@pytest.mark.parametrize(
    ("constant", "threads", "why"),
    [
        ({"api_key": 63}, 1, "The wait is unknown: there is no request of a broker"),
        ({}, 9, "with 9 handler threads does not explain the queue times of broker 1: its error is -9"),
    ],
)
def test_without_queue_times_that_a_queue_explains_the_answer_is_unknown(
    tmp_path: Path, constant: dict[str, Any], threads: int, why: str
) -> None:
    """No limit is recommended, no wait is shown as 0, and the page says why."""
    folder, page = Path(written(tmp_path, logged(20), **constant)), tmp_path / "page.html"
    document = protected(folder, "p99=20ms", "--io-threads", f"{threads}", "--html", str(page))
    assert (document["protection"]["answer"], document["protection"]["waits"], document["recommended"]) == (
        "unknown",
        [],
        [],
    )
    text = page.read_text(encoding="utf-8")
    assert re.findall("<h2>(.*?)</h2>", text) == ["Commands, none of which was run"]
    assert why in text


def test_what_the_log_keeps_needs_no_explanation(folder: Path) -> None:
    """A queue with too many threads explains no wait, but all logged ones are below the target."""
    assert protected(folder, "p99=2s", "--io-threads", "9")["protection"]["answer"] == "held"


def test_one_broker_beyond_the_target_holds_nothing(tmp_path: Path) -> None:
    """A broker without queue times, whose waits may be far beyond the target, makes the answer unknown."""
    first_broker, second_broker = (logged(20).append_column("broker", pa.array([name] * 1_600)) for name in "12")
    both = pa.concat_tables([first_broker, second_broker.drop_columns(["queue_time_ms"])], promote_options="default")
    folder = Path(written(tmp_path, both))
    assert protected(folder, "p99=2s")["protection"]["answer"] == "unknown"


def test_a_floor_above_all_levels_is_tried_alone(folder: Path) -> None:
    """A floor above all levels is the only limit that is tried, as none below it may be recommended."""
    protection = protected(folder, "p90=20ms", "--floor", "request_percentage=5000")["protection"]
    assert (protection["answer"], protection["request_percentage"]) == ("unreachable", 5000)


@pytest.mark.parametrize("text", ["p99", "99=20ms", "p100=1s", "p99=0ms", "p0=5ms", "p99=20", "p99=20ms\n"])
def test_a_target_is_a_percentile_and_a_time(tmp_path: Path, text: str) -> None:
    """A wrong target is reported in one line, with an example."""
    done = CliRunner().invoke(app, ["recommend", str(tmp_path), "--protect", text])
    assert done.exit_code != 0
    assert "such as p99=20ms" in str(done.exception) + done.output
