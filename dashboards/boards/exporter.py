"""Dashboard about the exporter: whether the other dashboards are complete and current."""

from __future__ import annotations

from typing import Any

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import columns, steps
from ..columns import COLORED, BoardColumn
from ..expressions import count_of_sources_down, counter_rate
from ..links import runbooks
from ..panels import Line, Row, dashboard, graph, side_by_side, stat, table
from ..promql import call
from ..scope import Scope
from ..variables import common


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard about quotascope itself."""
    return dashboard(
        scope,
        Dashboard.EXPORTER,
        title="Kafka quotas / Exporter",
        description="Whether the exporter reads every broker and knows the limits that are in force.",
        variables=common(scope),
        rows=(
            now(scope),
            sources(scope),
            limits(scope),
            entities(scope),
            around(scope),
        ),
    )


def now(scope: Scope) -> Row:
    """Return the row of six numbers about the exporter."""
    exporters = stat(
        scope,
        "Exporters",
        "Exporters that Prometheus reads, of clusters that had one within a day. Without one every dashboard is empty.",
        "short",
        scope.or_zero(
            scope.by("count", scope.of(catalog.BUILD_INFO)),
            evidence=call("last_over_time", scope.of(catalog.BUILD_INFO, window="1d")),
        ),
        *runbooks(
            scope.site, "KafkaQuotaExporterAbsent", "KafkaQuotaExporterMissing", "KafkaQuotaRecordingRulesMissing"
        ),
        steps=steps.UP,
    )
    down = stat(
        scope,
        "Sources down",
        "Brokers and controllers that could not be read the last time.",
        "short",
        count_of_sources_down(scope),
        *runbooks(scope.site, "KafkaQuotaSourceDown"),
        steps=steps.DOWN,
    )
    age_of_limits = stat(
        scope,
        "Age of the limits",
        "How old the configured limits are that were joined with usage.",
        "s",
        scope.by("max", scope.of(catalog.LIMITS_AGE_SECONDS)),
        *runbooks(scope.site, "KafkaQuotaLimitsStale"),
        steps=steps.OLD_LIMITS,
        nothing="never read",
    )
    age_of_numbers = stat(
        scope,
        "Age of the numbers",
        "How old the values are that the exporter shows.",
        "s",
        scope.by("max", scope.of(catalog.SNAPSHOT_AGE_SECONDS)),
        *runbooks(scope.site, "KafkaQuotaSnapshotStale"),
        steps=steps.OLD_NUMBERS,
    )
    entity_count = stat(
        scope,
        "Users and client-ids shown",
        "How many quota entities the exporter shows; of two exporters, the one that shows more. None: no quota is "
        "configured, or no client was seen yet.",
        "short",
        scope.by("max", scope.of(catalog.ENTITIES, 'state="exported"')),
        steps=steps.NEUTRAL,
    )
    rules = stat(
        scope,
        "Configured rules",
        "Rules that the brokers have, of all kinds.",
        "short",
        scope.by("sum", scope.by("max", scope.of(catalog.RULES), "quota_key")),
        steps=steps.NEUTRAL,
    )
    panels = side_by_side(exporters, down, age_of_limits, age_of_numbers, entity_count, rules)
    return Row(title="Right now", panels=panels)


def sources(scope: Scope) -> Row:
    """Return the row of sources: brokers and controllers."""
    seconds, readings = (
        scope.by("max", scope.of(family), "source")
        for family in (catalog.SOURCE_DURATION_SECONDS, catalog.SOURCE_READINGS)
    )
    dialect = scope.of(catalog.SOURCE_DIALECT_INFO)
    state = BoardColumn(
        title="State", source="A", width=80, cell=COLORED, steps=steps.UP, texts={"0": "down", "1": "up"}
    )
    every = table(
        "Sources",
        "Each broker and controller, how the exporter speaks to it, and how its last read went.",
        (
            scope.by("min", scope.of(catalog.SOURCE_UP), "source"),
            seconds,
            readings,
            scope.by("max", dialect, "source", "dialect"),
        ),
        BoardColumn(title="Source", source="source"),
        state,
        BoardColumn(title="Dialect", source="dialect", width=130),
        columns.number("Last read took", "B", "s", 155),
        columns.number("Numbers", "C", "short", 100),
        columns.cluster(scope.site),
        sort="Last read took",
        links=runbooks(scope.site, "KafkaQuotaSourceDown"),
    )
    duration = graph(
        scope,
        "Duration of reads",
        "How long reading each source took. It should stay below Prometheus' scrape timeout, 10 s by default.",
        "s",
        Line(seconds, "{{source}}"),
        links=runbooks(scope.site, "KafkaQuotaReadsSlow", "KafkaQuotaSamplesMissed"),
    )
    numbers = graph(
        scope,
        "Values read, by source",
        "A source that is up but has no values has a wrong port, or its node has no quotas.",
        "short",
        Line(readings, "{{source}}"),
        links=runbooks(scope.site, "KafkaQuotaSourceEmpty"),
        axis="values",
    )
    panels = ((24, every), (12, duration), (12, numbers))
    return Row(title="Sources", panels=panels)


def limits(scope: Scope) -> Row:
    """Return the row of the age of limits and values, and of failed reads."""
    age = graph(
        scope,
        "Age of the limits",
        "Grows while the Admin API does not answer.",
        "s",
        _each(scope, catalog.LIMITS_AGE_SECONDS, legend="limits"),
        _each(scope, catalog.SNAPSHOT_AGE_SECONDS, legend="numbers"),
        steps=steps.OLD_LIMITS,
        links=runbooks(scope.site, "KafkaQuotaLimitsStale"),
    )
    errors = graph(
        scope,
        "Failed reads of the limits",
        "Per second; the exporter's log has the reason.",
        "cps",
        Line(scope.by("sum", counter_rate(scope, catalog.LIMITS_REFRESH_ERRORS)), "errors"),
    )
    return Row(title="Limits", panels=side_by_side(age, errors))


def entities(scope: Scope) -> Row:
    """Return the row of the states of the brokers' entities."""
    states = graph(
        scope,
        "Users and client-ids, by state",
        f"{catalog.ENTITIES.help} Of several exporters, their average. Entities that are not exported are missing on "
        "the other dashboards.",
        "short",
        Line(scope.by("avg", scope.of(catalog.ENTITIES), "state"), "{{state}}"),
        stacked=True,
        axis="entities",
    )
    dropped = graph(
        scope,
        "Series left out",
        catalog.SERIES_DROPPED.help,
        "short",
        _each(scope, catalog.SERIES_DROPPED, "reason", legend="{{reason}}"),
        links=runbooks(scope.site, "KafkaQuotaSeriesDropped"),
        axis="series",
    )
    callbacks = graph(
        scope,
        "Custom quota callbacks",
        f"{catalog.CALLBACK_DETECTED.help} Only the limits of Strimzi's quotas plugin can be read.",
        "short",
        _each(scope, catalog.CALLBACK_DETECTED, "broker", legend="broker {{broker}}"),
        axis="1 = a callback decides",
    )
    return Row(title="What is shown", panels=side_by_side(states, dropped, callbacks))


