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
from tests.exporter.limits.scripted import ScriptedAdmin

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
    UnsupportedByCluster,
)
from quotascope.clients.quota_admin import ClusterDescription, Node
from quotascope.exporter.config import CollectionConfig, Config, KafkaConfig
from quotascope.exporter.diagnosis.catalog import Catalog, Finding
from quotascope.exporter.diagnosis.cluster import ClusterAnswers, ask, permissions, reachability, windows
from quotascope.exporter.diagnosis.doctor import Evidence, Look, checks_of, examine
from quotascope.exporter.errors import SourceDenied
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange

SERVER = {"address": "127.0.0.1", "port": 0}
KAFKA = {"bootstrap_servers": "a:1"}
FINE = Catalog.RULES_DECIDE.found()


async def examined(admin: Any, **settings: Any) -> dict[str, list[str]]:
    """Return the codes of the findings, by check; ``admin`` opens the Admin API."""
    evidence = Evidence(Config.model_validate({"server": SERVER, **settings}), admin)
    texts_by_check: dict[str, list[str]] = {}
    for finding in await examine(checks_of(evidence, {}), 60):
        texts_by_check.setdefault(finding.check, []).append(finding.code)
    await evidence.close()
    return texts_by_check


def missing(_: KafkaConfig) -> ScriptedAdmin:
    raise LibraryMissing("kafka-python")


def look(*raised: Exception) -> Look:
    async def made() -> Iterable[Finding]:
        for error in raised:
            raise error
        return [FINE]

    return made


async def test_found_nodes_are_looked_at_as_well(tmp_path: Path) -> None:
    """The doctor reads nodes that a file names; a missing library keeps no other check from running."""
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps([{"targets": ["127.0.0.1:1"]}]))
    discovery = {"file_sd": {"files": [str(file)], "url": "https://{target}/jolokia"}}
    texts_by_check = await examined(missing, discovery=discovery, kafka=KAFKA)
    assert texts_by_check["kafka"] == ["check_failed"]
    assert (texts_by_check["discovery"], texts_by_check["agents"]) == (["discovery_works"], ["source_unreadable"])
    assert "permissions" not in texts_by_check
    # a missing file, with which the exporter starts, is an error of the doctor
    file.unlink()
    texts_by_check = await examined(missing, discovery=discovery)
    assert (texts_by_check["discovery"], texts_by_check["agents"]) == (["discovery_failed"], ["no_source_found"])


async def test_discovery_that_cannot_ask() -> None:
    """Checks that depend on a failed discovery fail for the same reason, and the others run."""
    discovery = {"kafka": {"url": "http://{host}:1/jolokia"}}
    texts_by_check = await examined(missing, discovery=discovery, kafka=KAFKA)
    for check in ("kafka", "discovery", "agents", "quotas"):
        assert texts_by_check[check] == ["check_failed"]
    assert texts_by_check["listening"] == ["port_any"]
    assert "clocks" not in texts_by_check


async def test_a_push_is_tried_where_one_is_configured() -> None:
    """The doctor tries a configured push, and reports a port without a listener."""
    otlp = {"endpoint": "http://127.0.0.1:1"}
    texts_by_check = await examined(lambda _: ScriptedAdmin(), kafka=KAFKA, otlp=otlp)
    assert texts_by_check["kafka"] == ["kafka_answers", "kafka_tested"]
    assert texts_by_check["otlp"] == ["push_unreachable"]
    assert (await examined(missing))["kafka"] == ["no_admin_api"]


async def test_the_cluster_is_asked_once() -> None:
    """The cluster is asked once, however many checks use its answers, and the connection is closed at the end."""
    opened: list[ScriptedAdmin] = []

    def admin(_: KafkaConfig) -> ScriptedAdmin:
        opened.append(ScriptedAdmin())
        return opened[-1]

    await examined(admin, kafka=KAFKA)
    assert [admin.closed for admin in opened] == [True]


