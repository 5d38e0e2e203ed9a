"""Checks of whole configurations (tests/cli/transcripts/doctor*.txt have more), and of the Admin API's answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.exporter.limits.test_admin import ScriptedAdmin

from quotascope.clients.errors import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    CredentialsUnavailable,
    LibraryMissing,
    PermissionMissing,
    TlsFailed,
)
from quotascope.clients.quota_admin import ClusterDescription, Node
from quotascope.exporter.config import CollectionConfig, Config, KafkaConfig
from quotascope.exporter.diagnosis import Catalog, Finding
from quotascope.exporter.diagnosis.cluster import ClusterAnswers, ask, permissions, reachability, windows
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
    raise LibraryMissing("kafka-python")


def look(*raised: Exception) -> Look:
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


NODE = Node(node_id=1, host="a", port=1)


def described(release: str) -> ClusterAnswers:
    reported = ClusterDescription(cluster_id="abc", nodes=(NODE,), release=release)
    return ClusterAnswers(description=reported)


def codes(findings: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("release", "text", "count"),
    [
        ("4.3", "Cluster abc answers: 1 brokers, Kafka 4.3 or newer.", 1),
        ("", "Cluster abc answers: 1 brokers.", 1),
        ("2.6", "Cluster abc answers: 1 brokers, Kafka 2.6 or newer.", 2),
        ("2.10", "Cluster abc answers: 1 brokers, Kafka 2.10 or newer.", 1),
    ],
)
def test_a_cluster_that_answers(release: str, text: str, count: int) -> None:
    """It reports who it is; one that is too old for some quotas is worth a look."""
    results = list(reachability(described(release)))
    assert results[0].text == text
    assert codes(results) == ["kafka_answers", "kafka_too_old"][:count]


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (AdminUnreachable(["a:1"], "no"), "bootstrap_servers"),
        (AdminTimeout("connecting", 1), "bootstrap_servers"),
        (TlsFailed(["a:1"], "no"), "kafka.tls"),
        (AuthenticationFailed("me", "PLAIN", "no"), "kafka.sasl"),
        (CredentialsUnavailable("Kerberos", "no"), "Kafka itself was reached"),
    ],
)
def test_a_cluster_that_does_not(error: ClientError, advice: str) -> None:
    """The reason, and which setting to look at; nothing is said of permissions then."""
    answers = ClusterAnswers(description=error)
    (result,) = reachability(answers)
    assert (result.code, result.text) == ("kafka_unreachable", str(error))
    assert advice in result.advice
    assert list(permissions(answers)) == []
    assert answers.limits(0.0) is None


def test_a_library_that_is_missing_says_what_to_install() -> None:
    """No network is to blame for it."""
    (result,) = reachability(ClusterAnswers(description=LibraryMissing("kafka-python")))
    assert "pip install" in result.text
    assert result.advice == ""


def test_each_request_is_made_and_judged() -> None:
    """One that is not allowed does not keep the others from being tried."""
    answers = ask(ScriptedAdmin())
    assert codes(permissions(answers)) == ["permission_granted"] * 3
    limits = answers.limits(7.0)
    assert limits is not None
    assert (limits.read_at, [*limits.nodes]) == (7.0, ["1", "2"])


def test_missing_permissions_name_the_grant() -> None:
    """The command that mends it stands beside what is missing without it."""
    missing = PermissionMissing(request="DescribeClientQuotas", operation="DescribeConfigs", username="me")
    answers = ClusterAnswers(
        description=described("").description,
        quotas=missing,
        settings={1: AdminRequestFailed("DescribeConfigs", 42, "odd")},
        leader=3,
    )
    quotas, settings, leader = permissions(answers)
    assert codes([quotas, settings, leader]) == ["permission_missing", "permission_unknown", "permission_granted"]
    assert quotas.advice == missing.grant
    assert settings.text.endswith("DescribeConfigs failed (error 42): odd")
    assert answers.limits(0.0) is None


@pytest.mark.parametrize(
    ("sampled", "scraped", "code"),
    [
        (None, None, "window_not_compared"),
        (None, 10.0, "window_covered"),
        (None, 11.0, "window_missed"),
        (5.0, 60.0, "window_covered"),
        (20.0, None, "window_missed"),
    ],
)
def test_reads_are_compared_with_the_window(sampled: float | None, scraped: float | None, code: str) -> None:
    """By default eleven samples of a second, the last of which is not full: ten seconds for certain."""
    collection = CollectionConfig(sample_every_seconds=sampled)
    (result,) = windows(ask(ScriptedAdmin()), collection, scraped)
    assert result.code == code
    assert "over the last 10 s" in result.text


def test_the_shortest_window_counts() -> None:
    """Brokers that differ are worth a look of their own; a window has at least one sample."""
    answers = ask(ScriptedAdmin())
    one, other = answers.settings.values()
    assert not isinstance(other, Exception)
    short = replace(other, quota_samples=1, quota_window_seconds=4)
    differing = replace(answers, settings={1: one, 2: short})
    look, compared = windows(differing, CollectionConfig(), 5.0)
    assert look.code == "windows_differ"
    assert "over the last 4 s, but are read every 5 s" in compared.text


def test_without_settings_nothing_is_compared() -> None:
    """Why they are missing is reported by the permissions."""
    answers = ClusterAnswers(description=described("").description)
    assert list(windows(answers, CollectionConfig(), 5.0)) == []
