"""quotascope itself does not see what it should: the other alerts are blind."""

from __future__ import annotations

from quotascope.metrics import catalog

from ..levels import Levels
from ..links import Dashboard
from ..promql import (
    above,
    aggregate,
    both,
    but_not,
    call,
    compare,
    either,
    grouped,
    increase,
    operation,
    select,
)
from ..rule import Alert, Group, Scope, Severity
from ..text import DURATION, WHOLE
from ..thresholds import DISCOVERY_FAILURES, LIMITS_AGE, SNAPSHOT_AGE


def exporter(levels: Levels) -> Group:
    """Alerts on exporters; each is told apart by its ``instance``."""
    return Group(
        name="quotascope-exporter",
        rules=(
            _absent(levels),
            _source_down(levels),
            _limits_stale(levels),
            _disagreement(levels),
            _snapshot_stale(levels),
            _no_series(levels),
            _series_dropped(levels),
            _callback(levels),
            _discovery(levels),
            _push(levels),
            _reload(levels),
        ),
    )


def _absent(levels: Levels) -> Alert:
    build = select(catalog.BUILD_INFO)
    here = aggregate("group", levels.cluster, build)
    lately = aggregate(
        "group",
        levels.cluster,
        call("last_over_time", select(catalog.BUILD_INFO, window="1d")),
    )
    gone = but_not(lately, here, levels.cluster)
    return Alert(
        name="KafkaQuotaExporterAbsent",
        expr=operation(grouped(gone), "or on ()", call("absent", build)),
        labels=(),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="10m",
        summary="No quotascope exporter of a cluster can be scraped.",
        description="There are no series of quotascope: either it does not run, or Prometheus cannot reach it. Until it does, no other alert on quotas can fire.",
        dashboard=Dashboard.EXPORTER,
        spared="A restart of the exporter; one of two exporters down. A cluster that was taken down resolves after a day.",
    )


def _source_down(levels: Levels) -> Alert:
    down = compare(select(catalog.SOURCE_UP), "==", 0)
    return Alert(
        name="KafkaQuotaSourceDown",
        expr=aggregate("max", levels.of("instance", "source"), down),
        labels=("instance", "source"),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="10m",
        summary="quotascope cannot read a broker or controller.",
        description="The exporter {{ $labels.instance }} has not been able to read {{ $labels.source }} for 10 minutes: who is throttled there is not known.",
        dashboard=Dashboard.EXPORTER,
        spared="A restart of the broker.",
    )


def _limits_stale(levels: Levels) -> Alert:
    old = above(
        aggregate("max", levels.exporter, select(catalog.LIMITS_AGE_SECONDS)),
        LIMITS_AGE.value,
    )
    failing = above(
        aggregate(
            "max", levels.exporter, increase(catalog.LIMITS_REFRESH_ERRORS, "15m")
        ),
        0,
    )
    never = but_not(failing, select(catalog.LIMITS_AGE_SECONDS), levels.exporter)
    return Alert(
        name="KafkaQuotaLimitsStale",
        expr=either(old, never),
        labels=("instance",),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="5m",
        summary="quotascope cannot read the configured quotas.",
        description="The exporter {{ $labels.instance }} could not read the configured quotas from Kafka's Admin API for many minutes: limits, rules and utilisation are old or missing.",
        dashboard=Dashboard.EXPORTER,
        thresholds=(LIMITS_AGE,),
        spared="Single failures; exporters without the Admin API.",
    )


def _disagreement(levels: Levels) -> Alert:
    labels = levels.of("instance", "broker")
    differing = aggregate("max", labels, select(catalog.UTILIZATION_DISAGREEMENTS))
    return Alert(
        name="KafkaQuotaUtilizationDisagrees",
        expr=above(differing, 0),
        labels=("instance", "broker"),
        severity=Severity.INFO,
        scope=Scope.EXPORTER,
        wait="30m",
        summary="A broker and quotascope do not agree on how much of a quota is used.",
        description=f"For {WHOLE} clients broker {{{{ $labels.broker }}}} tells another utilisation than the exporter {{{{ $labels.instance }}}} computes: one of the two has old limits.",
        dashboard=Dashboard.EXPORTER,
        spared="The minutes after a change of limits; brokers without KIP-1373.",
    )


def _snapshot_stale(levels: Levels) -> Alert:
    age = aggregate("max", levels.exporter, select(catalog.SNAPSHOT_AGE_SECONDS))
    return Alert(
        name="KafkaQuotaSnapshotStale",
        expr=above(age, SNAPSHOT_AGE.value),
        labels=("instance",),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="5m",
        summary="quotascope shows old numbers.",
        description=f"The numbers that the exporter {{{{ $labels.instance }}}} shows are {DURATION} old: its collections do not end.",
        dashboard=Dashboard.EXPORTER,
        thresholds=(SNAPSHOT_AGE,),
        spared="Single slow collections.",
    )


