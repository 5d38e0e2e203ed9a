"""
Every metric family of quotascope, declared once.

The exporter, the generated pages and whatever reads the exposition take names,
types, labels and units from here, so that they cannot drift apart. Base units
(seconds, bytes, ratio); request time is counted in threads, 1 being one thread
busy all the time (Kafka's 100 percent).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class FamilyType(StrEnum):
    """The Prometheus type of a family."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric family: what it is called, what it means, how its series differ."""

    name: str
    """Full name; a counter ends in ``_total``."""
    type: FamilyType
    help: str
    """One sentence for the ``HELP`` line: meaning and window."""
    labels: tuple[str, ...] = ()
    unit: str
    """Unit in words, for the documentation."""
    source: str
    """Where the value comes from: an MBean attribute, a request of the Admin API, or what it is computed from."""


USAGE_LABELS = ("broker", "user", "client_id")
TYPED_USAGE_LABELS = ("quota_type", *USAGE_LABELS)
LIMIT_LABELS = ("user", "client_id")
RULE_LABELS = ("level", "rule_user", "rule_client_id")
"""A default dimension reads ``<default>``; ``level`` tells it from an entity that is really called so."""


def _gauge(
    name: str, text: str, labels: tuple[str, ...], unit: str, source: str
) -> Family:
    return Family(
        name=name,
        type=FamilyType.GAUGE,
        help=text,
        labels=labels,
        unit=unit,
        source=source,
    )


def _counter(
    name: str, text: str, labels: tuple[str, ...], unit: str, source: str
) -> Family:
    return Family(
        name=name,
        type=FamilyType.COUNTER,
        help=text,
        labels=labels,
        unit=unit,
        source=source,
    )


PRODUCE_BYTES_PER_SECOND = _gauge(
    "kafka_quota_produce_bytes_per_second",
    "Bytes per second produced under this quota entity, over the broker's quota window (default 11 x 1 s).",
    USAGE_LABELS,
    "bytes/s",
    "kafka.server:type=Produce byte-rate",
)
FETCH_BYTES_PER_SECOND = _gauge(
    "kafka_quota_fetch_bytes_per_second",
    "Bytes per second fetched under this quota entity, over the broker's quota window (default 11 x 1 s); negative after unrecorded fetches.",
    USAGE_LABELS,
    "bytes/s",
    "kafka.server:type=Fetch byte-rate",
)
REQUEST_THREADS = _gauge(
    "kafka_quota_request_threads",
    "Request time used under this quota entity, in threads busy all the time, over the broker's quota window (default 11 x 1 s).",
    USAGE_LABELS,
    "threads",
    "kafka.server:type=Request request-time / 100",
)
CONTROLLER_MUTATIONS_PER_SECOND = _gauge(
    "kafka_quota_controller_mutations_per_second",
    "Partitions created, added or deleted per second under this quota entity, over the controller's metrics window (default 2 x 30 s).",
    USAGE_LABELS,
    "mutations/s",
    "kafka.server:type=ControllerMutation mutation-rate",
)
CONTROLLER_MUTATION_TOKENS = _gauge(
    "kafka_quota_controller_mutation_tokens",
    "Mutations still allowed at once; negative while further ones are refused. Absent without a limit.",
    USAGE_LABELS,
    "mutations",
    "kafka.server:type=ControllerMutation tokens",
)
THROTTLE_TIME_SECONDS = _gauge(
    "kafka_quota_throttle_time_seconds",
    "Average of the throttles of the last 30 to 60 s, 0 when there were none; it lingers after the last one.",
    TYPED_USAGE_LABELS,
    "seconds",
    "throttle-time / 1000, NaN becomes 0",
)
THROTTLED_SECONDS = _counter(
    "kafka_quota_throttled_seconds_total",
    "Seconds of throttle time imposed on this quota entity. Only where the quotascope engine enforces.",
    TYPED_USAGE_LABELS,
    "seconds",
    "throttle-time-total / 1000 of an embedded engine",
)
THROTTLED_REQUESTS = _counter(
    "kafka_quota_throttled_requests_total",
    "Requests of this quota entity that were throttled. Only where the quotascope engine enforces.",
    TYPED_USAGE_LABELS,
    "requests",
    "throttle-count of an embedded engine",
)
REJECTED_MUTATIONS = _counter(
    "kafka_quota_rejected_mutations_total",
    "Mutations refused with THROTTLING_QUOTA_EXCEEDED (error 89). Only where the quotascope engine enforces.",
    USAGE_LABELS,
    "mutations",
    "rejection-count of an embedded engine",
)

