"""Families of brokers and controllers: their reports of themselves."""

from __future__ import annotations

from .family import counter, gauge

DELAY_QUEUE_SIZE = gauge(
    "kafka_quota_delay_queue_size",
    "Connections that the broker has muted for this quota type now.",
    ("quota_type", "broker"),
    "connections",
    "kafka.server:type=* queue-size",
)

DELAY_QUEUE_SIZE_MAX = gauge(
    "kafka_quota_delay_queue_size_max",
    "Most connections muted at once for this quota type within collection.sample_window_seconds; absent without "
    "sampling.",
    ("quota_type", "broker"),
    "connections",
    "kafka.server:type=* queue-size",
)

EXEMPT_REQUEST_THREADS = gauge(
    "kafka_quota_exempt_request_threads",
    "Request time that no quota counts, in threads.",
    ("broker",),
    "threads",
    "kafka.server:type=Request exempt-request-time",
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
    "Throttle time in responses since the broker started, by request; absent for topic requests under KRaft, where "
    "Kafka does not count it.",
    ("broker", "request"),
    "seconds",
    "kafka.network:type=RequestMetrics,name=ThrottleTimeMs",
)

THROTTLING_ERRORS = counter(
    "kafka_quota_throttling_errors_total",
    "Responses with error 89 (THROTTLING_QUOTA_EXCEEDED) since the node started, by request; KRaft counts each "
    "twice, on broker and controller.",
    ("broker", "request"),
    "errors",
    "kafka.network:type=RequestMetrics,name=ErrorsPerSec,error=THROTTLING_QUOTA_EXCEEDED",
)

CONTROLLER_EVENT_QUEUE_SECONDS = counter(
    "kafka_quota_controller_event_queue_seconds_total",
    "Time that events waited in the queue of the active controller since it started.",
    ("broker",),
    "seconds",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs",
)

CONTROLLER_EVENTS = counter(
    "kafka_quota_controller_events_total",
    "Events that the active controller handled since it started.",
    ("broker",),
    "events",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs",
)

REQUEST_HANDLER_IDLE = gauge(
    "kafka_quota_request_handler_idle_ratio",
    "Share of the last minute or so in which request handlers waited for requests, all pools; up to 2 on a combined "
    "node before KIP-1207.",
    ("broker",),
    "ratio",
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent OneMinuteRate",
)

REQUEST_HANDLER_IDLE_SECONDS = counter(
    "kafka_quota_request_handler_idle_time_seconds_total",
    "Time that request handlers waited for requests since the node started, the average of all threads.",
    ("broker",),
    "seconds",
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent Count / 1e9",
)

REQUEST_HANDLER_POOL_IDLE = gauge(
    "kafka_quota_request_handler_pool_idle_ratio",
    "As kafka_quota_request_handler_idle_ratio for the pool of the broker or of the controller; absent before "
    "KIP-1207.",
    ("broker", "pool"),
    "ratio",
    "kafka.server:type=KafkaRequestHandlerPool,name=(Broker|Controller)RequestHandlerAvgIdlePercent OneMinuteRate",
)

REQUEST_HANDLER_POOL_IDLE_SECONDS = counter(
    "kafka_quota_request_handler_pool_idle_time_seconds_total",
    "As kafka_quota_request_handler_idle_time_seconds_total for the pool of the broker or of the controller; absent "
    "before KIP-1207.",
    ("broker", "pool"),
    "seconds",
    "kafka.server:type=KafkaRequestHandlerPool,name=(Broker|Controller)RequestHandlerAvgIdlePercent Count / 1e9",
)

NETWORK_PROCESSOR_IDLE = gauge(
    "kafka_quota_network_processor_idle_ratio",
    "Share of the last 30 to 60 s in which network threads waited for connections; of a combined node, the network "
    "threads of the part that started first.",
    ("broker",),
    "ratio",
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
)

CONTROLLER_EVENT_IDLE = gauge(
    "kafka_quota_controller_event_idle_ratio",
    "Share of time in which the controller's event thread waited for events, since the last read of any agent "
    "(KIP-1190).",
    ("broker",),
    "ratio",
    "kafka.controller:type=ControllerEventManager,name=AvgIdleRatio",
)

REQUEST_QUEUE_SIZE = gauge(
    "kafka_quota_request_queue_size",
    "Requests that wait for a request handler now; of a combined node, requests to the part that started first.",
    ("broker",),
    "requests",
    "kafka.network:type=RequestChannel,name=RequestQueueSize",
)

REQUEST_QUEUE_SECONDS = gauge(
    "kafka_quota_request_queue_seconds",
    "Time that requests waited for a request handler, a percentile of the last ones, mostly of 5 minutes; absent "
    "without requests.",
    ("broker", "request", "percentile"),
    "seconds",
    "kafka.network:type=RequestMetrics,name=RequestQueueTimeMs 50thPercentile, 95thPercentile, 99thPercentile / 1000",
)

STALE_ENTITIES = gauge(
    "kafka_quota_stale_entities",
    "Entities of earlier rules or of an earlier controller, which are left out.",
    ("quota_type", "broker"),
    "entities",
    "computed",
)

UTILIZATION_DISAGREEMENTS = gauge(
    "quotascope_utilization_disagreements",
    "Entities whose reported and computed utilization differ by more than 2 points and 2 percent, because limits are "
    "out of date; absent without KIP-1373.",
    ("broker",),
    "entities",
    "quota-utilization / 100, compared with usage divided by limit",
)
