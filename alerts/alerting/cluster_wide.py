"""Many clients are held back at once: the alerts that wake somebody up."""

from __future__ import annotations

from .. import recorded
from ..levels import Levels
from ..links import Dashboard
from ..promql import (
    above,
    aggregate,
    both,
    but_not,
    call,
    compare,
    operation,
    series,
)
from ..rule import Alert, Group, Scope, Severity
from ..text import ROUGH, WHOLE
from ..thresholds import (
    MANY_ENTITIES,
    MANY_ENTITIES_FACTOR,
    SPIKE,
    SPIKE_ENTITIES,
    SPIKE_FACTOR,
    Threshold,
)


def cluster_wide(levels: Levels) -> Group:
    """Alerts on a whole cluster."""
    return Group(
        name="quotascope-cluster-wide", rules=(_spike(levels), _many_entities(levels))
    )


def _spike(levels: Levels) -> Alert:
    rate = series(recorded.CLUSTER_THROTTLED_RATE)
    entities = compare(
        series(recorded.CLUSTER_THROTTLED_ENTITIES), ">=", SPIKE_ENTITIES.value
    )
    unusual = _unusual(
        levels, rate, series(recorded.CLUSTER_THROTTLED_BASELINE), SPIKE_FACTOR
    )
    loud = both(above(rate, SPIKE.value), unusual, levels.cluster)
    return Alert(
        name="KafkaQuotaThrottleSpike",
        expr=_somebody_is_muted(levels, both(loud, entities, levels.cluster)),
        labels=(),
        severity=Severity.CRITICAL,
        scope=Scope.CLUSTER,
        wait="5m",
        keep="10m",
        summary="Clients of a cluster wait far longer for their quotas than usual.",
        description=f"Brokers make clients wait for {ROUGH} s in every second, as if that many connections did nothing but wait: at least {SPIKE_FACTOR.value:g} times as much as is usual at this time, and at least {SPIKE_ENTITIES.value:g} clients are hit.",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(SPIKE, SPIKE_FACTOR, SPIKE_ENTITIES),
        spared="Nightly jobs and busy Mondays, which are in the baseline; single clients; Kafka's averages after the last throttle. Silent in the first half hour of data.",
    )


def _many_entities(levels: Levels) -> Alert:
    entities = series(recorded.CLUSTER_THROTTLED_ENTITIES)
    unusual = _unusual(
        levels,
        entities,
        series(recorded.CLUSTER_THROTTLED_ENTITIES_BASELINE),
        MANY_ENTITIES_FACTOR,
    )
    many = both(compare(entities, ">=", MANY_ENTITIES.value), unusual, levels.cluster)
    return Alert(
        name="KafkaQuotaManyClientsThrottled",
        expr=_somebody_is_muted(levels, many),
        labels=(),
        severity=Severity.CRITICAL,
        scope=Scope.CLUSTER,
        wait="5m",
        keep="10m",
        summary="Far more clients of a cluster are throttled than usual.",
        description=f"{WHOLE} clients are throttled at the same time: more than {MANY_ENTITIES_FACTOR.value:g} times as many as is usual at this time. So many at once point to a changed limit or a slow broker, not to the clients.",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(MANY_ENTITIES, MANY_ENTITIES_FACTOR),
        spared="Clusters that throttle dozens of clients every day; Kafka's averages after the last throttle.",
    )


def _unusual(levels: Levels, now: str, usual: str, factor: Threshold) -> str:
    return operation(now, ">", f"({factor.value:g} * {usual})", levels.cluster)


def _somebody_is_muted(levels: Levels, expression: str) -> str:
    # not known with every kind of source: then it does not speak against an alert
    queued = call("max_over_time", series(recorded.CLUSTER_DELAY_QUEUE, window="5m"))
    nobody = compare(aggregate("sum", levels.cluster, queued), "==", 0)
    return but_not(expression, nobody, levels.cluster)