PRODUCE_LIMIT = _gauge(
    "kafka_quota_produce_limit_bytes_per_second",
    "Produce limit in force for this quota entity on each broker. Absent when unlimited.",
    LIMIT_LABELS,
    "bytes/s",
    "producer_byte_rate",
)
FETCH_LIMIT = _gauge(
    "kafka_quota_fetch_limit_bytes_per_second",
    "Fetch limit in force for this quota entity on each broker. Absent when unlimited.",
    LIMIT_LABELS,
    "bytes/s",
    "consumer_byte_rate",
)
REQUEST_LIMIT = _gauge(
    "kafka_quota_request_limit_threads",
    "Request time limit in force for this quota entity on each broker, in threads. Absent when unlimited.",
    LIMIT_LABELS,
    "threads",
    "request_percentage / 100",
)
CONTROLLER_MUTATION_LIMIT = _gauge(
    "kafka_quota_controller_mutation_limit_per_second",
    "Limit of partition mutations in force for this quota entity. Absent when unlimited.",
    LIMIT_LABELS,
    "mutations/s",
    "controller_mutation_rate",
)
CONTROLLER_MUTATION_BURST = _gauge(
    "kafka_quota_controller_mutation_burst_tokens",
    "Size of the token bucket: limit x controller.quota.window.num x controller.quota.window.size.seconds.",
    LIMIT_LABELS,
    "mutations",
    "computed",
)
RULE_INFO = _gauge(
    "kafka_quota_rule_info",
    "Always 1: the configured rule that decides for this quota entity.",
    ("quota_type", *LIMIT_LABELS, *RULE_LABELS),
    "",
    "precedence of the configured quotas",
)
UTILIZATION = _gauge(
    "kafka_quota_utilization_ratio",
    "Usage divided by limit on this broker: 1 is the limit.",
    TYPED_USAGE_LABELS,
    "ratio",
    "computed",
)
BURST_USED = _gauge(
    "kafka_quota_controller_mutation_burst_used_ratio",
    "1 - tokens / burst: 1 is an empty bucket, above 1 is debt.",
    USAGE_LABELS,
    "ratio",
    "computed",
)
THROTTLE_CAUSE_INFO = _gauge(
    "kafka_quota_throttle_cause_info",
    "Always 1, inferred: own, or controller_mutation for a request throttle that a controller mutation quota put there.",
    (*TYPED_USAGE_LABELS, "cause"),
    "",
    "inferred from throttle time, request time and the controller's tokens",
)

RULE_PRODUCE_LIMIT = _gauge(
    "kafka_quota_rule_produce_limit_bytes_per_second",
    "Configured produce limit of this rule, used or not.",
    RULE_LABELS,
    "bytes/s",
    "producer_byte_rate",
)
RULE_FETCH_LIMIT = _gauge(
    "kafka_quota_rule_fetch_limit_bytes_per_second",
    "Configured fetch limit of this rule, used or not.",
    RULE_LABELS,
    "bytes/s",
    "consumer_byte_rate",
)
RULE_REQUEST_LIMIT = _gauge(
    "kafka_quota_rule_request_limit_threads",
    "Configured request time limit of this rule in threads, used or not.",
    RULE_LABELS,
    "threads",
    "request_percentage / 100",
)
RULE_CONTROLLER_MUTATION_LIMIT = _gauge(
    "kafka_quota_rule_controller_mutation_limit_per_second",
    "Configured limit of partition mutations of this rule, used or not.",
    RULE_LABELS,
    "mutations/s",
    "controller_mutation_rate",
)
RULE_CONNECTION_LIMIT = _gauge(
    "kafka_quota_rule_connection_limit_per_second",
    "Configured limit of new connections of this IP address, used or not; the default rule has the ip <default>.",
    ("ip",),
    "connections/s",
    "connection_creation_rate",
)
RULES = _gauge(
    "kafka_quota_rules",
    "Number of configured rules.",
    ("quota_key",),
    "rules",
    "DescribeClientQuotas",
)
LIMIT_CHANGES = _counter(
    "quotascope_limit_changes_total",
    "Configured limits that were set, changed or removed since this exporter started.",
    ("quota_key",),
    "changes",
    "two successive reads of DescribeClientQuotas",
)

