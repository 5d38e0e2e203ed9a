"""Kinds of request logs: results of `quotascope ingest`, and its messages about kinds that it refuses."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from tests.cli.conftest import Run

from quotascope.pipeline.ingest import IngestTables

CASES = Path(__file__).parents[1] / "pipeline" / "cases"
FIRST_MS = 1_789_999_200_037
"""2026-09-21 14:00:00.037 UTC, when the first request of most logs was done."""


@pytest.mark.parametrize(
    ("name", "expected", "says"),
    [
        # Strimzi's default of Kafka 4 has no milliseconds
        ("12-strimzi-no-milliseconds.log", {"added": 40, "first": FIRST_MS - 37}, (
            "times of whole seconds only.*HH:mm:ss,SSS"
        )),
        # an export with the time of arrival in front
        ("14-late-shipper-time.log", {"added": 40, "first": FIRST_MS}, "40 requests added"),
        ("15-docker-json-file.log", {"added": 40, "first": FIRST_MS}, "40 requests added"),
        ("19-oldest-texts.log", {"added": 0, "quarantined_by_reason": {"layout before 2.8": 20}}, "Kafka 0.8 to 0.10"),
        # JSON over many lines: repeated short lines are not known from before
        ("23-pretty-printed.log", {"known_before": 0, "added": 0}, "goes on in the next lines"),
        ("44-crlf-and-bom.log", {"added": 40, "first": FIRST_MS}, "40 requests added"),
        ("46-syslog-5424.log", {"added": 40, "first": FIRST_MS}, "40 requests added"),
        ("48-cri-whole-lines.log", {"added": 40, "first": FIRST_MS}, "40 requests added"),
        ("50-kafka-apis-trace.log", {"quarantined_by_reason": {"not a request": 10}}, "another logger"),
    ],
)  # fmt: skip
def test_kinds(run: Run, tmp_path: Path, name: str, expected: dict[str, Any], says: str) -> None:
    """A log of a known kind is read with times to the millisecond; a log of another kind is named, with exit code 1."""
    arguments = ("ingest", CASES / name, "--broker", 1, "--into")
    code, out, err = run(*arguments, tmp_path / "usage", "--json")
    report = json.loads(out)
    if "first" in expected:
        times = IngestTables.create(str(tmp_path / "usage")).requests.read(["completed"])["completed"]
        assert pc.min(times).as_py() == expected.pop("first")
    assert {name: report[name] for name in expected} == expected
    assert code == (0 if report["added"] else 1)
    _, text, error = run(*arguments, tmp_path / "again")
    assert re.search(says, text + error + err), text + error


def test_brokers_on_one_host(run: Run, tmp_path: Path) -> None:
    """Three ports of one host need a pattern of brokers; with it, a limit that each broker keeps throttles nothing."""
    logs, into = CASES / "20-brokers-on-one-host", tmp_path / "usage"
    code, out, err = run("ingest", logs, "--into", into)
    assert (code, out) == (1, "")
    assert not (into / "history").exists()
    for port in (9091, 9092, 9093):
        assert f"10.0.0.1:{port} (listener CLIENT, 40 requests, {logs}/b{port - 9090}/kafka-request.log)" in err
    (pattern,) = re.findall(r"--broker-pattern '(.*?)'", err)
    assert run("ingest", logs, "--broker-pattern", pattern, "--into", into)[0] == 0
    quotas = [{"user": "etl", "producer_byte_rate": 60_000}]
    (tmp_path / "c.yaml").write_text(json.dumps({"candidates": [{"name": "low", "quotas": quotas}]}))
    _, out, _ = run("whatif", into, "--candidates", tmp_path / "c.yaml", "--json")
    assert [row["throttled_requests"] for row in json.loads(out)["results"]] == [0]


def test_a_name_that_stands_for_two_brokers(run: Run, tmp_path: Path) -> None:
    """Three ports of one listener at a time are three brokers and are refused under one name, whatever the options."""
    code, _, err = run("ingest", CASES / "20-brokers-on-one-host", "--broker", 1, "--into", tmp_path / "usage")
    assert code == 1
    assert "listener CLIENT of broker 1 has the addresses 10.0.0.1:909" in err


def test_lines_that_are_all_lost(run: Run, tmp_path: Path) -> None:
    """A log whose fetches are all cut ends with exit code 1 and a message, though other requests were read."""
    fetch = (
        (CASES / "44-crlf-and-bom.log").read_bytes().splitlines()[3].replace(b'"requestApiKey":0', b'"requestApiKey":1')
    )
    produce = (CASES / "44-crlf-and-bom.log").read_bytes().splitlines()[1]
    (tmp_path / "a.log").write_bytes(b"\n".join([produce, fetch[:400], fetch[:500]]))
    code, out, err = run("ingest", tmp_path / "a.log", "--broker", 1, "--into", tmp_path / "usage")
    assert code == 1
    assert "1 requests added" in out
    assert "a.log: none of its 2 lines of FETCH could be read, so that their usage is unknown, not 0" in err
