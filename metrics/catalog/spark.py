"""Families of Spark jobs: their own reports of waiting for Kafka."""

from __future__ import annotations

from .family import counter, gauge

CLIENT_LABELS = ("app", "query", "side", "user", "client_id")
"""
``app`` is spark.app.name, ``query`` a streaming query and empty for everything else, ``side`` read, write or admin, and
``user`` the configured principal.
"""

SPARK_THROTTLED_SECONDS = counter(
    "spark_kafka_throttled_seconds_total",
    "Seconds of throttle time that brokers reported to Kafka clients.",
    CLIENT_LABELS,
    "seconds",
    "throttle_time_ms of the responses",
)
SPARK_THROTTLED_RESPONSES = counter(
    "spark_kafka_throttled_responses_total",
    "Responses with a throttle time to Kafka clients.",
    CLIENT_LABELS,
    "responses",
    "responses with throttle_time_ms above 0",
)
SPARK_THROTTLE_MAX_SECONDS = gauge(
    "spark_kafka_throttle_max_seconds",
    "Longest throttle time that Kafka clients reported in the last one to two minutes.",
    CLIENT_LABELS,
    "seconds",
    "throttle_time_ms of the responses",
)
SPARK_ADMIN_QUOTA_RETRIES = counter(
    "spark_kafka_admin_quota_retries_total",
    "Admin calls repeated after THROTTLING_QUOTA_EXCEEDED (error 89).",
    ("app", "user", "client_id"),
    "retries",
    "the throttle-aware Admin client",
)
SPARK_UNKNOWN_ATTEMPTS = counter(
    "spark_kafka_unknown_attempts_total",
    "Task attempts that ended without a report of throttle times, which the totals lack.",
    ("app",),
    "attempts",
    "SparkListenerTaskEnd",
)
SPARK_TASK_FAILURES = counter(
    "spark_task_failures_total", "Failed task attempts, by cause.", ("app", "cause"), "attempts", "SparkListenerTaskEnd"
)
SPARK_TASK_RETRIES = counter(
    "spark_task_retries_total",
    "Task attempts that repeated a failed one, by the cause of the failure.",
    ("app", "cause"),
    "attempts",
    "SparkListenerTaskStart",
)
SPARK_STAGE_RETRIES = counter(
    "spark_stage_retries_total", "Stage attempts after the first.", ("app",), "attempts", "SparkListenerStageSubmitted"
)
SPARK_EXECUTORS_LOST = counter(
    "spark_executors_lost_total", "Executors that this job lost.", ("app",), "executors", "SparkListenerExecutorRemoved"
)
SPARK_QUERY_RESTARTS = counter(
    "spark_query_restarts_total",
    "Starts of this streaming query after the first.",
    ("app", "query"),
    "starts",
    "QueryStartedEvent",
)
SPARK_QUERY_BATCH_DURATION_SECONDS = gauge(
    "spark_query_batch_duration_seconds",
    "How long each phase of the last micro-batch took.",
    ("app", "query", "phase"),
    "seconds",
    "durationMs of QueryProgressEvent / 1000",
)
SPARK_QUERY_PROGRESS_AGE_SECONDS = gauge(
    "spark_query_progress_age_seconds",
    "Time since this streaming query last reported its progress.",
    ("app", "query"),
    "seconds",
    "QueryProgressEvent",
)
SPARK_QUERY_TRIGGER_SECONDS = gauge(
    "spark_query_trigger_seconds",
    "Interval of this streaming query's trigger.",
    ("app", "query"),
    "seconds",
    "the driver",
)
SPARK_QUERY_MAX_OFFSETS_BEHIND = gauge(
    "spark_query_max_offsets_behind",
    "Offsets that the worst partition of this streaming query is behind the newest.",
    ("app", "query"),
    "offsets",
    "maxOffsetsBehindLatest of QueryProgressEvent",
)
SPARK_QUERY_AVG_OFFSETS_BEHIND = gauge(
    "spark_query_avg_offsets_behind",
    "Offsets that the partitions of this streaming query are behind the newest, on average.",
    ("app", "query"),
    "offsets",
    "avgOffsetsBehindLatest of QueryProgressEvent",
)
SPARK_QUERY_BACKLOG_OFFSETS = gauge(
    "spark_query_backlog_offsets",
    "Offsets that all partitions are behind the newest.",
    ("app", "query"),
    "offsets",
    "latestOffset - endOffset of QueryProgressEvent, and the offsets added during the micro-batch",
)
SPARK_QUERY_READ_OFFSETS_PER_SECOND = gauge(
    "spark_query_read_offsets_per_second",
    "Offsets per second read in the last two minutes.",
    ("app", "query"),
    "offsets/s",
    "endOffset of QueryProgressEvent",
)
SPARK_QUERY_CATCH_UP_SECONDS = gauge(
    "spark_query_catch_up_seconds",
    "Time to read the backlog, +Inf if it does not shrink.",
    ("app", "query"),
    "seconds",
    "endOffset and latestOffset of QueryProgressEvent",
)
SPARK_LISTENER_EVENTS = counter(
    "spark_listener_events_total", "Events that the listener handled.", ("app",), "events", "the Spark listener"
)
SPARK_LISTENER_LOST_EVENTS = counter(
    "spark_listener_lost_events_total",
    "Events that the listener could not handle.",
    ("app",),
    "events",
    "the Spark listener",
)
SPARK_LISTENER_PROBLEMS = counter(
    "spark_listener_problems_total",
    "Failures of a part of the listener.",
    ("app", "part"),
    "errors",
    "the Spark listener",
)
SPARK_LISTENER_LAG_SECONDS = gauge(
    "spark_listener_lag_seconds", "Delay of the listener behind the events.", ("app",), "seconds", "the Spark listener"
)
SPARK_LISTENER_SOURCE_INFO = gauge(
    "spark_listener_source_info", "Always 1: where events come from.", ("app", "source"), "", "the Spark listener"
)
