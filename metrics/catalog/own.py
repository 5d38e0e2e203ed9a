"""The exporter itself."""

from __future__ import annotations

from .family import counter, gauge

SOURCE_UP = gauge(
    "quotascope_source_up",
    "1 when the last read of this source succeeded, else 0.",
    ("source",),
    "",
    "the last collection",
)

SOURCE_DURATION_SECONDS = gauge(
    "quotascope_source_duration_seconds",
    "How long the last read of this source took.",
    ("source",),
    "seconds",
    "the last collection",
)

SOURCE_READINGS = gauge(
    "quotascope_source_readings",
    "Numbers that the last successful read of this source gave.",
    ("source",),
    "readings",
    "the last collection",
)

SOURCE_AGE_SECONDS = gauge(
    "quotascope_source_age_seconds",
    "How long ago the numbers shown of this source were asked for. A source that takes longer than a scrape can wait is read in the background; after 120 s its numbers are no longer shown. Absent while the source is down.",
    ("source",),
    "seconds",
    "the last read that succeeded",
)

SOURCE_STAND_BY = gauge(
    "quotascope_source_stand_by",
    "Always 1: this source answers for the node, but another source of it is in use. It is read every 60 s, and takes over when that one fails.",
    ("source", "broker"),
    "",
    "the discovery",
)

SOURCE_DIALECT_INFO = gauge(
    "quotascope_source_dialect_info",
    "Always 1: how this source is spoken to.",
    ("source", "dialect"),
    "",
    "configuration",
)

DISCOVERED_SOURCES = gauge(
    "quotascope_discovered_sources",
    "Nodes that the last successful look of this discovery found. Only with discovery.",
    ("discovery",),
    "sources",
    "the last look",
)

DISCOVERY_ERRORS = counter(
    "quotascope_discovery_errors_total",
    "Looks of this discovery that failed wholly or in part since this exporter started; what was found before stays. Only with discovery.",
    ("discovery",),
    "errors",
    "the discovery",
)

SAMPLES = counter(
    "quotascope_samples_total",
    "Samples taken between scrapes since this exporter started. Only with sampling.",
    (),
    "samples",
    "the sampler",
)

SAMPLES_MISSED = counter(
    "quotascope_samples_missed_total",
    "Samples that were due while an earlier one was still under way. Only with sampling.",
    (),
    "samples",
    "the sampler",
)

LIMITS_AGE_SECONDS = gauge(
    "quotascope_limits_age_seconds",
    "Age of the configured limits that were joined. Absent until they were read once.",
    (),
    "seconds",
    "the last successful read of the limits",
)

LIMITS_REFRESH_ERRORS = counter(
    "quotascope_limits_refresh_errors_total",
    "Failed reads of the configured limits since this exporter started, and parts of other reads that failed, such as the settings of one broker.",
    (),
    "errors",
    "the limits reader",
)

CONFIG_LAST_RELOAD_SUCCESSFUL = gauge(
    "quotascope_config_last_reload_successful",
    "1 when the configuration could be used when it was last read, else 0; then the one before is in force. Only of `quotascope serve`.",
    (),
    "",
    "the last start or SIGHUP",
)

CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS = gauge(
    "quotascope_config_last_reload_success_timestamp_seconds",
    "When the configuration in force was read, in Unix time. Only of `quotascope serve`.",
    (),
    "seconds",
    "the last start or SIGHUP",
)

BACKGROUND_RESTARTS = counter(
    "quotascope_background_restarts_total",
    "How often a task beside the answers failed and began again 10 s later since this exporter started: a defect of quotascope; the log has the traceback.",
    ("task",),
    "restarts",
    "discovery, limits, samples and trails, as far as they run",
)

SNAPSHOT_AGE_SECONDS = gauge(
    "quotascope_snapshot_age_seconds",
    "Age of the numbers shown.",
    (),
    "seconds",
    "the last collection",
)

ENTITIES = gauge(
    "quotascope_entities",
    "Quota entities of all nodes by what became of them: exported, folded into one for being too many (overflow) or for their names (excluded), left out as idle, or stale.",
    ("state",),
    "entities",
    "the last collection",
)

SERIES_DROPPED = gauge(
    "quotascope_series_dropped",
    "Series that are not shown: of entities that are folded (overflow, excluded) or idle, and those that only entities near their limit have (detail).",
    ("reason",),
    "series",
    "the last collection",
)

BUILD_INFO = gauge(
    "quotascope_build_info",
    "Always 1: the version of this exporter.",
    ("version",),
    "",
    "the installed package",
)
