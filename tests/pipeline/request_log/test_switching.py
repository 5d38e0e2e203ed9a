"""Kafka's own command switches the request log of a running broker as docs/guides/request-log.md says."""

from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.tools import run_tool
from tests.pipeline.log_lines import values

from quotascope.pipeline.request_log.parsing import LogSource, parse_lines

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "request-log.md"


def switch(kafka: Cluster, level: str) -> None:
    arguments = f"--entity-type broker-loggers --entity-name 1 --alter --add-config kafka.request.logger={level}"
    reported = PAGE.read_text().replace("\\\n", "")
    assert " ".join(f"kafka-configs.sh --bootstrap-server broker-1:9092 {arguments}".split()) in " ".join(
        reported.split()
    )
    run_tool(kafka, "kafka-configs.sh", *arguments.split())


def requests(log: Path) -> list[str]:
    """Return the clients of the requests in a broker's log, which has a pattern of its own."""
    lines = [text for text in log.read_bytes().splitlines() if b"Completed request:" in text]
    result = parse_lines(lines, range(len(lines)), LogSource(file="kafka.log"))
    assert len(result.quarantine) == 0
    return values(result.requests, "client_id")


def test_on_and_off(kafka: Cluster) -> None:
    """The log has lines from when it is switched on until it is off, and each is a request."""
    log = kafka.nodes[1].log
    requests_before = len(requests(log))  # other tests switch it, too
    run_tool(kafka, "kafka-topics.sh", "--list")
    assert len(requests(log)) == requests_before
    switch(kafka, "DEBUG")
    try:
        run_tool(kafka, "kafka-topics.sh", "--list")
    finally:
        switch(kafka, "WARN")
    reported = requests(log)
    assert any("adminclient" in client for client in reported[requests_before:])
    run_tool(kafka, "kafka-topics.sh", "--list")
    assert requests(log) == reported