async def test_checks_do_not_wait_for_each_other() -> None:
    """Checks run at the same time; findings keep their order, and the progress shows which checks are left."""
    released = asyncio.Event()
    unfinished: list[list[str]] = []

    async def first() -> Iterable[Finding]:
        await released.wait()
        return [Catalog.NO_SOURCE.found()]

    async def second() -> Iterable[Finding]:
        released.set()
        return [FINE]

    checks = {"first": first, "second": second}
    findings = await examine(checks, 60, lambda names: unfinished.append(list(names)))
    assert [finding.code for finding in findings] == ["no_source", "rules_decide"]
    assert unfinished[0] == ["first", "second"]
    assert unfinished[-1] == []


async def test_a_check_that_hangs_or_raises_breaks_no_other() -> None:
    """A known error in a check is a finding, any other one a defect without a traceback, and other checks go on."""

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


def described(*releases: ReleaseRange) -> ClusterAnswers:
    reported = ClusterDescription(cluster_id="abc", nodes=(NODE,) * max(1, len(releases)), controller_id=7)
    return ClusterAnswers(description=reported, releases=dict(enumerate(releases, 1)))


def of(oldest: str, newest: str | None = "") -> ReleaseRange:
    """Return the releases between two, up to later ones for None, and one alone without a second."""
    newest_release = None if newest is None else KafkaRelease.parse(newest or oldest)
    return ReleaseRange(oldest=KafkaRelease.parse(oldest), newest=newest_release)


def codes(findings: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("releases", "words", "further_codes"),
    [
        ([of("4.3")], "1 broker, Kafka 4.3", ["kafka_tested"]),
        ([], "1 broker, of an unknown release of Kafka", []),
        ([of("3.9-zk"), of("3.9-zk")], "2 brokers, Kafka 3.9 in ZooKeeper mode", ["kafka_tested"]),
        (
            [of("3.9"), of("4.0"), of("3.9")],
            "3 brokers, Kafka 3.9 (brokers 1, 3), 4.0 (broker 2)",
            ["kafka_untested", "kafka_tested"],
        ),
        ([of("3.3", "3.4")], "1 broker, Kafka 3.3 to 3.4", ["kafka_tested"]),
        ([of("3.0-zk", "3.1-zk")], "1 broker, Kafka 3.0 to 3.1 in ZooKeeper mode", ["kafka_untested"]),
        ([of("4.4", None)], "1 broker, Kafka 4.4 or later", ["kafka_newer"]),
        ([of("2.7")], "1 broker, Kafka 2.7 in ZooKeeper mode", ["kafka_too_old"]),
        (
            [ReleaseRange(oldest=None, newest=KafkaRelease(2, 4, zookeeper=True))],
            "1 broker, Kafka 2.4 in ZooKeeper mode or before",
            ["kafka_too_old"],
        ),
    ],
)  # fmt: skip
def test_a_cluster_that_answers(releases: list[ReleaseRange], words: str, further_codes: list[str]) -> None:
    """The cluster reports its id, the release of its brokers, and whether quotascope is tested with it."""
    results = list(reachability(described(*releases)))
    assert results[0].text == f"Cluster abc answers: {words}."
    assert codes(results) == ["kafka_answers", *further_codes]


@pytest.mark.parametrize(
    ("release", "works", "not_"),
    [
        ("2.5", "limits and rules cannot be read", "Limits, rules"),
        (
            "2.6",
            "Limits, rules, usage and throttle times are shown; it has no quotas for controller mutations",
            "cannot",
        ),
        ("2.7", "Limits, rules, usage and throttle times are shown; its request log", "controller mutations"),
    ],
)
def test_what_works_with_a_release_that_is_too_old(release: str, works: str, not_: str) -> None:
    """
    The doctor says what an old release lacks.

    The Admin API has quotas since 2.6, those of mutations and addresses since 2.7; the log has JSON since 2.8.
    """
    (*_, finding) = reachability(described(of(release)))
    assert works in finding.advice
    assert not_ not in finding.advice
    assert "network" not in finding.text + finding.advice


