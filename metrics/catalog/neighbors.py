"""The quotas beside those of clients: connections (KIP-612), replication, tiered storage."""

from __future__ import annotations

from .family import gauge

BROKER_CONNECTIONS_PER_SECOND = gauge(
    "kafka_quota_broker_connections_per_second",
    "New connections per second of the broker; if it has several listeners, without connections to the inter-broker "
    "listener.",
    ("broker",),
    "connections/s",
    "kafka.server:type=socket-server-metrics broker-connection-accept-rate",
)

BROKER_CONNECTION_LIMIT = gauge(
    "kafka_quota_broker_connection_limit_per_second",
    "Limit of new connections per second of the broker; absent when unlimited.",
    ("broker",),
    "connections/s",
    "max.connection.creation.rate",
)

LISTENER_CONNECTIONS_PER_SECOND = gauge(
    "kafka_quota_listener_connections_per_second",
    "New connections per second of this listener.",
    ("broker", "listener"),
    "connections/s",
    "kafka.server:type=socket-server-metrics,listener=L connection-accept-rate",
)

LISTENER_CONNECTION_LIMIT = gauge(
    "kafka_quota_listener_connection_limit_per_second",
    "Limit of new connections per second of this listener, its own or the broker's; absent when unlimited.",
    ("broker", "listener"),
    "connections/s",
    "listener.name.L.max.connection.creation.rate",
)

LISTENER_CONNECTION_THROTTLE_SECONDS = gauge(
    "kafka_quota_listener_connection_throttle_seconds",
    "Average delay before this listener accepts the next connection, 0 without delays.",
    ("broker", "listener"),
    "seconds",
    "kafka.server:type=socket-server-metrics,listener=L connection-accept-throttle-time",
)

IP_CONNECTIONS_PER_SECOND = gauge(
    "kafka_quota_ip_connections_per_second",
    "New connections per second of this IP address; absent without a limit.",
    ("broker", "ip"),
    "connections/s",
    "kafka.server:type=socket-server-metrics,ip=A connection-accept-rate",
)

IP_CONNECTION_LIMIT = gauge(
    "kafka_quota_ip_connection_limit_per_second",
    "Limit of new connections per second of this IP address; absent if the limit may come from a rule for a host name.",
    ("broker", "ip"),
    "connections/s",
    "connection_creation_rate",
)

IP_CONNECTION_THROTTLE_SECONDS = gauge(
    "kafka_quota_ip_connection_throttle_seconds",
    "Average delay of connections that the broker refused for the limit of their IP address, 0 without refusals.",
    ("broker", "listener"),
    "seconds",
    "kafka.server:type=socket-server-metrics,listener=L ip-connection-accept-throttle-time",
)

REPLICATION_BYTES_PER_SECOND = gauge(
    "kafka_quota_replication_bytes_per_second",
    "Bytes per second of throttled replicas sent (leader) or fetched (follower), or of all replicas moved between "
    "log directories (alter_log_dirs); absent until the first.",
    ("broker", "direction"),
    "bytes/s",
    "kafka.server:type=LeaderReplication, FollowerReplication, AlterLogDirsReplication byte-rate",
)

REPLICATION_LIMIT = gauge(
    "kafka_quota_replication_limit_bytes_per_second",
    "Limit of throttled replication on this broker, used or not; absent when unlimited.",
    ("broker", "direction"),
    "bytes/s",
    "leader.replication.throttled.rate, follower.replication.throttled.rate, "
    "replica.alter.log.dirs.io.max.bytes.per.second",
)

REMOTE_STORAGE_BYTES_PER_SECOND = gauge(
    "kafka_quota_remote_storage_bytes_per_second",
    "Bytes per second copied to or fetched from the remote storage.",
    ("broker", "direction"),
    "bytes/s",
    "kafka.server:type=RLMCopy, RLMFetch byte-rate",
)

REMOTE_STORAGE_LIMIT = gauge(
    "kafka_quota_remote_storage_limit_bytes_per_second",
    "Limit of bytes copied to or fetched from the remote storage, used or not; absent when unlimited.",
    ("broker", "direction"),
    "bytes/s",
    "remote.log.manager.copy.max.bytes.per.second, remote.log.manager.fetch.max.bytes.per.second",
)

REMOTE_STORAGE_THROTTLE_SECONDS = gauge(
    "kafka_quota_remote_storage_throttle_time_seconds",
    "Average throttle time of transfers to (copy) or from (fetch) the remote storage, 0 without throttles.",
    ("broker", "direction"),
    "seconds",
    "kafka.server:type=RemoteLogManager remote-copy-throttle-time-avg, remote-fetch-throttle-time-avg",
)