DELAY_QUEUE_SIZE = _gauge(
    "kafka_quota_delay_queue_size",
    "Connections muted right now by this kind of quota.",
    ("quota_type", "broker"),
    "connections",
    "queue-size",
)
EXEMPT_REQUEST_THREADS = _gauge(
    "kafka_quota_exempt_request_threads",
    "Request time that no quota counts, in threads, over the broker's metrics window (default 2 x 30 s).",
    ("broker",),
    "threads",
    "kafka.server:type=Request exempt-request-time / 100",
)
REQUEST_CAPACITY_THREADS = _gauge(
    "kafka_quota_request_capacity_threads",
    "Threads that can serve requests: num.io.threads + num.network.threads.",
    ("broker",),
    "threads",
    "DescribeConfigs",
)
REQUEST_THROTTLED_SECONDS = _counter(
    "kafka_quota_request_throttled_seconds_total",
    "Seconds of throttle time told in responses since the broker started, by request.",
    ("broker", "request"),
    "seconds",
    "kafka.network:type=RequestMetrics,name=ThrottleTimeMs Mean x Count / 1000, FetchConsumer and FetchFollower left out",
)
THROTTLING_ERRORS = _counter(
    "kafka_quota_throttling_errors_total",
    "Responses with THROTTLING_QUOTA_EXCEEDED (error 89) since the node started, by request. KRaft counts each twice: on the broker and on the controller.",
    ("broker", "request"),
    "errors",
    "kafka.network:type=RequestMetrics,name=ErrorsPerSec,error=THROTTLING_QUOTA_EXCEEDED Count",
)
BROKER_CONNECTIONS_PER_SECOND = _gauge(
    "kafka_quota_broker_connections_per_second",
    "New connections per second of the broker, over its quota window (default 11 x 1 s); where there are several listeners, without the one that brokers use among themselves.",
    ("broker",),
    "connections/s",
    "kafka.server:type=socket-server-metrics broker-connection-accept-rate",
)
BROKER_CONNECTION_LIMIT = _gauge(
    "kafka_quota_broker_connection_limit_per_second",
    "Limit of new connections of the broker. Absent when unlimited.",
    ("broker",),
    "connections/s",
    "max.connection.creation.rate",
)
LISTENER_CONNECTIONS_PER_SECOND = _gauge(
    "kafka_quota_listener_connections_per_second",
    "New connections per second of this listener, over the broker's quota window (default 11 x 1 s).",
    ("broker", "listener"),
    "connections/s",
    "kafka.server:type=socket-server-metrics,listener=L connection-accept-rate",
)
LISTENER_CONNECTION_LIMIT = _gauge(
    "kafka_quota_listener_connection_limit_per_second",
    "Limit of new connections of this listener; one without its own has the broker's. Absent when unlimited.",
    ("broker", "listener"),
    "connections/s",
    "listener.name.L.max.connection.creation.rate or max.connection.creation.rate",
)
LISTENER_CONNECTION_THROTTLE_SECONDS = _gauge(
    "kafka_quota_listener_connection_throttle_seconds",
    "Average wait of this listener before it takes the next connection, for the broker's or its own limit, over the last 30 to 60 s; 0 when there was none.",
    ("broker", "listener"),
    "seconds",
    "kafka.server:type=socket-server-metrics,listener=L connection-accept-throttle-time / 1000, NaN becomes 0",
)
IP_CONNECTIONS_PER_SECOND = _gauge(
    "kafka_quota_ip_connections_per_second",
    "New connections per second of this IP address, over the broker's quota window (default 11 x 1 s). Only addresses under a limit are measured.",
    ("broker", "ip"),
    "connections/s",
    "kafka.server:type=socket-server-metrics,ip=A connection-accept-rate",
)
IP_CONNECTION_LIMIT = _gauge(
    "kafka_quota_ip_connection_limit_per_second",
    "Limit of new connections in force for this IP address. Absent while it can be one of a rule that names a host, which only brokers look up.",
    ("broker", "ip"),
    "connections/s",
    "connection_creation_rate of the address or of the default",
)
IP_CONNECTION_THROTTLE_SECONDS = _gauge(
    "kafka_quota_ip_connection_throttle_seconds",
    "Average delay with which connections were refused for the limit of their IP address, by listener, over the last 30 to 60 s; 0 when there were none.",
    ("broker", "listener"),
    "seconds",
    "kafka.server:type=socket-server-metrics,listener=L ip-connection-accept-throttle-time / 1000, NaN becomes 0",
)
REPLICATION_BYTES_PER_SECOND = _gauge(
    "kafka_quota_replication_bytes_per_second",
    "Bytes per second of throttled replicas sent (leader) or fetched (follower), or of any moved between log directories (alter_log_dirs), over the replication quota window (default 11 x 1 s). Absent until the first.",
    ("broker", "direction"),
    "bytes/s",
    "kafka.server:type=LeaderReplication, FollowerReplication and AlterLogDirsReplication byte-rate",
)
REPLICATION_LIMIT = _gauge(
    "kafka_quota_replication_limit_bytes_per_second",
    "Limit of throttled replication on this broker, used or not. Absent when unlimited.",
    ("broker", "direction"),
    "bytes/s",
    "leader.replication.throttled.rate, follower.replication.throttled.rate, replica.alter.log.dirs.io.max.bytes.per.second",
)
REMOTE_STORAGE_BYTES_PER_SECOND = _gauge(
    "kafka_quota_remote_storage_bytes_per_second",
    "Bytes per second copied to or fetched from the remote storage, over its quota window (default 11 x 1 s).",
    ("broker", "direction"),
    "bytes/s",
    "kafka.server:type=RLMCopy and RLMFetch byte-rate",
)
REMOTE_STORAGE_LIMIT = _gauge(
    "kafka_quota_remote_storage_limit_bytes_per_second",
    "Limit of bytes copied to or fetched from the remote storage, used or not. Absent when unlimited.",
    ("broker", "direction"),
    "bytes/s",
    "remote.log.manager.copy.max.bytes.per.second, remote.log.manager.fetch.max.bytes.per.second",
)
REMOTE_STORAGE_THROTTLE_SECONDS = _gauge(
    "kafka_quota_remote_storage_throttle_time_seconds",
    "Average throttle of transfers to (copy) or from (fetch) the remote storage over the last 30 to 60 s, 0 when there were none.",
    ("broker", "direction"),
    "seconds",
    "kafka.server:type=RemoteLogManager remote-copy-throttle-time-avg and remote-fetch-throttle-time-avg / 1000, NaN becomes 0",
)
CONTROLLER_EVENT_QUEUE_SECONDS = _counter(
    "kafka_quota_controller_event_queue_seconds_total",
    "Time that events of the active controller waited to be handled, since it started: what to watch when choosing a mutation quota (KIP-599).",
    ("broker",),
    "seconds",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs Mean x Count / 1000",
)
CONTROLLER_EVENTS = _counter(
    "kafka_quota_controller_events_total",
    "Events that the active controller handled since it started.",
    ("broker",),
    "events",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs Count",
)
STALE_ENTITIES = _gauge(
    "kafka_quota_stale_entities",
    "Entities left out because no rule in force would record them: left over from earlier rules or an earlier controller.",
    ("quota_type", "broker"),
    "entities",
    "computed",
)

