"""The checks of whole configurations; tests/cli/transcripts/doctor*.txt have more of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.exporter.limits.test_admin import ScriptedAdmin

from quotascope.clients.errors import LibraryMissing
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.doctor import Evidence, Result, Verdict, checks_of, examine

SERVER = {"address": "127.0.0.1", "port": 0}
KAFKA = {"bootstrap_servers": "a:1"}


async def examined(admin: Any, **given: Any) -> dict[str, list[Result]]:
    """What is found, by check; ``admin`` opens the Admin API."""
    config = Config.model_validate({"server": SERVER, **given})
    evidence = Evidence(config, admin)
    results: dict[str, list[Result]] = {}
    for result in await examine(checks_of(evidence, {}), 60):
        results.setdefault(result.check, []).append(result)
    await evidence.close()
    return results


def missing(_: KafkaConfig) -> ScriptedAdmin:
    """The library is not installed."""
    raise LibraryMissing("kafka-python", "kafka")


async def test_found_nodes_are_looked_at_as_well(tmp_path: Path) -> None:
    """Those that a file names are read; a library that is missing keeps nothing else from being told."""
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps([{"targets": ["127.0.0.1:1"]}]))
    discovery = {"file_sd": {"files": [str(file)], "url": "https://{target}/jolokia"}}
    found = await examined(missing, discovery=discovery, kafka=KAFKA)
    assert "pip install" in found["kafka"][0].text
    assert found["discovery"][0].text == "Finds 1 nodes."
    assert found["agents"][0].subject == "127.0.0.1:1"
    assert found["agents"][0].verdict is Verdict.BROKEN
    assert "permissions" not in found


async def test_discovery_that_cannot_ask() -> None:
    """What depends on it is broken for the same reason, what does not is told."""
    discovery = {"kafka": {"url": "http://{host}:1/jolokia"}}
    found = await examined(missing, discovery=discovery, kafka=KAFKA)
    for check in ("kafka", "discovery", "agents", "quotas"):
        assert found[check][0].verdict is Verdict.BROKEN
    assert found["listening"][0].verdict is Verdict.FINE
    assert "clocks" not in found


async def test_a_push_is_tried_where_one_is_configured() -> None:
    """Nobody listens on that port."""
    otlp = {"endpoint": "http://127.0.0.1:1"}
    found = await examined(lambda _: ScriptedAdmin(), kafka=KAFKA, otlp=otlp)
    assert found["kafka"][0].verdict is Verdict.FINE
    assert found["otlp"][0].verdict is Verdict.BROKEN


async def test_the_cluster_is_asked_once() -> None:
    """However many checks look at its answers; its connection is closed at the end."""
    opened: list[ScriptedAdmin] = []

    def admin(_: KafkaConfig) -> ScriptedAdmin:
        opened.append(ScriptedAdmin())
        return opened[-1]

    await examined(admin, kafka=KAFKA)
    assert [each.closed for each in opened] == [True]
