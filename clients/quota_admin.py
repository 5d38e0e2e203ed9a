"""
Quotas of a cluster, independent of the library that reads them.

The values are the Admin API's own, in Kafka's units and names; nothing is resolved or joined here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange

from .errors import ClientError

Entity: TypeAlias = Mapping[str, str | None]
"""Name by entity type (`user`, `client-id`, `ip`); None is the default entity of that type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredQuota:
    """One quota of one entity, as configured (KIP-546)."""

    entity: Entity
    key: str
    """`producer_byte_rate`, `consumer_byte_rate`, `request_percentage`, `controller_mutation_rate`, …"""
    value: float
    """Bytes/s, percent of one thread, partitions/s or connections/s, as the key says; per broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """A quota to set on an entity, or to remove from it (KIP-546)."""

    entity: Entity
    key: str
    value: float | None
    """New value; None removes the quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker and the address that clients of this listener use."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """
    The cluster and the brokers that are up (API 60, before Kafka 2.8 API 3).

    Nodes that are only controllers are not in it.
    """

    cluster_id: str
    nodes: tuple[Node, ...]
    controller_id: int | None = None
    """The active controller in ZooKeeper mode; any broker under KRaft, where it means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBrokers:
    """The brokers of a cluster (API 60)."""

    nodes: tuple[Node, ...]
    with_fenced: bool
    """
    True if `nodes` has brokers that are registered but down (KIP-1073, Kafka 4.0); False if it has only those that are
    up.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumVoters:
    """The controllers that vote in the KRaft quorum (API 55)."""

    node_ids: tuple[int, ...]
    nodes: tuple[Node, ...]
    """
    Addresses for brokers and other controllers; empty where the cluster does not report them (before KIP-853, Kafka
    3.9).
    """


class ConfigOrigin(Enum):
    """Place where the value of a broker's config key is set (`ConfigEntry.ConfigSource`)."""

    BROKER = "broker"
    """Set dynamically, for this broker alone."""
    ALL_BROKERS = "all brokers"
    """Set dynamically, as the default of all brokers (`kafka-configs --entity-default`)."""
    FILE = "file"
    """Set in the broker's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """The settings of one broker that shape its quotas, read from it as `DescribeConfigs` of a BROKER."""

    node_id: int
    num_io_threads: int
    """Value of `num.io.threads`; each of these threads, and of the network threads, is 100 % of request time."""
    num_network_threads: int
    """Value of `num.network.threads`, per listener."""
    quota_samples: int
    """Value of `quota.window.num`."""
    quota_window_seconds: int
    """Value of `quota.window.size.seconds`."""
    controller_quota_samples: int
    """Value of `controller.quota.window.num`."""
    controller_quota_window_seconds: int
    """Value of `controller.quota.window.size.seconds`."""
    client_quota_callback_class: str | None
    """Value of `client.quota.callback.class`: when it is set, the eight levels mean nothing."""
    rates: Mapping[str, int] = field(default_factory=dict)
    """
    Limits of replication, tiered storage (bytes/s) and new connections (connections/s) by config key, the broker's own
    or else the cluster's default; a key without a limit is missing. Listeners' keys are in lower case.
    """
    origins: Mapping[str, ConfigOrigin] = field(default_factory=dict)
    """Origins of these limits, by config key, where the broker reports them."""


class QuotaAdmin(Protocol):
    """
    The part of the Admin API that quotas need.

    Calls block and raise `ClientError`. Each wait within a call is bounded by the connection's timeout; one that has to
    connect first waits for the connection, the login and the answer in turn. The first call connects; one that lost its
    connection connects again once. Calls from several threads wait for each other; `close` does not wait.
    """

    def describe_quotas(self) -> tuple[ConfiguredQuota, ...]:
        """Return every configured quota. Needs DESCRIBE_CONFIGS on the cluster."""
        ...

    def describe_cluster(self) -> ClusterDescription:
        """Return the cluster and its brokers. Needs no permission."""
        ...

    def describe_release(self) -> KafkaRelease | None:
        """
        Return the release of the broker that answers, judged by the API versions it supports (API 18).

        Needs no permission.

        None where it may be one of several.
        """
        ...

    def describe_releases(
        self, node_ids: Collection[int], patience_seconds: float
    ) -> Mapping[int, ReleaseRange | ClientError]:
        """
        Return the releases that each of several brokers may have, asked concurrently. Needs no permission.

        A broker that does not answer within `patience_seconds` has an error in their place.
        """
        ...

    def describe_brokers(self) -> RegisteredBrokers:
        """Return the brokers, including those that are down where the cluster reports them. Needs no permission."""
        ...

    def describe_voters(self) -> QuorumVoters:
        """
        Return the controllers of the KRaft quorum, including those that are down. Needs DESCRIBE on the cluster.

        None at all when the cluster has no quorum to describe (ZooKeeper).
        """
        ...

    def describe_all_settings(
        self, node_ids: Collection[int], patience_seconds: float
    ) -> Mapping[int, BrokerSettings | ClientError]:
        """
        Return the settings of several brokers, asked concurrently. Needs DESCRIBE_CONFIGS on the cluster.

        A broker that does not answer within `patience_seconds` has an error in their place, as has one that refuses.
        """
        ...

    def describe_quorum_leader(self) -> int | None:
        """
        Return the active controller, which is the leader of the KRaft quorum (API 55). Needs DESCRIBE on the cluster.

        None when the cluster has no quorum to describe (ZooKeeper).
        """
        ...

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        """
        Set and remove quotas; changes of one entity are sent as one. Needs ALTER_CONFIGS on the cluster.

        All changes are tried; the first that was refused is raised.
        """
        ...

    def close(self) -> None:
        """Close the connection; safe to call twice, and from another thread while a call is under way."""
        ...
