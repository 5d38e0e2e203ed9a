"""The Admin API's answers: reachability, permissions, and the brokers' windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
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
from quotascope.exporter.config import CollectionConfig
from quotascope.exporter.diagnosis import Finding
from quotascope.exporter.diagnosis.cluster import ClusterAnswers, ask, permissions, reachability, windows

NODE = Node(node_id=1, host="a", port=1)


def described(release: str) -> ClusterAnswers:
    """A cluster of one broker."""
    reported = ClusterDescription(cluster_id="abc", nodes=(NODE,), release=release)
    return ClusterAnswers(description=reported)


def codes(findings: Iterable[Finding]) -> list[str]:
    """The entries of the catalog."""
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
    """Brokers that differ are worth a look of their own."""
    answers = ask(ScriptedAdmin())
    one, other = answers.settings.values()
    assert not isinstance(other, Exception)
    short = replace(other, quota_samples=3, quota_window_seconds=2)
    differing = replace(answers, settings={1: one, 2: short})
    look, compared = windows(differing, CollectionConfig(), 5.0)
    assert look.code == "windows_differ"
    assert "over the last 4 s, but are read every 5 s" in compared.text


def test_without_settings_nothing_is_compared() -> None:
    """Why they are missing is reported by the permissions."""
    answers = ClusterAnswers(description=described("").description)
    assert list(windows(answers, CollectionConfig(), 5.0)) == []
