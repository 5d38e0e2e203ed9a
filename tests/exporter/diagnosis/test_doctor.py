"""The checks of whole configurations; tests/cli/transcripts/doctor*.txt have more of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs
from tests.exporter.limits.test_admin import ScriptedAdmin

from quotascope.clients.errors import LibraryMissing
from quotascope.exporter.config import Config, KafkaConfig
from quotascope.exporter.diagnosis import Catalog, Finding
from quotascope.exporter.diagnosis.doctor import Evidence, Look, checks_of, examine
from quotascope.exporter.errors import SourceDenied

SERVER = {"address": "127.0.0.1", "port": 0}
KAFKA = {"bootstrap_servers": "a:1"}
FINE = Catalog.RULES_DECIDE.found()


async def examined(admin: Any, **given: Any) -> dict[str, list[str]]:
    """The codes of the findings, by check; ``admin`` opens the Admin API."""
    evidence = Evidence(Config.model_validate({"server": SERVER, **given}), admin)
    found: dict[str, list[str]] = {}
    for finding in await examine(checks_of(evidence, {}), 60):
        found.setdefault(finding.check, []).append(finding.code)
    await evidence.close()
    return found


def missing(_: KafkaConfig) -> ScriptedAdmin:
    """The library is not installed."""
    raise LibraryMissing("kafka-python")


def look(*raised: Exception) -> Look:
    """A check that finds one thing, or raises."""

    async def made() -> Iterable[Finding]:
        for error in raised:
            raise error
        return [FINE]

    return made


async def test_found_nodes_are_looked_at_as_well(tmp_path: Path) -> None:
    """Those that a file names are read; a library that is missing keeps no other check from running."""
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps([{"targets": ["127.0.0.1:1"]}]))
    discovery = {"file_sd": {"files": [str(file)], "url": "https://{target}/jolokia"}}
    found = await examined(missing, discovery=discovery, kafka=KAFKA)
    assert found["kafka"] == ["check_failed"]
    assert (found["discovery"], found["agents"]) == (["discovery_works"], ["source_unreadable"])
    assert "permissions" not in found
    # a missing file, with which the exporter starts, is an error of the doctor
    file.unlink()
    found = await examined(missing, discovery=discovery)
    assert (found["discovery"], found["agents"]) == (["discovery_failed"], ["no_source_found"])


async def test_discovery_that_cannot_ask() -> None:
    """What depends on it fails for the same reason, the rest is checked."""
    discovery = {"kafka": {"url": "http://{host}:1/jolokia"}}
    found = await examined(missing, discovery=discovery, kafka=KAFKA)
    for check in ("kafka", "discovery", "agents", "quotas"):
        assert found[check] == ["check_failed"]
    assert found["listening"] == ["port_any"]
    assert "clocks" not in found


async def test_a_push_is_tried_where_one_is_configured() -> None:
    """Nothing listens on that port."""
    otlp = {"endpoint": "http://127.0.0.1:1"}
    found = await examined(lambda _: ScriptedAdmin(), kafka=KAFKA, otlp=otlp)
    assert found["kafka"] == ["kafka_answers"]
    assert found["otlp"] == ["push_unreachable"]
    assert (await examined(missing))["kafka"] == ["no_admin_api"]


async def test_the_cluster_is_asked_once() -> None:
    """However many checks look at its answers; its connection is closed at the end."""
    opened: list[ScriptedAdmin] = []

    def admin(_: KafkaConfig) -> ScriptedAdmin:
        opened.append(ScriptedAdmin())
        return opened[-1]

    await examined(admin, kafka=KAFKA)
    assert [each.closed for each in opened] == [True]


async def test_checks_do_not_wait_for_each_other() -> None:
    """They run side by side; findings keep their order, and the progress shows which checks are left."""
    released = asyncio.Event()
    left: list[list[str]] = []

    async def first() -> Iterable[Finding]:
        await released.wait()
        return [Catalog.NO_SOURCE.found()]

    async def second() -> Iterable[Finding]:
        released.set()
        return [FINE]

    checks = {"first": first, "second": second}
    found = await examine(checks, 60, lambda names: left.append(list(names)))
    assert [each.code for each in found] == ["no_source", "rules_decide"]
    assert left[0] == ["first", "second"]
    assert left[-1] == []


async def test_a_check_that_hangs_or_raises_breaks_no_other() -> None:
    """An error of ours is an answer; anything else is a defect, without a traceback."""

    async def hang() -> Iterable[Finding]:
        await asyncio.Event().wait()
        return ()

    with capture_logs():
        checks = {"slow": hang, "a": look(SourceDenied("no\nway")), "b": look(KeyError("x")), "c": look()}
        slow, denied, defect, fine = await examine(checks, 0.05)
    assert slow.text == "The check slow did not end within 0.05 s."
    assert (slow.check, denied.check, defect.check) == ("slow", "a", "b")
    assert denied.text == "no way"
    assert defect.text == "The check b itself failed: KeyError: 'x'"
    assert fine == FINE
