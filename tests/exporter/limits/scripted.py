"""An Admin API whose answers are scripted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from quotascope.clients.errors import (
    ClientError,
    PermissionMissing,
)
from quotascope.clients.quota_admin import (
    BrokerSettings,
    ClusterDescription,
    ConfiguredQuota,
    Node,
    QuorumVoters,
    QuotaChange,
    RegisteredBrokers,
)
from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease, ReleaseRange

NEWEST = ReleaseRange(oldest=NEWEST_RELEASE, newest=NEWEST_RELEASE)

DENIED = PermissionMissing(request="DescribeQuorum", operation="DESCRIBE", username="me")


def quota(value: float, key: str = "producer_byte_rate", /, **entity: str | None) -> ConfiguredQuota:
    """Return a quota as the Admin API reports it; ``client_id`` is the entity type client-id."""
    named = {name.replace("_", "-"): value for name, value in entity.items()}
    return ConfiguredQuota(entity=named, key=key, value=value)


class ScriptedAdmin:
    """A cluster with two brokers and one quota; each answer can be replaced by an error."""

    def __init__(self) -> None:
        self.errors: dict[str, ClientError] = {}
        self.quotas: tuple[ConfiguredQuota, ...] = (quota(1.0, user="alice"),)
        self.leader: int | None = 100
        self.rates: dict[str, int] = {}
        self.brokers = [1, 2]
        self.with_fenced = True
        self.releases: dict[int, ReleaseRange] = {}
        self.voters: tuple[Node, ...] = (Node(node_id=100, host="controller-100", port=9093),)
        self.closed = False
        self.patience: list[float] = []

    def _answer(self, request: str) -> None:
        if request in self.errors:
            raise self.errors[request]

    def describe_quotas(self) -> tuple[ConfiguredQuota, ...]:
        self._answer("quotas")
        return self.quotas

    def describe_cluster(self) -> ClusterDescription:
        self._answer("cluster")
        nodes = tuple(Node(node_id=node_id, host="a", port=1) for node_id in self.brokers)
        return ClusterDescription(cluster_id="x", nodes=nodes)

    def describe_brokers(self) -> RegisteredBrokers:
        self._answer("brokers")
        nodes = tuple(Node(node_id=node_id, host=f"broker-{node_id}", port=9092) for node_id in self.brokers)
        return RegisteredBrokers(nodes=nodes, with_fenced=self.with_fenced)

    def describe_voters(self) -> QuorumVoters:
        self._answer("voters")
        return QuorumVoters(node_ids=(100,), nodes=self.voters)

    def describe_release(self) -> KafkaRelease | None:
        return NEWEST_RELEASE

    def describe_releases(
        self, node_ids: Iterable[int], patience_seconds: float
    ) -> dict[int, ReleaseRange | ClientError]:
        assert patience_seconds > 0
        return {
            node_id: self.errors.get(f"release {node_id}") or self.releases.get(node_id, NEWEST) for node_id in node_ids
        }

    def describe_all_settings(
        self, node_ids: Iterable[int], patience_seconds: float
    ) -> dict[int, BrokerSettings | ClientError]:
        self.patience.append(patience_seconds)
        settings = BrokerSettings(
            node_id=0,
            num_io_threads=8,
            num_network_threads=3,
            quota_samples=11,
            quota_window_seconds=1,
            controller_quota_samples=5,
            controller_quota_window_seconds=2,
            client_quota_callback_class=None,
            rates=self.rates,
        )
        return {
            node_id: self.errors.get(f"settings {node_id}") or replace(settings, node_id=node_id)
            for node_id in node_ids
        }

    def describe_quorum_leader(self) -> int | None:
        self._answer("leader")
        return self.leader

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        """Fail if the exporter, which only reads, changes a quota."""
        raise AssertionError(changes)

    def close(self) -> None:
        self.closed = True
