"""What the Admin API answers to each request that quotascope makes, and what that says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from quotascope.clients.errors import (
    AuthenticationFailed,
    ClientError,
    LibraryMissing,
    PermissionMissing,
    TlsFailed,
)
from quotascope.clients.quota_admin import (
    BrokerSettings,
    ClusterDescription,
    ConfiguredQuota,
    QuotaAdmin,
)

from ..limits import Limits
from ..limits.admin import connection_limits_of, rules_of, settings_of
from ..untrusted import one_line
from .result import Result, Verdict

_Value = TypeVar("_Value")
_ADVICE: Final[tuple[tuple[type[ClientError], str], ...]] = (
    (LibraryMissing, ""),
    (AuthenticationFailed, "Check kafka.sasl, and that the user has these credentials in this cluster."),
    (TlsFailed, "Check kafka.tls and kafka.security_protocol."),
    (ClientError, "Check kafka.bootstrap_servers, kafka.security_protocol and the network."),
)  # fmt: skip
_OLDEST: Final = (2, 7)
_MEANINGS: Final = {
    "DescribeClientQuotas": (
        "the configured quotas",
        "there is no limit, rule or utilisation",
    ),
    "DescribeConfigs": (
        "the brokers' settings",
        "there is no request capacity, burst or limit of connections",
    ),
    "DescribeQuorum": (
        "the voters and the active controller",
        "figures of mutation quotas are stale after a failover",
    ),
}
"""What each request reads, and what is lost with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswers:
    """The answer to each request, or the error instead of it."""

    description: ClusterDescription | ClientError
    quotas: Sequence[ConfiguredQuota] | ClientError = ()
    settings: Mapping[int, BrokerSettings | ClientError] = field(default_factory=dict)
    leader: int | ClientError | None = None

    @property
    def reached(self) -> bool:
        """Whether there is a cluster to speak of."""
        return not isinstance(self.description, ClientError)

    def limits(self, at: float) -> Limits | None:
        """The limits, as far as the answers tell; ``at`` is the Unix time in seconds of the answers."""
        if isinstance(self.quotas, ClientError) or not self.reached:
            return None
        leader = self.leader
        return Limits(
            rules=rules_of(self.quotas),
            connection_limits=connection_limits_of(self.quotas),
            nodes={
                str(node_id): settings_of(settings)
                for node_id, settings in self.settings.items()
                if isinstance(settings, BrokerSettings)
            },
            active_controller=str(leader) if isinstance(leader, int) else None,
            read_at=at,
        )


def ask(admin: QuotaAdmin) -> ClusterAnswers:
    """Make every request once; blocks."""
    description = _tried(admin.describe_cluster)
    if isinstance(description, ClientError):
        return ClusterAnswers(description=description)
    return ClusterAnswers(
        description=description,
        quotas=_tried(admin.describe_quotas),
        settings={
            node.node_id: _tried(partial(admin.describe_settings, node.node_id))
            for node in description.nodes
        },
        leader=_tried(admin.describe_quorum_leader),
    )


def _tried(call: Callable[[], _Value]) -> _Value | ClientError:
    try:
        return call()
    except ClientError as error:
        return error


def reachability(answers: ClusterAnswers) -> Iterator[Result]:
    """Whether Kafka lets us in, and who it is."""
    told = answers.description
    if isinstance(told, ClientError):
        advice = next(text for kind, text in _ADVICE if isinstance(told, kind))
        yield _result("kafka", Verdict.BROKEN, str(told), advice=advice)
        return
    brokers = len(told.nodes)
    release = f", Kafka {told.release} or newer" if told.release else ""
    text = f"Cluster {one_line(told.cluster_id)} answers: {brokers} brokers{release}."
    yield _result("kafka", Verdict.FINE, text)
    if told.release and tuple(map(int, told.release.split("."))) < _OLDEST:
        yield _result(
            "kafka",
            Verdict.LOOK,
            f"Kafka {told.release} is older than all that quotascope was tried with: it has no quota on controller mutations and IP addresses.",
            advice="Expect less than the pages say.",
        )


def permissions(answers: ClusterAnswers) -> Iterator[Result]:
    """Whether each request is allowed, and what is missing without it."""
    if not answers.reached:
        return
    settings = [e for e in answers.settings.values() if isinstance(e, ClientError)]
    asked = (
        ("DescribeClientQuotas", answers.quotas),
        ("DescribeConfigs", settings[0] if settings else None),
        ("DescribeQuorum", answers.leader),
    )
    for request, answer in asked:
        yield _permission(request, answer)


def _permission(request: str, answer: object) -> Result:
    what, without = _MEANINGS[request]
    if isinstance(answer, PermissionMissing):
        text = f"May not read {what}; without them {without}."
        return _result("permissions", Verdict.BROKEN, text, request, answer.grant)
    if isinstance(answer, ClientError):
        text = f"Could not read {what}: {answer}"
        return _result("permissions", Verdict.BROKEN, text, request)
    return _result("permissions", Verdict.FINE, f"May read {what}.", request)


def _result(
    check: str, verdict: Verdict, text: str, subject: str = "", advice: str = ""
) -> Result:
    return Result(
        check=check, verdict=verdict, text=text, subject=subject, advice=advice
    )
