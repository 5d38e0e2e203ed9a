"""What the Admin API answers to each request that quotascope makes, and the findings about it: reachability, permissions, windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, TypeVar

from quotascope.clients.errors import (
    AuthenticationFailed,
    ClientError,
    CredentialsUnavailable,
    LibraryMissing,
    PermissionMissing,
    TlsFailed,
)
from quotascope.clients.quota_admin import BrokerSettings, ClusterDescription, ConfiguredQuota, QuotaAdmin

from ..config import CollectionConfig
from ..limits import Limits
from ..limits.admin import connection_limits_of, rules_of, settings_of
from ..untrusted import one_line
from .catalog import Catalog, Finding

_Value = TypeVar("_Value")
_HINTS: Final[tuple[tuple[type[ClientError], str], ...]] = (
    (LibraryMissing, ""),
    (CredentialsUnavailable, "Check kafka.sasl; Kafka itself was reached."),
    (AuthenticationFailed, "Check kafka.sasl, and that the user has these credentials in this cluster."),
    (TlsFailed, "Check kafka.tls and kafka.security_protocol."),
    (ClientError, "Check kafka.bootstrap_servers, kafka.security_protocol and the network."),
)  # fmt: skip
_OLDEST: Final = (2, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswers:
    """The answer to each request, or the error instead of it."""

    description: ClusterDescription | ClientError
    quotas: Sequence[ConfiguredQuota] | ClientError = ()
    settings: Mapping[int, BrokerSettings | ClientError] = field(default_factory=dict)
    leader: int | ClientError | None = None

    @property
    def reached(self) -> bool:
        """Whether the cluster could be reached."""
        return not isinstance(self.description, ClientError)

    @property
    def brokers(self) -> Mapping[int, BrokerSettings]:
        """The settings that could be read, by node id."""
        found = self.settings.items()
        return {node: s for node, s in found if isinstance(s, BrokerSettings)}

    def limits(self, at: float) -> Limits | None:
        """The limits, as far as there are answers; ``at`` is the Unix time of the answers in seconds."""
        if isinstance(self.quotas, ClientError) or not self.reached:
            return None
        leader, brokers = self.leader, self.brokers.items()
        return Limits(
            rules=rules_of(self.quotas),
            connection_limits=connection_limits_of(self.quotas),
            nodes={str(node): settings_of(settings) for node, settings in brokers},
            active_controller=str(leader) if isinstance(leader, int) else None,
            read_at=at,
        )


def ask(admin: QuotaAdmin) -> ClusterAnswers:
    """Make every request once; blocks."""

    def tried(call: Callable[[], _Value]) -> _Value | ClientError:
        try:
            return call()
        except ClientError as error:
            return error

    description = tried(admin.describe_cluster)
    if isinstance(description, ClientError):
        return ClusterAnswers(description=description)
    nodes = [node.node_id for node in description.nodes]
    settings = tried(lambda: admin.describe_all_settings(nodes, inf))
    return ClusterAnswers(
        description=description,
        quotas=tried(admin.describe_quotas),
        settings=dict.fromkeys(nodes, settings) if isinstance(settings, ClientError) else settings,
        leader=tried(admin.describe_quorum_leader),
    )


def reachability(answers: ClusterAnswers) -> Iterator[Finding]:
    """Whether the cluster answers, and its id and release."""
    found = answers.description
    if isinstance(found, ClientError):
        hint = next(text for kind, text in _HINTS if isinstance(found, kind))
        yield Catalog.KAFKA_UNREACHABLE.found(error=found, hint=hint)
        return
    yield Catalog.KAFKA_ANSWERS.found(
        cluster=one_line(found.cluster_id),
        count=len(found.nodes),
        release=f", Kafka {found.release} or newer" if found.release else "",
    )
    if found.release and tuple(map(int, found.release.split("."))) < _OLDEST:
        yield Catalog.KAFKA_TOO_OLD.found(release=found.release)


def permissions(answers: ClusterAnswers) -> Iterator[Finding]:
    """Whether each request is allowed, and what is missing without it."""
    if not answers.reached:
        return
    settings = [e for e in answers.settings.values() if isinstance(e, ClientError)]
    for request, answer, what, lost in (
        (
            "DescribeClientQuotas",
            answers.quotas,
            "the configured quotas",
            "there is no limit, rule or utilization",
        ),
        (
            "DescribeConfigs",
            next(iter(settings), None),
            "the brokers' settings",
            "there is no request capacity, burst or limit of connections",
        ),
        (
            "DescribeQuorum",
            answers.leader,
            "the voters and the active controller",
            "figures of controller mutation quotas are stale after a failover",
        ),
    ):
        if isinstance(answer, PermissionMissing):
            yield Catalog.PERMISSION_MISSING.found(request, what=what, lost=lost, grant=answer.grant)
        elif isinstance(answer, ClientError):
            yield Catalog.PERMISSION_UNKNOWN.found(request, what=what, error=answer)
        else:
            yield Catalog.PERMISSION_GRANTED.found(request, what=what)


def windows(
    answers: ClusterAnswers, collection: CollectionConfig, scraped_every_seconds: float | None
) -> Iterator[Finding]:
    """
    Whether reads come often enough for the windows in which brokers measure.

    A window is ``quota.window.num`` samples of ``quota.window.size.seconds`` each; the last one is not yet full.
    """
    lengths = {(each.quota_samples, each.quota_window_seconds) for each in answers.brokers.values()}
    if not lengths:
        return
    if len(lengths) > 1:
        yield Catalog.WINDOWS_DIFFER.found()
    window = min(float(max(1, count - 1) * seconds) for count, seconds in lengths)
    reads = collection.sample_every_seconds, scraped_every_seconds
    every = min((each for each in reads if each is not None), default=None)
    if every is None:
        yield Catalog.WINDOW_NOT_COMPARED.found(window=window)
    elif every > window:
        yield Catalog.WINDOW_MISSED.found(window=window, every=every)
    else:
        yield Catalog.WINDOW_COVERED.found(window=window, every=every)
