"""The exporter itself."""

from __future__ import annotations

from .family import counter, gauge

SOURCE_UP = gauge(
    "quotascope_source_up",
    "1 if the last read of this source succeeded, else 0.",
    ("source",),
    "",
    "the last collection",
)

SOURCE_DURATION_SECONDS = gauge(
    "quotascope_source_duration_seconds",
    "Duration of the last read of this source.",
    ("source",),
    "seconds",
    "the last collection",
)

SOURCE_READINGS = gauge(
    "quotascope_source_readings",
    "Values in the last successful read of this source.",
    ("source",),
    "readings",
    "the last collection",
)

SOURCE_UNPLACED_SERIES = gauge(
    "quotascope_source_unplaced_series",
    "Series in the last read that are named like quota metrics but cannot be read; absent while the source is down.",
    ("source",),
    "series",
    "the last read that succeeded",
)

SOURCE_SHOWS_CLIENTS = gauge(
    "quotascope_source_shows_clients",
    "1 if the last read shows clients, or would if there were any; 0 if it may hide some that are to be expected; "
    "absent if neither is known.",
    ("source",),
    "",
    "the last read that succeeded, delay queues, and the configured quotas",
)

SOURCE_AGE_SECONDS = gauge(
    "quotascope_source_age_seconds",
    "Age of the values that are shown of this source, at most 120 s (of a Prometheus source, or two of its scrape "
    "intervals); absent while the source is down.",
    ("source",),
    "seconds",
    "the last read that succeeded",
)

SOURCE_STAND_BY = gauge(
    "quotascope_source_stand_by",
    "Always 1: another source of this node is in use, and this one takes over when that fails.",
    ("source", "broker"),
    "",
    "the discovery",
)

SOURCE_DIALECT_INFO = gauge(
    "quotascope_source_dialect_info",
    "Always 1: the dialect of this source.",
    ("source", "dialect"),
    "",
    "configuration",
)

DISCOVERED_SOURCES = gauge(
    "quotascope_discovered_sources",
    "Nodes that the last successful discovery found; absent without one.",
    ("discovery",),
    "sources",
    "the last look",
)

DISCOVERY_ERRORS = counter(
    "quotascope_discovery_errors_total",
    "Discoveries that failed wholly or in part, after which earlier nodes stay in use; absent without discovery.",
    ("discovery",),
    "errors",
    "the discovery",
)

SAMPLES = counter(
    "quotascope_samples_total", "Samples taken between scrapes; absent without sampling.", (), "samples", "the sampler"
)

SAMPLES_MISSED = counter(
    "quotascope_samples_missed_total",
    "Samples left out because an earlier one was still running; absent without sampling.",
    (),
    "samples",
    "the sampler",
)

LIMITS_AGE_SECONDS = gauge(
    "quotascope_limits_age_seconds",
    "Age of the configured limits in use; absent until they are read.",
    (),
    "seconds",
    "the last successful read of the limits",
)

LIMITS_REFRESH_ERRORS = counter(
    "quotascope_limits_refresh_errors_total",
    "Reads of the configured limits that failed wholly or in part.",
    (),
    "errors",
    "the limits reader",
)

CONFIG_LAST_RELOAD_SUCCESSFUL = gauge(
    "quotascope_config_last_reload_successful",
    "1 if the last read of the configuration succeeded, 0 if the one before stays in use.",
    (),
    "",
    "the last start or SIGHUP",
)

CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS = gauge(
    "quotascope_config_last_reload_success_timestamp_seconds",
    "Unix time at which the configuration in use was read.",
    (),
    "seconds",
    "the last start or SIGHUP",
)

BACKGROUND_RESTARTS = counter(
    "quotascope_background_restarts_total",
    "Restarts of a background task after a defect of quotascope; the log has its traceback.",
    ("task",),
    "restarts",
    "discovery, files, limits, samples and trails, as far as they run",
)

CERTIFICATE_EXPIRY_SECONDS = gauge(
    "quotascope_certificate_expiry_seconds",
    "Unix time at which the certificate in this file expires: the first of a chain, the last of the authorities.",
    ("file",),
    "seconds",
    "the files that the configuration and the web config file name",
)

LOG_LINES_DROPPED = counter(
    "quotascope_log_lines_dropped_total",
    "Log lines dropped because the log was not read fast enough.",
    (),
    "lines",
    "the log's writer",
)

HTTP_REQUESTS_REFUSED = counter(
    "quotascope_http_requests_refused_total",
    "Requests refused for want of room, by reason: busy (all places taken), one_client (its part of them), logins, "
    "rate_limit, or bytes (cut while the answer was not taken).",
    ("reason",),
    "requests",
    "the HTTP server",
)

SNAPSHOT_AGE_SECONDS = gauge(
    "quotascope_snapshot_age_seconds", "Age of the values that are shown.", (), "seconds", "the last collection"
)

ENTITIES = gauge(
    "quotascope_entities",
    "Quota entities of all nodes by state: exported, overflow (beyond the cap), excluded (by name), idle or stale.",
    ("state",),
    "entities",
    "the last collection",
)

SERIES_DROPPED = gauge(
    "quotascope_series_dropped",
    "Series left out, by reason: overflow, excluded, idle or detail (of entities far from their limit).",
    ("reason",),
    "series",
    "the last collection",
)

BUILD_INFO = gauge(
    "quotascope_build_info", "Always 1: the version of this exporter.", ("version",), "", "the installed package"
)


OTLP_EXPORTS = counter(
    "quotascope_otlp_exports_total",
    "Pushes over OTLP by outcome: success, partial (some points rejected) or failure; absent without OTLP.",
    ("outcome",),
    "exports",
    "the receiver's answers",
)

OTLP_POINTS = counter(
    "quotascope_otlp_points_total",
    "Points pushed over OTLP by outcome: accepted, rejected or lost; absent without OTLP.",
    ("outcome",),
    "points",
    "the receiver's answers",
)

PROCESS_CPU_SECONDS = counter(
    "process_cpu_seconds_total", "CPU time of this process.", (), "seconds", "/proc/self/stat"
)

PROCESS_RESIDENT_MEMORY_BYTES = gauge(
    "process_resident_memory_bytes", "Resident memory.", (), "bytes", "/proc/self/stat"
)

PROCESS_VIRTUAL_MEMORY_BYTES = gauge("process_virtual_memory_bytes", "Virtual memory.", (), "bytes", "/proc/self/stat")

PROCESS_OPEN_FDS = gauge("process_open_fds", "Open file descriptors.", (), "descriptors", "/proc/self/fd")

PROCESS_MAX_FDS = gauge("process_max_fds", "Limit of open file descriptors.", (), "descriptors", "/proc/self/limits")

PROCESS_START_TIME_SECONDS = gauge(
    "process_start_time_seconds", "Unix time of the start.", (), "seconds", "/proc/self/stat, /proc/stat"
)
