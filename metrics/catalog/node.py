"""What brokers and controllers say of themselves."""

from __future__ import annotations

from .family import counter, gauge

DELAY_QUEUE_SIZE = gauge(
    "kafka_quota_delay_queue_size",
    "Connections muted right now by this kind of quota.",
    ("quota_type", "broker"),
    "connections",
    "queue-size",
)

DELAY_QUEUE_SIZE_MAX = gauge(
    "kafka_quota_delay_queue_size_max",
    "Most connections that were muted at once by this kind of quota in the last minute (collection.sample_window_seconds), the same for every scraper. Only with sampling between scrapes.",
    ("quota_type", "broker"),
    "connections",
    "samples of queue-size",
)

EXEMPT_REQUEST_THREADS = gauge(
    "kafka_quota_exempt_request_threads",
    "Request time that no quota counts, in threads, over the broker's metrics window (default 2 x 30 s).",
    ("broker",),
    "threads",
    "kafka.server:type=Request exempt-request-time / 100",
)

REQUEST_CAPACITY_THREADS = gauge(
    "kafka_quota_request_capacity_threads",
    "Threads that can serve requests: num.io.threads + num.network.threads.",
    ("broker",),
    "threads",
    "DescribeConfigs",
)

REQUEST_THROTTLED_SECONDS = counter(
    "kafka_quota_request_throttled_seconds_total",
    "Seconds of throttle time that responses reported since the broker started, by request, as Kafka's own bean counts them. Absent for CreateTopics, CreatePartitions and DeleteTopics while Kafka's is 0, as under KRaft, where it stays 0 although clients wait.",
    ("broker", "request"),
    "seconds",
    "kafka.network:type=RequestMetrics,name=ThrottleTimeMs Mean x Count / 1000, FetchConsumer and FetchFollower left out",
)

THROTTLING_ERRORS = counter(
    "kafka_quota_throttling_errors_total",
    "Responses with THROTTLING_QUOTA_EXCEEDED (error 89) since the node started, by request. KRaft counts each twice: on the broker and on the controller.",
    ("broker", "request"),
    "errors",
    "kafka.network:type=RequestMetrics,name=ErrorsPerSec,error=THROTTLING_QUOTA_EXCEEDED Count",
)

CONTROLLER_EVENT_QUEUE_SECONDS = counter(
    "kafka_quota_controller_event_queue_seconds_total",
    "Time that events of the active controller waited to be handled, since it started: what to watch when choosing a mutation quota (KIP-599).",
    ("broker",),
    "seconds",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs Mean x Count / 1000",
)

CONTROLLER_EVENTS = counter(
    "kafka_quota_controller_events_total",
    "Events that the active controller handled since it started.",
    ("broker",),
    "events",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs Count",
)

STALE_ENTITIES = gauge(
    "kafka_quota_stale_entities",
    "Entities left out because no rule in force would record them: left over from earlier rules or an earlier controller.",
    ("quota_type", "broker"),
    "entities",
    "computed",
)

UTILIZATION_DISAGREEMENTS = gauge(
    "quotascope_utilization_disagreements",
    "Entities for which the utilization that the broker reports differs from the computed one by more than 2 points and 2 percent: the limits here or there are out of date. Only from brokers with KIP-1373.",
    ("broker",),
    "entities",
    "quota-utilization / 100, compared with usage divided by limit",
)
