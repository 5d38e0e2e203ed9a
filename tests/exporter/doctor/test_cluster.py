from __future__ import annotations

import pytest
from tests.exporter.limits.test_admin import ScriptedAdmin

from quotascope.clients.errors import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    LibraryMissing,
    PermissionMissing,
    TlsFailed,
)
from quotascope.clients.quota_admin import ClusterDescription, Node
from quotascope.exporter.doctor import Result, Verdict
from quotascope.exporter.doctor.cluster import (
    ClusterAnswers,
    ask,
    permissions,
    reachability,
)

NODE = Node(node_id=1, host="a", port=1)


def described(release: str) -> ClusterAnswers:
    """A cluster of one broker."""
    told = ClusterDescription(cluster_id="abc", nodes=(NODE,), release=release)
    return ClusterAnswers(description=told)


def verdicts(results: list[Result]) -> list[Verdict]:
    """How they are."""
    return [each.verdict for each in results]


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
    """It tells who it is; one that is too old for some quotas is worth a look."""
    results = list(reachability(described(release)))
    assert results[0].text == text
    assert verdicts(results) == [Verdict.FINE, Verdict.LOOK][:count]


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (AdminUnreachable(["a:1"], "no"), "bootstrap_servers"),
        (AdminTimeout("connecting", 1), "bootstrap_servers"),
        (TlsFailed(["a:1"], "no"), "kafka.tls"),
        (AuthenticationFailed("me", "PLAIN", "no"), "kafka.sasl"),
    ],
)
def test_a_cluster_that_does_not(error: ClientError, advice: str) -> None:
    """The reason, and which setting to look at; nothing is said of permissions then."""
    answers = ClusterAnswers(description=error)
    (result,) = reachability(answers)
    assert (result.verdict, result.text) == (Verdict.BROKEN, str(error))
    assert advice in result.advice
    assert list(permissions(answers)) == []
    assert answers.limits(0.0) is None


def test_a_library_that_is_missing_says_what_to_install() -> None:
    """No network is to blame for it."""
    error = LibraryMissing("kafka-python", "kafka")
    (result,) = reachability(ClusterAnswers(description=error))
    assert "pip install" in result.text
    assert result.advice == ""


def test_each_request_is_made_and_judged() -> None:
    """One that is not allowed does not keep the others from being tried."""
    admin = ScriptedAdmin()
    answers = ask(admin)
    assert verdicts(list(permissions(answers))) == [Verdict.FINE] * 3
    limits = answers.limits(7.0)
    assert limits is not None
    assert limits.read_at == 7.0
    assert limits.nodes


def test_missing_permissions_name_the_grant() -> None:
    """The command that mends it stands beside what is missing without it."""
    missing = PermissionMissing(
        request="DescribeClientQuotas", operation="DescribeConfigs", username="me"
    )
    answers = ClusterAnswers(
        description=described("").description,
        quotas=missing,
        settings={1: AdminRequestFailed("DescribeConfigs", 42, "odd")},
        leader=3,
    )
    quotas, settings, leader = permissions(answers)
    assert quotas.verdict is Verdict.BROKEN
    assert quotas.advice == missing.grant
    assert settings.text.endswith("DescribeConfigs failed (error 42): odd")
    assert leader.verdict is Verdict.FINE
    assert answers.limits(0.0) is None