def _no_series(levels: Levels) -> Alert:
    none = compare(
        aggregate("max", levels.exporter, select(catalog.ENTITIES, 'state="exported"')),
        "==",
        0,
    )
    can_read = compare(
        aggregate("max", levels.exporter, select(catalog.SOURCE_UP)), "==", 1
    )
    return Alert(
        name="KafkaQuotaNoQuotaSeries",
        expr=both(none, can_read, levels.exporter),
        labels=("instance",),
        severity=Severity.INFO,
        scope=Scope.EXPORTER,
        wait="1h",
        summary="quotascope reads the brokers, but finds no client under a quota.",
        description="For an hour the exporter {{ $labels.instance }} has found no client that is measured against a quota: Kafka measures clients only when a quota of that kind is configured.",
        dashboard=Dashboard.EXPORTER,
        spared="Brokers that cannot be read (another alert); clusters that are quiet for less than an hour.",
    )


def _series_dropped(levels: Levels) -> Alert:
    overflow = select(catalog.SERIES_DROPPED, 'reason="overflow"')
    return Alert(
        name="KafkaQuotaSeriesDropped",
        expr=above(aggregate("max", levels.exporter, overflow), 0),
        labels=("instance",),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="15m",
        summary="quotascope sees more clients than it may show.",
        description=f"The exporter {{{{ $labels.instance }}}} folds clients into one, because there are more than its limit allows: {WHOLE} series are not shown one by one, and no alert names these clients.",
        dashboard=Dashboard.EXPORTER,
        spared="Names, idle clients and details that you chose to leave out.",
    )


def _callback(levels: Levels) -> Alert:
    detected = above(
        aggregate("max", levels.broker, select(catalog.CALLBACK_DETECTED)), 0
    )
    return Alert(
        name="KafkaQuotaCustomCallback",
        expr=aggregate("count", levels.cluster, detected) + " > 0",
        labels=(),
        severity=Severity.INFO,
        scope=Scope.CONFIGURATION,
        wait="15m",
        keep="1h",
        summary="Brokers decide about quotas by their own code.",
        description=f"{WHOLE} brokers have a client.quota.callback.class: what Kafka's configured quotas say is not what they enforce, so limits and utilisation are not shown for its clients.",
        dashboard=Dashboard.EXPORTER,
        spared="Nothing. While it fires, alerts on limits are silent.",
    )


def _discovery(levels: Levels) -> Alert:
    labels = levels.of("instance", "discovery")
    failed = aggregate("max", labels, increase(catalog.DISCOVERY_ERRORS, "15m"))
    return Alert(
        name="KafkaQuotaDiscoveryFailing",
        expr=above(failed, DISCOVERY_FAILURES.value),
        labels=("instance", "discovery"),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="5m",
        keep="15m",
        summary="quotascope cannot find out which brokers there are.",
        description="The exporter {{ $labels.instance }} failed again and again to discover brokers ({{ $labels.discovery }}): new ones are not read, and those that are gone are not forgotten.",
        dashboard=Dashboard.EXPORTER,
        thresholds=(DISCOVERY_FAILURES,),
        spared="Single failures.",
    )


def _push(levels: Levels) -> Alert:
    def grown(outcome: str) -> str:
        pushes = increase(catalog.OTLP_EXPORTS, "15m", outcome)
        return aggregate("max", levels.exporter, pushes)

    failing = above(grown('outcome!="success"'), 0)
    arriving = above(grown('outcome="success"'), 0)
    return Alert(
        name="KafkaQuotaPushFailing",
        expr=but_not(failing, arriving, levels.exporter),
        labels=("instance",),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="5m",
        summary="quotascope cannot push to the OpenTelemetry collector.",
        description="For a quarter of an hour no push of the exporter {{ $labels.instance }} has arrived: what reads quotas from the collector is blind. What Prometheus scrapes is not touched.",
        dashboard=Dashboard.EXPORTER,
        spared="Single failures; exporters that do not push.",
    )


def _reload(levels: Levels) -> Alert:
    good = select(catalog.CONFIG_LAST_RELOAD_SUCCESSFUL)
    return Alert(
        name="KafkaQuotaConfigurationRefused",
        expr=compare(aggregate("min", levels.exporter, good), "==", 0),
        labels=("instance",),
        severity=Severity.WARNING,
        scope=Scope.EXPORTER,
        wait="5m",
        summary="quotascope works with an old configuration.",
        description="The exporter {{ $labels.instance }} was told to read its configuration again and could not use it: the one before stays in force, and a restart would fail.",
        dashboard=Dashboard.EXPORTER,
        spared="A mistake that is corrected within minutes; changed files without a reload.",
    )