def test_a_cluster_in_zookeeper_mode_has_no_voters() -> None:
    """In ZooKeeper mode a refused DescribeQuorum is no fault, and brokers name the controller."""
    answers = described(of("3.9-zk"))
    findings = {finding.subject: finding for finding in permissions(answers)}
    assert (findings["DescribeQuorum"].code, findings["DescribeQuorum"].severity) == ("no_quorum", "ok")
    limits = answers.limits(0.0)
    assert limits is not None
    assert limits.active_controller == "7"
    under_kraft = described(of("3.9"))
    assert {finding.code for finding in permissions(under_kraft)} == {"permission_granted"}
    kraft_limits = under_kraft.limits(0.0)
    assert kraft_limits is not None
    assert kraft_limits.active_controller is None


def test_a_request_that_the_cluster_does_not_know() -> None:
    """No permission is missing, and no network is to blame."""
    answers = replace(described(of("2.5")), quotas=UnsupportedByCluster("DescribeClientQuotas", "2.6"))
    quotas_finding = next(finding for finding in permissions(answers) if finding.subject == "DescribeClientQuotas")
    assert quotas_finding.code == "request_unsupported"
    assert "came with Kafka 2.6" in quotas_finding.text
    assert "network" not in quotas_finding.text + quotas_finding.advice


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
    """The finding has the reason, and which setting to look at; nothing is said of permissions then."""
    answers = ClusterAnswers(description=error)
    (result,) = reachability(answers)
    assert (result.code, result.text) == ("kafka_unreachable", str(error))
    assert advice in result.advice
    assert list(permissions(answers)) == []
    assert answers.limits(0.0) is None


def test_a_library_that_is_missing_says_what_to_install() -> None:
    """A missing library is reported with what to install, and not as a fault of the network."""
    (result,) = reachability(ClusterAnswers(description=LibraryMissing("kafka-python")))
    assert "pip install" in result.text
    assert result.advice == ""


def test_each_request_is_made_and_judged() -> None:
    """Each request is tried and judged, also after one that is not permitted."""
    answers = ask(ScriptedAdmin())
    assert codes(permissions(answers)) == ["permission_granted"] * 3
    limits = answers.limits(7.0)
    assert limits is not None
    assert (limits.read_at, [*limits.nodes]) == (7.0, ["1", "2"])


def test_missing_permissions_name_the_grant() -> None:
    """A missing permission is shown with its effect and the command that grants it."""
    missing = PermissionMissing(request="DescribeClientQuotas", operation="DescribeConfigs", username="me")
    answers = ClusterAnswers(
        description=described().description,
        quotas=missing,
        settings={1: AdminRequestFailed("DescribeConfigs", 42, "odd")},
        leader=3,
    )
    quotas, settings, leader = permissions(answers)
    assert codes([quotas, settings, leader]) == ["permission_missing", "permission_unknown", "permission_granted"]
    assert quotas.advice == missing.grant
    assert settings.text.endswith("DescribeConfigs failed (error 42): odd")
    assert answers.limits(0.0) is None
    permission = PermissionMissing(request="DescribeConfigs", operation="DescribeConfigs", username="me")
    quotas, settings, leader = permissions(replace(answers, settings={1: permission}))
    assert quotas.advice == missing.grant
    assert settings.advice == "The same command grants it as for DescribeClientQuotas."


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
    """The time between reads is compared with the window of quotas, of which 10 s are always full by default."""
    collection = CollectionConfig(sample_every_seconds=sampled)
    (result,) = windows(ask(ScriptedAdmin()), collection, scraped)
    assert result.code == code
    assert "over the last 10 s" in result.text


def test_the_shortest_window_counts() -> None:
    """The shortest window of all brokers counts, and brokers that differ have a finding of their own."""
    answers = ask(ScriptedAdmin())
    first_settings, second_settings = answers.settings.values()
    assert not isinstance(second_settings, Exception)
    short = replace(second_settings, quota_samples=1, quota_window_seconds=4)
    differing = replace(answers, settings={1: first_settings, 2: short})
    look, compared = windows(differing, CollectionConfig(), 5.0)
    assert look.code == "windows_differ"
    assert "over the last 4 s, but are read every 5 s" in compared.text


def test_without_settings_nothing_is_compared() -> None:
    """Without the brokers' settings no windows are compared; the permissions say why."""
    answers = ClusterAnswers(description=described().description)
    assert list(windows(answers, CollectionConfig(), 5.0)) == []
