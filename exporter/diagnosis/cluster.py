"""
The answers of the Admin API to the requests that quotascope makes, and the findings about them.

Reachability, permissions, windows.
"""

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
    UnsupportedByCluster,
)
from quotascope.clients.quota_admin import BrokerSettings, ClusterDescription, ConfiguredQuota, QuotaAdmin
from quotascope.metrics.kafka.release import ReleaseRange
from quotascope.pages.words import counted

from ..config import CollectionConfig
from ..limits import Limits
from ..limits.admin import connection_limits_of, rules_of, settings_of
from ..limits.model import SETTINGS_OF
from ..untrusted import one_line
from .catalog import Catalog, Finding
from .releases import release_findings, release_text
from .units import replication_throttles

_Value = TypeVar("_Value")
_HINTS: Final[tuple[tuple[type[ClientError], str], ...]] = (
    (LibraryMissing, ""),
    (CredentialsUnavailable, "Check kafka.sasl; Kafka itself was reached."),
    (AuthenticationFailed, "Check kafka.sasl, and that the user has these credentials in this cluster."),
    (TlsFailed, "Check kafka.tls and kafka.security_protocol."),
    (ClientError, "Check kafka.bootstrap_servers, kafka.security_protocol and the network."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswers:
    """The answer to each request, or the error instead of it."""

    description: ClusterDescription | ClientError
    quotas: Sequence[ConfiguredQuota] | ClientError = ()
    settings: Mapping[int, BrokerSettings | ClientError] = field(default_factory=dict)
    leader: int | ClientError | None = None
    releases: Mapping[int, ReleaseRange | ClientError] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        """Return whether the cluster could be reached."""
        return not isinstance(self.description, ClientError)

    @property
    def zookeeper(self) -> bool:
        """Return whether ZooKeeper keeps the cluster's metadata, as far as brokers showed it."""
        return any(release.zookeeper for release in self.known_releases.values())

    @property
    def brokers(self) -> Mapping[int, BrokerSettings]:
        """The settings that could be read, by node id."""
        answers = self.settings.items()
        return {node: settings for node, settings in answers if isinstance(settings, BrokerSettings)}

    @property
    def known_releases(self) -> Mapping[str, ReleaseRange]:
        """The releases that each broker may be of, by node id, as far as brokers showed them."""
        return {str(node): release for node, release in self.releases.items() if isinstance(release, ReleaseRange)}

    def limits(self, read_at: float) -> Limits | None:
        """Return the limits, as far as there are answers; ``read_at`` is the Unix time of the answers in seconds."""
        if isinstance(self.quotas, ClientError) or not self.reached:
            return None
        leader, brokers = self.leader, self.brokers.items()
        description = self.description
        if leader is None and self.zookeeper and isinstance(description, ClusterDescription):
            leader = description.controller_id  # without a quorum, one of the brokers is the controller
        return Limits(
            rules=rules_of(self.quotas),
            connection_limits=connection_limits_of(self.quotas),
            nodes={str(node): settings_of(settings) for node, settings in brokers},
            active_controller=str(leader) if isinstance(leader, int) else None,
            releases=self.known_releases,
            missing={
                f"{SETTINGS_OF}{node}": str(error)
                for node, error in self.settings.items()
                if isinstance(error, ClientError)
            },
            read_at=read_at,
        )


def ask(admin: QuotaAdmin) -> ClusterAnswers:
    """Make every request once; blocks."""

    def value_or_error(call: Callable[[], _Value]) -> _Value | ClientError:
        try:
            return call()
        except ClientError as error:
            return error

    description = value_or_error(admin.describe_cluster)
    if isinstance(description, ClientError):
        return ClusterAnswers(description=description)
    nodes = [node.node_id for node in description.nodes]
    settings = value_or_error(lambda: admin.describe_all_settings(nodes, inf))
    releases = value_or_error(lambda: admin.describe_releases(nodes, inf))
    return ClusterAnswers(
        description=description,
        quotas=value_or_error(admin.describe_quotas),
        settings=dict.fromkeys(nodes, settings) if isinstance(settings, ClientError) else settings,
        leader=value_or_error(admin.describe_quorum_leader),
        releases=dict.fromkeys(nodes, releases) if isinstance(releases, ClientError) else releases,
    )


def reachability(answers: ClusterAnswers) -> Iterator[Finding]:
    """Yield a finding on whether the cluster answers, with its id and release."""
    description = answers.description
    if isinstance(description, ClientError):
        hint = next(text for kind, text in _HINTS if isinstance(description, kind))
        yield Catalog.KAFKA_UNREACHABLE.found(error=description, hint=hint)
        return
    releases = answers.known_releases
    yield Catalog.KAFKA_ANSWERS.found(
        cluster=one_line(description.cluster_id),
        brokers=counted(len(description.nodes), "broker"),
        release=f"Kafka {release_text(releases)}" if releases else "of an unknown release of Kafka",
    )
    yield from release_findings(releases)


def permissions(answers: ClusterAnswers) -> Iterator[Finding]:
    """Yield a finding on each request: whether it is allowed, and what is missing without it."""
    if not answers.reached:
        return
    settings_errors = [answer for answer in answers.settings.values() if isinstance(answer, ClientError)]
    # the first request by the command that grants it: another one with the same command only refers to it
    granted_with: dict[str, str] = {}
    for request, answer, what, consequence in (
        (
            "DescribeClientQuotas",
            answers.quotas,
            "the configured quotas",
            "there is no limit, rule or utilization",
        ),
        (
            "DescribeConfigs",
            next(iter(settings_errors), None),
            "the brokers' settings",
            (
                "there is no request capacity, burst or limit of connections, it is unknown whether a custom quota "
                "callback decides, "
                "and KafkaQuotaHeavyClientWithoutLimit (an alert of the profile `all`) cannot fire"
            ),
        ),
        (
            "DescribeQuorum",
            answers.leader,
            "the voters and the active controller",
            "figures of controller mutation quotas are stale after a failover",
        ),
    ):
        if answer is None and answers.zookeeper and request == "DescribeQuorum":
            yield Catalog.NO_QUORUM.found(request)
        elif isinstance(answer, UnsupportedByCluster):
            yield Catalog.REQUEST_UNSUPPORTED.found(request, error=answer.reason, lost=consequence)
        elif isinstance(answer, PermissionMissing):
            first_request = granted_with.setdefault(answer.grant, request)
            grant = answer.grant if first_request == request else f"The same command grants it as for {first_request}."
            yield Catalog.PERMISSION_MISSING.found(request, what=what, lost=consequence, grant=grant)
        elif isinstance(answer, ClientError):
            yield Catalog.PERMISSION_UNKNOWN.found(request, what=what, error=answer)
        else:
            yield Catalog.PERMISSION_GRANTED.found(request, what=what)


def replication(answers: ClusterAnswers) -> Iterator[Finding]:
    """
    Yield a finding on the limits of replication.

    They remain after a reassignment that ended without ``--verify``; then replicas that fall behind may not catch up.
    """
    settings = {str(node): settings_of(broker_settings) for node, broker_settings in answers.brokers.items()}
    if limits := replication_throttles(settings):
        yield Catalog.REPLICATION_THROTTLED.found(limits="; ".join(limits))
    elif settings:
        yield Catalog.REPLICATION_UNTHROTTLED.found()


def windows(
    answers: ClusterAnswers, collection: CollectionConfig, scraped_every_seconds: float | None
) -> Iterator[Finding]:
    """
    Yield a finding on whether reads come often enough for the windows in which brokers measure.

    A window is ``quota.window.num`` samples of ``quota.window.size.seconds`` each; the last one is not yet full.
    """
    lengths = {
        (broker_settings.quota_samples, broker_settings.quota_window_seconds)
        for broker_settings in answers.brokers.values()
    }
    if not lengths:
        return
    if len(lengths) > 1:
        yield Catalog.WINDOWS_DIFFER.found()
    window = min(float(max(1, count - 1) * seconds) for count, seconds in lengths)
    reads = collection.sample_every_seconds, scraped_every_seconds
    every = min((interval for interval in reads if interval is not None), default=None)
    if every is None:
        yield Catalog.WINDOW_NOT_COMPARED.found(window=window)
    elif every > window:
        yield Catalog.WINDOW_MISSED.found(window=window, every=every)
    else:
        yield Catalog.WINDOW_COVERED.found(window=window, every=every)
