"""
Answers of the Admin API, read from plain mappings with the field names of Kafka's protocol.

Libraries differ in how they ask; what comes back is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from quotascope.metrics.kafka.node_quota_types import ReplicationQuotaType, RLMQuotaType
from quotascope.metrics.kafka.numbers import INT_MAX, LONG_MAX
from quotascope.metrics.kafka.protocol import ErrorCode
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange

from .errors import AdminRequestFailed, ClientError, PermissionMissing, UnsupportedByCluster
from .quota_admin import (
    BrokerSettings,
    ClusterDescription,
    ConfigOrigin,
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
"""
The operation on the cluster that each request needs (KafkaApis and ControllerApis; tried with StandardAuthorizer).
"""

SINCE: Final = {
    "DescribeClientQuotas": "2.6",
    "AlterClientQuotas": "2.6",
    "DescribeCluster": "2.8",
    "DescribeQuorum": "3.0 in KRaft mode",
}
"""The release of Kafka that first knew a request (KIP-546, KIP-700, KIP-595)."""
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
"""Config keys that every broker is asked for; its listeners have further keys, see `listener_rate_keys`."""


def check(
    request: str, answer: Answer, username: str | None, servers: Sequence[str] = (), *, is_secured: bool = False
) -> None:
    """
    Raise an error if an answer has an error code.

    `PermissionMissing`, with the servers and the protocol, or `AdminRequestFailed`.
    """
    for part in _parts(answer):
        code = part.get("error_code", 0)
        if code != 0:
            if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED and request in OPERATIONS:
                raise PermissionMissing(
                    request=request,
                    operation=OPERATIONS[request],
                    username=username,
                    servers=servers,
                    is_secured=is_secured,
                )
            raise _error(request, code, part.get("error_message"))


def _parts(answer: Answer) -> Iterator[Answer]:
    """Yield all parts of an answer that may have an error code: the answer itself, and the answers to single items."""
    yield answer
    yield from answer.get("results") or ()
    yield from answer.get("entries") or ()
    for topic in answer.get("topics") or ():
        yield from topic["partitions"]


def _error(request: str, code: int, message: str | None) -> ClientError:
    if code == ErrorCode.UNSUPPORTED_VERSION:
        return UnsupportedByCluster(request, SINCE.get(request, ""))
    return AdminRequestFailed(request, code, message or "no reason given")


def quotas(answer: Answer) -> tuple[ConfiguredQuota, ...]:
    """Return every quota of a DescribeClientQuotas answer."""
    return tuple(
        ConfiguredQuota(entity=_entity(entry), key=value["key"], value=_bound(value["value"]))
        for entry in answer["entries"] or ()
        for value in entry["values"]
    )


def _bound(value: float) -> float:
    """
    Return the limit; infinity for NaN, which controllers up to 4.3 store.

    Neither limits anything, but NaN does not equal itself.
    """
    return inf if isnan(value) else float(value)


def _entity(entry: Answer) -> Entity:
    return {part["entity_type"]: part["entity_name"] for part in entry["entity"]}


def cluster(answer: Answer) -> ClusterDescription:
    """Return the cluster of a DescribeCluster answer, or of a Metadata answer, which has the same fields."""
    nodes = tuple(map(_broker, answer["brokers"]))
    controller = answer.get("controller_id", -1)
    return ClusterDescription(
        cluster_id=answer["cluster_id"], nodes=nodes, controller_id=controller if controller >= 0 else None
    )


def release(answer: Answer) -> KafkaRelease | None:
    """
    Return the release in an ApiVersions answer, the newest known one for a later release.

    None where several are possible.
    """
    releases_of_broker = releases(answer)
    return (
        releases_of_broker.oldest
        if releases_of_broker is not None and releases_of_broker.newest in {releases_of_broker.oldest, None}
        else None
    )


def releases(answer: Answer) -> ReleaseRange | None:
    """
    Return the releases that the broker of an ApiVersions answer may have; None if no broker gives such an answer.

    Under KRaft the newest `metadata.version` that it supports names the release (KIP-584); otherwise the versions of
    its APIs show it.
    """
    possible = ReleaseRange.of_api_versions({api["api_key"]: api["max_version"] for api in answer["api_keys"]})
    if possible is None or possible.zookeeper:
        return possible
    for feature in answer.get("supported_features") or ():
        if feature["name"] == _METADATA_VERSION:
            level = feature["max_version"]
            named = KafkaRelease.of_metadata_version(level)
            if named is not None:
                return ReleaseRange(oldest=named, newest=named if KafkaRelease.is_known_level(level) else None)
    return possible


def brokers(answer: Answer) -> RegisteredBrokers:
    """Return the brokers of a DescribeCluster answer; version 2 reports of each whether it is fenced."""
    entries = answer["brokers"]
    return RegisteredBrokers(
        nodes=tuple(map(_broker, entries)),
        with_fenced=bool(entries) and all("is_fenced" in broker for broker in entries),
    )


def _broker(broker: Answer) -> Node:
    node_id = broker["broker_id"] if "broker_id" in broker else broker["node_id"]
    return Node(node_id=node_id, host=broker["host"], port=broker["port"], rack=broker["rack"])


def configs(answer: Answer) -> dict[str, str | None]:
    """Return the values of a DescribeConfigs answer by key."""
    return {config["name"]: config["value"] for result in answer["results"] for config in result["configs"]}


def config_origins(answer: Answer) -> dict[str, ConfigOrigin]:
    """Return where the values of a DescribeConfigs answer are set, by key; a key whose source is another is missing."""
    return {
        config["name"]: _ORIGINS[config["config_source"]]
        for result in answer["results"]
        for config in result["configs"]
        if config.get("config_source") in _ORIGINS
    }


_ORIGINS = {2: ConfigOrigin.BROKER, 3: ConfigOrigin.ALL_BROKERS, 4: ConfigOrigin.FILE}
"""Origins by `ConfigSource` of Kafka's `DescribeConfigsResponse`."""