def around(scope: Scope) -> Row:
    """Return the row of optional parts: discovery, pushes, reloads, and brokers that report utilization (KIP-1373)."""
    failed = counter_rate(scope, catalog.DISCOVERY_ERRORS)
    pushed = counter_rate(scope, catalog.OTLP_EXPORTS)
    reloaded = scope.of(catalog.CONFIG_LAST_RELOAD_SUCCESSFUL)
    nodes = graph(
        scope,
        "Nodes found, by discovery",
        catalog.DISCOVERED_SOURCES.help,
        "short",
        _each(scope, catalog.DISCOVERED_SOURCES, "discovery", legend="{{discovery}}"),
        axis="nodes",
    )
    failures = graph(
        scope,
        "Failed discoveries of brokers",
        "Per second, by discovery. Meanwhile new brokers are not read, and removed ones are still expected. The "
        "exporter's log has the reason.",
        "cps",
        Line(scope.by("sum", failed, "discovery"), "{{discovery}}"),
        links=runbooks(scope.site, "KafkaQuotaDiscoveryFailing"),
    )
    pushes = graph(
        scope,
        "Pushes, by outcome",
        "Per second: success, partial when the collector refused some points, or failure. The exporter's log has the "
        "reason.",
        "cps",
        Line(scope.by("sum", pushed, "outcome"), "{{outcome}}"),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaPushFailing"),
    )
    configuration = graph(
        scope,
        "Configuration can be used",
        "1 while the configuration that was last read is in force; 0 if it was refused, and the previous one is "
        "still in force. The exporter's log names file, line and field.",
        "short",
        Line(scope.by("min", reloaded), "configuration"),
        links=runbooks(scope.site, "KafkaQuotaConfigurationRefused"),
        axis="1 = it can",
    )
    certificates = graph(
        scope,
        "Time until certificates expire, by file",
        catalog.CERTIFICATE_EXPIRY_SECONDS.help,
        "s",
        Line(f"{scope.by('min', scope.of(catalog.CERTIFICATE_EXPIRY_SECONDS), 'file')} - time()", "{{file}}"),
        links=runbooks(scope.site, "KafkaQuotaCertificateExpires"),
    )
    differing = graph(
        scope,
        "Utilization reported differently",
        catalog.UTILIZATION_DISAGREEMENTS.help,
        "short",
        _each(scope, catalog.UTILIZATION_DISAGREEMENTS, "broker", legend="broker {{broker}}"),
        links=runbooks(scope.site, "KafkaQuotaUtilizationDisagrees"),
        axis="entities",
    )
    return Row(
        title="Discovery, push over OTLP, configuration, reported utilization",
        panels=(
            *side_by_side(nodes, failures, pushes),
            *side_by_side(configuration, certificates, differing),
        ),
        collapsed=True,
    )


def _each(scope: Scope, family: Family, *labels: str, legend: str) -> Line:
    """Return the highest series for each combination of labels."""
    return Line(scope.by("max", scope.of(family), *labels), legend)
