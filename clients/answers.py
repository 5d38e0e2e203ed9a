"""
What the answers of the Admin API mean, as plain mappings with the field names of Kafka's protocol.

Libraries differ in how they ask; what comes back is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan
from typing import Any, Final, TypeAlias

from quotascope.metrics import INT_MAX, LONG_MAX, KafkaRelease, ReplicationQuotaType, RLMQuotaType
from quotascope.metrics.protocol import ErrorCode

from .errors import AdminRequestFailed, ClientError, PermissionMissing
from .quota_admin import (
    BrokerSettings,
    ClusterDescription,
    ConfiguredQuota,
    Entity,
    Node,
    QuorumVoters,
    QuotaChange,
    RegisteredBrokers,
)

Answer: TypeAlias = Mapping[str, Any]

OPERATIONS: Final = {
    "DescribeClientQuotas": "DescribeConfigs",
    "DescribeConfigs": "DescribeConfigs",
    "DescribeQuorum": "Describe",
    "AlterClientQuotas": "AlterConfigs",
}
"""The operation on the cluster that each request needs (KafkaApis and ControllerApis; tried with StandardAuthorizer)."""

CONNECTION_RATE: Final = "max.connection.creation.rate"
_RATES: Final = (
    *(kind.rate_key for kind in (*ReplicationQuotaType, *RLMQuotaType)),
    CONNECTION_RATE,
)
_METADATA_VERSION: Final = "metadata.version"
_LISTENERS: Final = "listeners"
SETTINGS: Final = (
    "num.io.threads",
    "num.network.threads",
    "quota.window.num",
    "quota.window.size.seconds",
    "controller.quota.window.num",
    "controller.quota.window.size.seconds",
    "client.quota.callback.class",
    _LISTENERS,
    *_RATES,
)
"""What is asked of every broker; its listeners have further keys, see `listener_rate_keys`."""


def check(request: str, answer: Answer, username: str | None) -> None:
    """Raise what an answer says went wrong: `PermissionMissing` or `AdminRequestFailed`."""
    for part in _parts(answer):
        code = part.get("error_code", 0)
        if code != 0:
            raise _error(request, code, part.get("error_message"), username)


def _parts(answer: Answer) -> Iterator[Answer]:
    """Everything in an answer that may hold an error code: itself, and the answers to single items."""
    yield answer
    yield from answer.get("results") or ()
    yield from answer.get("entries") or ()
    for topic in answer.get("topics") or ():
        yield from topic["partitions"]


def _error(request: str, code: int, message: str | None, username: str | None) -> ClientError:
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED and request in OPERATIONS:
        return PermissionMissing(request=request, operation=OPERATIONS[request], username=username)
    return AdminRequestFailed(request, code, message or "no reason given")


def quotas(answer: Answer) -> tuple[ConfiguredQuota, ...]:
    """Every quota of a DescribeClientQuotas answer."""
    return tuple(
        ConfiguredQuota(entity=_entity(entry), key=value["key"], value=_bound(value["value"]))
        for entry in answer["entries"] or ()
        for value in entry["values"]
    )


def _bound(value: float) -> float:
    """The value; infinite for NaN, which controllers up to 4.3 store: neither limits anything, but NaN is not even equal to itself."""
    return inf if isnan(value) else float(value)


def _entity(entry: Answer) -> Entity:
    return {part["entity_type"]: part["entity_name"] for part in entry["entity"]}


def cluster(answer: Answer) -> ClusterDescription:
    """The cluster of a DescribeCluster answer."""
    nodes = tuple(map(_broker, answer["brokers"]))
    return ClusterDescription(cluster_id=answer["cluster_id"], nodes=nodes)


def release(answer: Answer) -> KafkaRelease | None:
    """The release in an ApiVersions answer, by the newest `metadata.version` that the broker supports; None where it names none."""
    for feature in answer.get("supported_features") or ():
        if feature["name"] == _METADATA_VERSION:
            return KafkaRelease.of_metadata_version(feature["max_version"])
    return None


def brokers(answer: Answer) -> RegisteredBrokers:
    """The brokers of a DescribeCluster answer; version 2 has for each whether it is fenced."""
    found = answer["brokers"]
    return RegisteredBrokers(
        nodes=tuple(map(_broker, found)), with_fenced=bool(found) and all("is_fenced" in broker for broker in found)
    )


def _broker(broker: Answer) -> Node:
    return Node(node_id=broker["broker_id"], host=broker["host"], port=broker["port"], rack=broker["rack"])


def configs(answer: Answer) -> dict[str, str | None]:
    """The values of a DescribeConfigs answer by key."""
    return {config["name"]: config["value"] for result in answer["results"] for config in result["configs"]}


def listener_rate_keys(found: Mapping[str, str | None]) -> list[str]:
    """The keys with the connection rates of a broker's listeners, by its `SETTINGS`."""
    listeners = (found.get(_LISTENERS) or "").split(",")
    names = [text.partition("://")[0].strip().lower() for text in listeners]
    return [f"listener.name.{name}.{CONNECTION_RATE}" for name in names if name]


