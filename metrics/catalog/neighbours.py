"""The quotas beside those of clients: connections (KIP-612), replication, tiered storage."""

from __future__ import annotations

from .family import gauge

BROKER_CONNECTIONS_PER_SECOND = gauge(
    "kafka_quota_broker_connections_per_second",
    "New connections per second of the broker, over its quota window (default 11 x 1 s); where there are several listeners, without the one that brokers use among themselves.",
    ("broker",),
    "connections/s",
    "kafka.server:type=socket-server-metrics broker-connection-accept-rate",
)

BROKER_CONNECTION_LIMIT = gauge(
    "kafka_quota_broker_connection_limit_per_second",
    "Limit of new connections of the broker. Absent when unlimited.",
    ("broker",),
    "connections/s",
    "max.connection.creation.rate",
)

LISTENER_CONNECTIONS_PER_SECOND = gauge(
    "kafka_quota_listener_connections_per_second",
    "New connections per second of this listener, over the broker's quota window (default 11 x 1 s).",
    ("broker", "listener"),
    "connections/s",
    "kafka.server:type=socket-server-metrics,listener=L connection-accept-rate",
)

LISTENER_CONNECTION_LIMIT = gauge(
    "kafka_quota_listener_connection_limit_per_second",
    "Limit of new connections of this listener; one without its own has the broker's. Absent when unlimited.",
    ("broker", "listener"),
    "connections/s",
    "listener.name.L.max.connection.creation.rate or max.connection.creation.rate",
)

LISTENER_CONNECTION_THROTTLE_SECONDS = gauge(
    "kafka_quota_listener_connection_throttle_seconds",
    "Average wait of this listener before it takes the next connection, for the broker's or its own limit, over the last 30 to 60 s; 0 when there was none.",
    ("broker", "listener"),
    "seconds",
    "kafka.server:type=socket-server-metrics,listener=L connection-accept-throttle-time / 1000, NaN becomes 0",
)

IP_CONNECTIONS_PER_SECOND = gauge(
    "kafka_quota_ip_connections_per_second",
    "New connections per second of this IP address, over the broker's quota window (default 11 x 1 s). Only addresses under a limit are measured.",
    ("broker", "ip"),
    "connections/s",
    "kafka.server:type=socket-server-metrics,ip=A connection-accept-rate",
)

IP_CONNECTION_LIMIT = gauge(
    "kafka_quota_ip_connection_limit_per_second",
    "Limit of new connections in force for this IP address. Absent while it can be one of a rule that names a host, which only brokers look up.",
    ("broker", "ip"),
    "connections/s",
    "connection_creation_rate of the address or of the default",
)

IP_CONNECTION_THROTTLE_SECONDS = gauge(
    "kafka_quota_ip_connection_throttle_seconds",
    "Average delay with which connections were refused for the limit of their IP address, by listener, over the last 30 to 60 s; 0 when there were none.",
    ("broker", "listener"),
    "seconds",
    "kafka.server:type=socket-server-metrics,listener=L ip-connection-accept-throttle-time / 1000, NaN becomes 0",
)

REPLICATION_BYTES_PER_SECOND = gauge(
    "kafka_quota_replication_bytes_per_second",
    "Bytes per second of throttled replicas sent (leader) or fetched (follower), or of any moved between log directories (alter_log_dirs), over the replication quota window (default 11 x 1 s). Absent until the first.",
    ("broker", "direction"),
    "bytes/s",
    "kafka.server:type=LeaderReplication, FollowerReplication and AlterLogDirsReplication byte-rate",
)

REPLICATION_LIMIT = gauge(
    "kafka_quota_replication_limit_bytes_per_second",
    "Limit of throttled replication on this broker, used or not. Absent when unlimited.",
    ("broker", "direction"),
    "bytes/s",
    "leader.replication.throttled.rate, follower.replication.throttled.rate, replica.alter.log.dirs.io.max.bytes.per.second",
)

REMOTE_STORAGE_BYTES_PER_SECOND = gauge(
    "kafka_quota_remote_storage_bytes_per_second",
    "Bytes per second copied to or fetched from the remote storage, over its quota window (default 11 x 1 s).",
    ("broker", "direction"),
    "bytes/s",
    "kafka.server:type=RLMCopy and RLMFetch byte-rate",
)

REMOTE_STORAGE_LIMIT = gauge(
    "kafka_quota_remote_storage_limit_bytes_per_second",
    "Limit of bytes copied to or fetched from the remote storage, used or not. Absent when unlimited.",
    ("broker", "direction"),
    "bytes/s",
    "remote.log.manager.copy.max.bytes.per.second, remote.log.manager.fetch.max.bytes.per.second",
)

REMOTE_STORAGE_THROTTLE_SECONDS = gauge(
    "kafka_quota_remote_storage_throttle_time_seconds",
    "Average throttle of transfers to (copy) or from (fetch) the remote storage over the last 30 to 60 s, 0 when there were none.",
    ("broker", "direction"),
    "seconds",
    "kafka.server:type=RemoteLogManager remote-copy-throttle-time-avg and remote-fetch-throttle-time-avg / 1000, NaN becomes 0",
)
