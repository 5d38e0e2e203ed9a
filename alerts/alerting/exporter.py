"""Alerts on quotascope itself: while they fire, the other alerts may be blind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from quotascope.metrics import catalog

from .. import recorded
from ..links import Dashboard, Site
from ..promql import (
    above,
    aggregate,
    average,
    both,
    but_not,
    call,
    compare,
    either,
    grouped,
    increase,
    operation,
    select,
    series,
)
from ..rule import DURATION, INTEGER, PERCENT, THREE_DIGITS, Alert, AlertScope
from ..settings import AlertSeverity
from ..thresholds import DISCOVERY_FAILURES, LIMITS_AGE, READ_SECONDS, SAMPLES_LEFT_OUT, SNAPSHOT_AGE, SOURCE_READS

_alert = partial(Alert, scope=AlertScope.EXPORTER, dashboard=Dashboard.EXPORTER)


def scraped(site: Site) -> Iterator[Alert]:
    """Alerts on exporters and recording rules that Prometheus does not have."""
    build = select(catalog.BUILD_INFO)
    here = aggregate("group", site.keys(), build)
    lately = aggregate("group", site.keys(), call("last_over_time", select(catalog.BUILD_INFO, window="1d")))
    gone = but_not(lately, here, site.keys())
    yield _alert(
        name="KafkaQuotaExporterAbsent",
        expr=operation(grouped(gone), "or on ()", call("absent", build)),
        labels=(),
        severity=AlertSeverity.WARNING,
        wait="10m",
        summary="No quotascope exporter of a cluster can be scraped.",
        description="There are no series of quotascope: either it does not run, or Prometheus cannot reach it. Until it does, no other alert on quotas can fire.",
    )
    usually = series(recorded.EXPORTERS_BASELINE)
    yield _alert(
        name="KafkaQuotaExporterMissing",
        expr=operation(recorded.exporters(site), "<", usually, site.keys()),
        labels=(),
        severity=AlertSeverity.WARNING,
        wait="15m",
        summary="One of several exporters is missing.",
        description=f"{INTEGER} exporters can be scraped, and there are usually more: if these fail, too, no alert on quotas can fire.",
    )
    yield _alert(
        name="KafkaQuotaRecordingRulesMissing",
        expr=but_not(here, series(recorded.CLUSTER_THROTTLED_ENTITIES), site.keys()),
        labels=(),
        severity=AlertSeverity.WARNING,
        wait="10m",
        summary="The recording rules do not run.",
        description="Prometheus reads an exporter, but has no series of quotascope's recording rules: most alerts on clients, brokers and jobs cannot fire, the critical ones included.",
    )


def reads(site: Site) -> Iterator[Alert]:
    """Alerts on what an exporter cannot read; each exporter is an ``instance``."""
    labels = site.keys("instance", "source")
    succeeded = average(catalog.SOURCE_UP, labels, "15m")
    lowest = call("min_over_time", select(catalog.SOURCE_UP, window="3m"))
    failed_lately = compare(aggregate("min", labels, lowest), "==", 0)
    yield _alert(
        name="KafkaQuotaSourceDown",
        expr=both(compare(succeeded, "<", site.value(SOURCE_READS)), failed_lately, labels),
        labels=("instance", "source"),
        severity=AlertSeverity.WARNING,
        wait="10m",
        summary="quotascope cannot read a broker or controller.",
        description=f"Of the last reads of {{{{ $labels.source }}}} by the exporter {{{{ $labels.instance }}}}, {PERCENT} succeeded: until this changes, it is unknown which clients are throttled there.",
        thresholds=(SOURCE_READS,),
    )
    read = above(aggregate("max", labels, select(catalog.SOURCE_UP)), 0)
    nothing = compare(aggregate("max", labels, select(catalog.SOURCE_READINGS)), "==", 0)
    yield _alert(
        name="KafkaQuotaSourceEmpty",
        expr=both(nothing, read, labels),
        labels=("instance", "source"),
        severity=AlertSeverity.WARNING,
        wait="30m",
        summary="A source answers, but has no values.",
        description="The exporter {{ $labels.instance }} reads {{ $labels.source }}, which answers without a single value: the port is wrong, the agent's rules leave everything out, or they admit clients only and there is none.",
    )
    duration = average(catalog.SOURCE_DURATION_SECONDS, labels, "15m")
    yield _alert(
        name="KafkaQuotaReadsSlow",
        expr=above(duration, site.value(READ_SECONDS)),
        labels=("instance", "source"),
        severity=AlertSeverity.WARNING,
        wait="15m",
        keep="15m",
        summary="Reads are so slow that scrapes show older values.",
        description=f"Reads of {{{{ $labels.source }}}} by the exporter {{{{ $labels.instance }}}} take {DURATION} on average: scrapes do not wait that long and show older values.",
        thresholds=(READ_SECONDS,),
    )
    old = above(aggregate("max", site.keys("instance"), select(catalog.LIMITS_AGE_SECONDS)), site.value(LIMITS_AGE))
    failing = above(aggregate("max", site.keys("instance"), increase(catalog.LIMITS_REFRESH_ERRORS, "15m")), 0)
    never = but_not(failing, select(catalog.LIMITS_AGE_SECONDS), site.keys("instance"))
    yield _alert(
        name="KafkaQuotaLimitsStale",
        expr=either(old, never),
        labels=("instance",),
        severity=AlertSeverity.WARNING,
        wait="5m",
        summary="quotascope cannot read the configured quotas.",
        description="The exporter {{ $labels.instance }} could not read the configured quotas from Kafka's Admin API for many minutes: limits, rules and utilization are old or missing.",
        thresholds=(LIMITS_AGE,),
    )
    labels = site.keys("instance", "broker")
    differing = aggregate("max", labels, select(catalog.UTILIZATION_DISAGREEMENTS))
    yield _alert(
        name="KafkaQuotaUtilizationDisagrees",
        expr=above(differing, 0),
        labels=("instance", "broker"),
        severity=AlertSeverity.INFO,
        wait="30m",
        summary="A broker and quotascope disagree about the utilization of quotas.",
        description=f"For {INTEGER} clients, broker {{{{ $labels.broker }}}} reports another utilization than the exporter {{{{ $labels.instance }}}} computes: one of the two has old limits.",
    )


def shows(site: Site) -> Iterator[Alert]:
    """Alerts on what an exporter shows of its brokers."""
    age = aggregate("max", site.keys("instance"), select(catalog.SNAPSHOT_AGE_SECONDS))
    yield _alert(
        name="KafkaQuotaSnapshotStale",
        expr=above(age, site.value(SNAPSHOT_AGE)),
        labels=("instance",),
        severity=AlertSeverity.WARNING,
        wait="5m",
        summary="quotascope shows old values.",
        description=f"The values that the exporter {{{{ $labels.instance }}}} shows are {DURATION} old: its collections do not end.",
        thresholds=(SNAPSHOT_AGE,),
    )
    overflow = select(catalog.SERIES_DROPPED, 'reason="overflow"')
    yield _alert(
        name="KafkaQuotaSeriesDropped",
        expr=above(aggregate("max", site.keys("instance"), overflow), 0),
        labels=("instance",),
        severity=AlertSeverity.WARNING,
        wait="15m",
        summary="quotascope sees more clients than it may show.",
        description=f"The exporter {{{{ $labels.instance }}}} shows the clients beyond its cap as one: {INTEGER} series are left out, and no alert names these clients.",
    )


def around(site: Site) -> Iterator[Alert]:
    """Alerts on what an exporter does besides scrapes: discovery, samples, pushes, and its configuration."""
    labels = site.keys("instance", "discovery")
    failed = aggregate("max", labels, increase(catalog.DISCOVERY_ERRORS, "15m"))
    yield _alert(
        name="KafkaQuotaDiscoveryFailing",
        expr=above(failed, site.value(DISCOVERY_FAILURES)),
        labels=("instance", "discovery"),
        severity=AlertSeverity.WARNING,
        wait="5m",
        keep="15m",
        summary="quotascope cannot discover the brokers.",
        description="The exporter {{ $labels.instance }} repeatedly failed to discover brokers ({{ $labels.discovery }}): new ones are not read, and removed ones are still expected.",
        thresholds=(DISCOVERY_FAILURES,),
    )
    missed, taken = (
        aggregate("max", site.keys("instance"), increase(family, "15m"))
        for family in (catalog.SAMPLES_MISSED, catalog.SAMPLES)
    )
    share = operation(missed, "/", grouped(above(taken, 0)), site.keys("instance"))
    yield _alert(
        name="KafkaQuotaSamplesMissed",
        expr=above(grouped(share), site.value(SAMPLES_LEFT_OUT)),
        labels=("instance",),
        severity=AlertSeverity.INFO,
        wait="15m",
        keep="15m",
        summary="Samples between scrapes are left out.",
        description=f"For every sample that the exporter {{{{ $labels.instance }}}} takes between scrapes, it leaves out {THREE_DIGITS}, because the one before is still running: peaks are missing.",
        thresholds=(SAMPLES_LEFT_OUT,),
    )
    failing, arriving = (
        above(aggregate("max", site.keys("instance"), increase(catalog.OTLP_EXPORTS, "15m", outcome)), 0)
        for outcome in ('outcome!="success"', 'outcome="success"')
    )
    yield _alert(
        name="KafkaQuotaPushFailing",
        expr=but_not(failing, arriving, site.keys("instance")),
        labels=("instance",),
        severity=AlertSeverity.WARNING,
        wait="5m",
        summary="quotascope cannot push to the OpenTelemetry collector.",
        description="For a quarter of an hour no push of the exporter {{ $labels.instance }} has arrived: alerts and dashboards that use the collector's data see no quotas. Scrapes by Prometheus are not affected.",
    )
    good = select(catalog.CONFIG_LAST_RELOAD_SUCCESSFUL)
    yield _alert(
        name="KafkaQuotaConfigurationRefused",
        expr=compare(aggregate("min", site.keys("instance"), good), "==", 0),
        labels=("instance",),
        severity=AlertSeverity.WARNING,
        wait="5m",
        summary="quotascope works with an old configuration.",
        description="The exporter {{ $labels.instance }} could not use its configuration when it read it again: the previous one stays in force, and a restart would fail.",
    )