SOURCE_UP = _gauge(
    "quotascope_source_up",
    "1 when the last read of this source succeeded, else 0.",
    ("source",),
    "",
    "the last collection",
)
SOURCE_DURATION_SECONDS = _gauge(
    "quotascope_source_duration_seconds",
    "How long the last read of this source took.",
    ("source",),
    "seconds",
    "the last collection",
)
SOURCE_READINGS = _gauge(
    "quotascope_source_readings",
    "Numbers that the last successful read of this source gave.",
    ("source",),
    "readings",
    "the last collection",
)
SOURCE_DIALECT_INFO = _gauge(
    "quotascope_source_dialect_info",
    "Always 1: how this source is spoken to.",
    ("source", "dialect"),
    "",
    "configuration",
)
LIMITS_AGE_SECONDS = _gauge(
    "quotascope_limits_age_seconds",
    "Age of the configured limits that were joined. Absent until they were read once.",
    (),
    "seconds",
    "the last successful read of the limits",
)
LIMITS_REFRESH_ERRORS = _counter(
    "quotascope_limits_refresh_errors_total",
    "Failed reads of the configured limits since this exporter started.",
    (),
    "errors",
    "the limits reader",
)
SNAPSHOT_AGE_SECONDS = _gauge(
    "quotascope_snapshot_age_seconds",
    "Age of the numbers shown.",
    (),
    "seconds",
    "the last collection",
)
ENTITIES = _gauge(
    "quotascope_entities",
    "Quota entities by what became of them: exported, or stale.",
    ("state",),
    "entities",
    "the last collection",
)
BUILD_INFO = _gauge(
    "quotascope_build_info",
    "Always 1: the version of this exporter.",
    ("version",),
    "",
    "the installed package",
)


def families() -> Iterator[Family]:
    """All families in the order of declaration."""
    return (value for value in globals().values() if isinstance(value, Family))
