"""`quotascope mcp` beside `quotascope serve`, as processes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.conftest import Serve
from tests.commands import COMMAND
from tests.exporter.mcp.asking import answer_of, assistant

CAPTURE = "combined/throttled.jolokia2.json"


@contextmanager
def serving(source: str) -> Iterator[str]:
    """The address of an exporter of this source, after its first collection."""
    command = (COMMAND, "serve", "--web.listen-address", "127.0.0.1:0", "--log-format", "logfmt", "--source", source)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr)
            address = next(found[1] for line in lines if (found := re.search(r"listening.*url=(\S+)", line)))
            next(line for line in lines if "ready" in line)
            yield address
        finally:
            process.kill()


@pytest.mark.slow
async def test_an_assistant_asks_an_exporter(agent: Serve) -> None:
    """The tools show throttled clients of a recorded broker, the rule of one (unknown), and the alert's runbook."""
    with serving(agent(CAPTURE).url) as address:
        async with assistant(address) as client:
            throttled = answer_of(await client.call_tool("entities", {"show": "throttled", "sort": "delay"}))
            explained = answer_of(await client.call_tool("explain", {"user": "alice", "client_id": "app1"}))
            book = answer_of(await client.call_tool("runbook", {"alert": "KafkaQuotaClientThrottled"}))
    rows = throttled["answer"]["entities"]
    assert {(row["user"], row["client_id"]) for row in rows} >= {("alice", "app1"), ("bob", "")}
    assert all(row["throttle_time_seconds"] > 0 for row in rows)
    assert explained["answer"]["limits_known"] is explained["exporter"]["limits_known"] is False
    assert [row["limit_state"] for row in explained["answer"]["entities"]] == ["unknown"] * explained["answer"]["total"]
    assert "## Diagnosis" in book["answer"]["text"]
    assert book["altered_texts"] == 0
