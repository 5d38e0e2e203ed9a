"""
The quotas of a cluster, independent of the library that reads them.

The values are the Admin API's own, in Kafka's units and names; nothing is resolved or joined here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from quotascope.metrics import KafkaRelease

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
    """None removes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker and the address that clients of this listener use."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The cluster and the brokers that are up (API 60). Nodes that are only controllers are not in it."""

    cluster_id: str
    nodes: tuple[Node, ...]
    release: str = ""
    """The oldest release of Kafka that speaks as the brokers do, such as 4.1; empty when the library does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBrokers:
    """The brokers of a cluster (API 60)."""

    nodes: tuple[Node, ...]
    with_fenced: bool
    """Whether those that are registered but down are among them (KIP-1073, Kafka 4.0); else only those that are up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumVoters:
    """The controllers that vote in the KRaft quorum (API 55)."""

    node_ids: tuple[int, ...]
    nodes: tuple[Node, ...]
    """Where they listen to brokers and each other; empty where the cluster does not report it (before KIP-853, Kafka 3.9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """The settings of one broker that shape its quotas, read from it as `DescribeConfigs` of a BROKER."""

    node_id: int
    num_io_threads: int
    """`num.io.threads`; with the next, 100 % of request time each."""
    num_network_threads: int
    """`num.network.threads`, per listener."""
    quota_samples: int
    """`quota.window.num`"""
    quota_window_seconds: int
    """`quota.window.size.seconds`"""
    controller_quota_samples: int
    """`controller.quota.window.num`"""
    controller_quota_window_seconds: int
    """`controller.quota.window.size.seconds`"""
    client_quota_callback_class: str | None
    """`client.quota.callback.class`: when it is set, the eight levels mean nothing."""
    rates: Mapping[str, int] = field(default_factory=dict)
    """
    The limits of replication, tiered storage (bytes/s) and new connections (connections/s) by config key, the broker's own or
    else the cluster's default; a key without a limit is missing. Listeners' keys are in lower case.
    """


class QuotaAdmin(Protocol):
    """
    The part of the Admin API that quotas need.

    Calls block and raise `ClientError`. Each wait within a call is bounded by the connection's timeout; one that has to
    connect first waits for the connection, the login and the answer in turn. The first call connects; one that lost its
    connection connects again once. Calls from several threads wait for each other; `close` does not wait.
    """

    def describe_quotas(self) -> tuple[ConfiguredQuota, ...]:
        """Every configured quota. Needs DESCRIBE_CONFIGS on the cluster."""
        ...

    def describe_cluster(self) -> ClusterDescription:
        """The cluster and its brokers. Needs no permission."""
        ...

    def describe_release(self) -> KafkaRelease | None:
        """
        The release of the broker that answers, by the newest `metadata.version` that it supports (API 18). Needs no permission.

        None when it names no such feature: before KRaft.
        """
        ...

    def describe_brokers(self) -> RegisteredBrokers:
        """The brokers, with those that are down where the cluster reports them. Needs no permission."""
        ...

    def describe_voters(self) -> QuorumVoters:
        """
        The controllers of the KRaft quorum, those that are down as well. Needs DESCRIBE on the cluster.

        None at all when the cluster has no quorum to describe (ZooKeeper).
        """
        ...

    def describe_all_settings(
        self, node_ids: Collection[int], patience_seconds: float
    ) -> Mapping[int, BrokerSettings | ClientError]:
        """
        The settings of several brokers, asked side by side. Needs DESCRIBE_CONFIGS on the cluster.

        A broker that does not answer within `patience_seconds` has an error in their place, as has one that refuses.
        """
        ...

    def describe_quorum_leader(self) -> int | None:
        """
        The active controller: the leader of the KRaft quorum (API 55). Needs DESCRIBE on the cluster.

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
        """End the connection; safe to call twice, and from another thread while a call is under way."""
        ...