def listener_rate_keys(values: Mapping[str, str | None]) -> list[str]:
    """Return the keys of the connection rates of a broker's listeners, from the values of its `SETTINGS`."""
    listeners = (values.get(_LISTENERS) or "").split(",")
    names = [text.partition("://")[0].strip().lower() for text in listeners]
    return [f"listener.name.{name}.{CONNECTION_RATE}" for name in names if name]


def settings(
    node_id: int, values: Mapping[str, str | None], origins: Mapping[str, ConfigOrigin] = MappingProxyType({})
) -> BrokerSettings:
    """
    Return the settings of a broker from its values of `SETTINGS` and `listener_rate_keys`, and their origins.

    Raises `AdminRequestFailed` when a key is missing or its value is no number; keys of Kafka 2.7 have defaults.
    A limit that is not reported is no limit.
    """

    def number(key: str) -> int:
        try:
            return int(values.get(key, _BEFORE_2_7.get(key)) or "")
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
        client_quota_callback_class=values.get("client.quota.callback.class") or None,
        rates={
            key: number(key)
            for key in (*_RATES, *listener_rate_keys(values))
            if values.get(key) is not None and number(key) != _unlimited(key)
        },
        origins={key: origin for key, origin in origins.items() if key in _RATES},
    )


_BEFORE_2_7: Final = {"controller.quota.window.num": "11", "controller.quota.window.size.seconds": "1"}
"""Kafka's defaults, for brokers that have no quotas of controller mutations and do not know these keys (KIP-599)."""


def _unlimited(key: str) -> int:
    """Return the value with which a rate is unlimited."""
    return INT_MAX if key.endswith(CONNECTION_RATE) else LONG_MAX


def quorum_leader(answer: Answer) -> int | None:
    """Return the leader of a DescribeQuorum answer, or None while there is none."""
    leaders = [partition["leader_id"] for topic in answer["topics"] for partition in topic["partitions"]]
    return next((int(leader) for leader in leaders if leader >= 0), None)


def quorum_voters(answer: Answer) -> QuorumVoters:
    """Return the voters of a DescribeQuorum answer, with the first listener of each where version 2 has them."""
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
    """Group changes by entity, because a request with two entries for one entity is refused (error 42)."""
    grouped: dict[frozenset[tuple[str, str | None]], list[QuotaChange]] = {}
    for change in changes:
        grouped.setdefault(frozenset(change.entity.items()), []).append(change)
    return [(group[0].entity, group) for group in grouped.values()]