def settings(node_id: int, found: Mapping[str, str | None]) -> BrokerSettings:
    """
    The settings of a broker by its values of `SETTINGS` and `listener_rate_keys`.

    Raises `AdminRequestFailed` when one is missing or no number. Limits are never missing: without one there is none.
    """

    def number(key: str) -> int:
        try:
            return int(found[key] or "")
        except (KeyError, TypeError, ValueError):
            raise AdminRequestFailed("DescribeConfigs", None, f"broker {node_id} does not report {key}") from None

    return BrokerSettings(
        node_id=node_id,
        num_io_threads=number("num.io.threads"),
        num_network_threads=number("num.network.threads"),
        quota_samples=number("quota.window.num"),
        quota_window_seconds=number("quota.window.size.seconds"),
        controller_quota_samples=number("controller.quota.window.num"),
        controller_quota_window_seconds=number("controller.quota.window.size.seconds"),
        client_quota_callback_class=found.get("client.quota.callback.class") or None,
        rates={
            key: number(key)
            for key in (*_RATES, *listener_rate_keys(found))
            if found.get(key) is not None and number(key) != _unlimited(key)
        },
    )


def _unlimited(key: str) -> int:
    """What a rate is that limits nothing."""
    return INT_MAX if key.endswith(CONNECTION_RATE) else LONG_MAX


def quorum_leader(answer: Answer) -> int | None:
    """The leader of a DescribeQuorum answer, or None while there is none."""
    leaders = [partition["leader_id"] for topic in answer["topics"] for partition in topic["partitions"]]
    return next((int(leader) for leader in leaders if leader >= 0), None)


def quorum_voters(answer: Answer) -> QuorumVoters:
    """The voters of a DescribeQuorum answer, with the first listener of each where version 2 has them."""
    node_ids = {
        voter["replica_id"]
        for topic in answer["topics"]
        for partition in topic["partitions"]
        for voter in partition["current_voters"]
    }
    nodes = (
        Node(node_id=node["node_id"], host=node["listeners"][0]["host"], port=node["listeners"][0]["port"])
        for node in answer.get("nodes") or ()
        if node["listeners"]
    )
    return QuorumVoters(node_ids=tuple(sorted(node_ids)), nodes=tuple(nodes))


def by_entity(changes: Sequence[QuotaChange]) -> list[tuple[Entity, list[QuotaChange]]]:
    """Changes grouped by entity, because two entries for one entity in a request are refused (error 42)."""
    grouped: dict[frozenset[tuple[str, str | None]], list[QuotaChange]] = {}
    for change in changes:
        grouped.setdefault(frozenset(change.entity.items()), []).append(change)
    return [(group[0].entity, group) for group in grouped.values()]
