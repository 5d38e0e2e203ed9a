"""Alerts on brokers and whole clusters: many clients at once, busy threads, connections, replication, changed quotas."""

from __future__ import annotations

from collections.abc import Iterator

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
    grouped,
    increase,
    operation,
    select,
    series,
)
from ..rule import DURATION, INTEGER, PERCENT, THREE_DIGITS, Alert, AlertScope, longest_delays, most_request_time
from ..settings import AlertSeverity
from ..thresholds import (
    CONNECTION_THROTTLE,
    DELAY_QUEUE,
    DELAY_QUEUE_GROWTH,
    EXEMPT_CAPACITY,
    HANDLERS_IDLE,
    IP_CONNECTION_THROTTLE,
    MANY_ENTITIES,
    MANY_ENTITIES_FACTOR,
    REPLICATION_DAY,
    REQUEST_CAPACITY,
    SPIKE,
    SPIKE_ENTITIES,
    SPIKE_FACTOR,
    STORM,
    THROTTLED,
    Threshold,
)


def cluster_wide(site: Site) -> Iterator[Alert]:
    """Alerts on a whole cluster."""
    rate = series(recorded.CLUSTER_THROTTLED_RATE)
    entities = compare(series(recorded.CLUSTER_THROTTLED_ENTITIES), ">=", site.value(SPIKE_ENTITIES))
    unusual = _unusual(site, rate, series(recorded.CLUSTER_THROTTLED_BASELINE), SPIKE_FACTOR)
    loud = both(above(rate, site.value(SPIKE)), unusual, site.keys())
    yield Alert(
        name="KafkaQuotaThrottleSpike",
        expr=_while_muted(site, both(loud, entities, site.keys())),
        labels=(),
        severity=AlertSeverity.CRITICAL,
        scope=AlertScope.CLUSTER,
        wait="5m",
        keep="10m",
        summary="Clients of a cluster are throttled for far longer than usual.",
        description=f"Clients get {THREE_DIGITS} s of throttle time in every second, as if that many connections did nothing but wait: more than {site.value(SPIKE_FACTOR):g} times as much as usual at this time. At least {site.value(SPIKE_ENTITIES):g} clients are throttled.",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(SPIKE, SPIKE_FACTOR, SPIKE_ENTITIES),
    )
    entities = series(recorded.CLUSTER_THROTTLED_ENTITIES)
    unusual = _unusual(site, entities, series(recorded.CLUSTER_THROTTLED_ENTITIES_BASELINE), MANY_ENTITIES_FACTOR)
    many = both(compare(entities, ">=", site.value(MANY_ENTITIES)), unusual, site.keys())
    yield Alert(
        name="KafkaQuotaManyClientsThrottled",
        expr=_while_muted(site, many),
        labels=(),
        severity=AlertSeverity.CRITICAL,
        scope=AlertScope.CLUSTER,
        wait="5m",
        keep="10m",
        summary="Far more clients of a cluster are throttled than usual.",
        description=f"{INTEGER} clients are throttled at the same time: more than {site.value(MANY_ENTITIES_FACTOR):g} times as many as usual at this time. The cause is more likely a changed limit or a slow broker than the clients.{longest_delays(site.cluster_label)}",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(MANY_ENTITIES, MANY_ENTITIES_FACTOR),
    )

    yield Alert(
        name="KafkaQuotaThrottleStorm",
        expr=recorded.storm(site, series(recorded.CLUSTER_THROTTLED_ENTITIES)),
        labels=(),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.CLUSTER,
        wait="15m",
        keep="10m",
        summary="Too many clients are throttled for an alert each.",
        description=f"{INTEGER} clients are throttled, too many for an alert each.{longest_delays(site.cluster_label)}",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(STORM, THROTTLED),
    )


def by_callback(site: Site) -> Iterator[Alert]:
    """Alerts on the clients of a custom quota callback, which have its labels instead of user and client-id."""
    labels = ("quota_type", "broker")
    longest = aggregate("max", site.keys(*labels), select(catalog.CALLBACK_THROTTLE_TIME_SECONDS))
    yield Alert(
        name="KafkaQuotaCallbackThrottled",
        expr=above(longest, site.value(THROTTLED)),
        labels=labels,
        severity=AlertSeverity.WARNING,
        scope=AlertScope.BROKER,
        wait="15m",
        keep="10m",
        summary="Clients of a custom quota callback are throttled.",
        description=f"The custom quota callback of broker {{{{ $labels.broker }}}} delays {{{{ $labels.quota_type }}}} requests, by {DURATION} on average for the slowest client.",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(THROTTLED,),
    )


def _unusual(site: Site, now: str, usual: str, factor: Threshold) -> str:
    several = f"({site.value(factor):.15g} * {usual})"
    return operation(now, ">", several, site.keys())


def _while_muted(site: Site, expression: str) -> str:
    # some agents do not report delay queues: an alert must not depend on them
    queued = call("max_over_time", series(recorded.CLUSTER_DELAY_QUEUE, window="5m"))
    none_muted = compare(aggregate("sum", site.keys(), queued), "==", 0)
    return but_not(expression, none_muted, site.keys())


def busy(site: Site) -> Iterator[Alert]:
    """Alerts on single brokers."""
    labels = ("quota_type", "broker")
    now, before = (
        average(catalog.DELAY_QUEUE_SIZE, site.keys(*labels), "10m", offset=offset) for offset in ("", "30m")
    )
    long = both(
        above(now, site.value(DELAY_QUEUE)),
        above(series(recorded.BROKER_DELAY_QUEUE), site.value(DELAY_QUEUE)),
        site.keys(*labels),
    )
    grown = operation(now, ">", f"({site.value(DELAY_QUEUE_GROWTH):.15g} * {before})", site.keys(*labels))
    yield Alert(
        name="KafkaQuotaDelayQueueGrowing",
        expr=both(long, grown, site.keys(*labels)),
        labels=labels,
        severity=AlertSeverity.WARNING,
        scope=AlertScope.BROKER,
        wait="10m",
        keep="15m",
        summary="A broker mutes more and more connections.",
        description=f"Broker {{{{ $labels.broker }}}} has muted {INTEGER} connections because of {{{{ $labels.quota_type }}}} quotas; half an hour ago, it had muted far fewer.",
        dashboard=Dashboard.BROKERS,
        thresholds=(DELAY_QUEUE, DELAY_QUEUE_GROWTH),
    )
    yield Alert(
        name="KafkaQuotaBrokerSaturated",
        expr=compare(series(recorded.BROKER_HANDLERS_IDLE), "<", site.value(HANDLERS_IDLE)),
        labels=("broker",),
        severity=AlertSeverity.CRITICAL,
        scope=AlertScope.BROKER,
        wait="5m",
        keep="10m",
        summary="The request handlers of a broker are hardly ever idle.",
        description=f"The request handlers of broker {{{{ $labels.broker }}}} are idle for {PERCENT} of their time: requests of all clients wait for them.{most_request_time(site.cluster_label)}",
        dashboard=Dashboard.BROKERS,
        thresholds=(HANDLERS_IDLE,),
    )
    yield Alert(
        name="KafkaQuotaRequestTimeNearCapacity",
        expr=above(series(recorded.BROKER_CAPACITY_USED), site.value(REQUEST_CAPACITY)),
        labels=("broker",),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.BROKER,
        wait="15m",
        keep="15m",
        summary="The threads of a broker are almost always busy.",
        description=f"The threads of broker {{{{ $labels.broker }}}} that serve requests are busy for {PERCENT} of their time: all clients get slower, throttled or not.",
        dashboard=Dashboard.BROKERS,
        thresholds=(REQUEST_CAPACITY,),
    )
    share = operation(
        series(recorded.BROKER_EXEMPT), "/", grouped(above(series(recorded.BROKER_CAPACITY), 0)), site.keys("broker")
    )
    yield Alert(
        name="KafkaQuotaExemptRequestTimeHigh",
        expr=above(grouped(share), site.value(EXEMPT_CAPACITY)),
        labels=("broker",),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.BROKER,
        wait="15m",
        keep="15m",
        summary="A broker is busy with work that no quota limits.",
        description=f"Replication and other work between brokers takes {PERCENT} of the threads of broker {{{{ $labels.broker }}}}: no quota of clients can free them.",
        dashboard=Dashboard.BROKERS,
        thresholds=(EXEMPT_CAPACITY,),
    )


_LISTENER = ("broker", "listener")


def connections(site: Site) -> Iterator[Alert]:
    """Alerts on the rate of new connections."""
    waiting = above(select(catalog.LISTENER_CONNECTION_THROTTLE_SECONDS), site.value(CONNECTION_THROTTLE))
    yield Alert(
        name="KafkaQuotaConnectionsThrottled",
        expr=aggregate("max", site.keys(*_LISTENER), waiting),
        labels=_LISTENER,
        severity=AlertSeverity.WARNING,
        scope=AlertScope.BROKER,
        wait="10m",
        keep="10m",
        summary="Clients wait to connect because of a limit on new connections.",
        description=f"Listener {{{{ $labels.listener }}}} of broker {{{{ $labels.broker }}}} waits {DURATION} on average before it accepts the next connection: all clients that connect there wait, not only the one that opens most connections.",
        dashboard=Dashboard.BROKERS,
        thresholds=(CONNECTION_THROTTLE,),
    )
    refusing = above(select(catalog.IP_CONNECTION_THROTTLE_SECONDS), site.value(IP_CONNECTION_THROTTLE))
    yield Alert(
        name="KafkaQuotaConnectionsOfAddressRefused",
        expr=aggregate("max", site.keys(*_LISTENER), refusing),
        labels=_LISTENER,
        severity=AlertSeverity.INFO,
        scope=AlertScope.BROKER,
        wait="15m",
        keep="15m",
        summary="Connections of some IP addresses are refused for exceeding their limit.",
        description=f"Listener {{{{ $labels.listener }}}} of broker {{{{ $labels.broker }}}} refuses connections of some addresses, each after {DURATION}: they open more connections than their limit allows.",
        dashboard=Dashboard.BROKERS,
        thresholds=(IP_CONNECTION_THROTTLE,),
    )


_EVALUATIONS_A_DAY = 24 * 4


def replication(site: Site) -> Iterator[Alert]:
    """Alerts on replication quotas (KIP-73)."""
    limit = select(
        catalog.REPLICATION_LIMIT,
        'direction!="alter_log_dirs"',  # this one is often meant to stay
    )
    once = aggregate("max", site.keys("broker", "direction"), limit)
    day = call("count_over_time", f"({once})[1d:15m]")
    # promtool counts 96 or 97 evaluations, both ends included
    throttled = both(
        compare(day, ">=", site.value(REPLICATION_DAY) * _EVALUATIONS_A_DAY), limit, site.keys("broker", "direction")
    )
    yield Alert(
        name="KafkaQuotaReplicationThrottleLeftOn",
        expr=compare(aggregate("count", site.keys("direction"), throttled), ">", 0),
        labels=("direction",),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.CLUSTER,
        wait="15m",
        keep="1h",
        summary="A replication throttle has been on for a day.",
        description=f"{INTEGER} brokers have limited the replication of throttled replicas ({{{{ $labels.direction }}}}) for a day: most likely a reassignment ended without `--verify`, which removes the throttle. Replicas that fall behind may never catch up.",
        dashboard=Dashboard.BROKERS,
        thresholds=(REPLICATION_DAY,),
    )


def configuration(site: Site) -> Iterator[Alert]:
    """Alerts on the configured quotas."""
    changed = aggregate("max", site.keys("quota_key"), increase(catalog.LIMIT_CHANGES, "10m"))
    yield Alert(
        name="KafkaQuotaRuleChanged",
        expr=above(changed, 0),
        labels=("quota_key",),
        severity=AlertSeverity.INFO,
        scope=AlertScope.CONFIGURATION,
        wait="1m",
        summary="A quota was set, changed or removed.",
        description="Limits of {{ $labels.quota_key }} were changed within the last 10 minutes. The exporter's log has the old and the new values.",
        dashboard=Dashboard.OVERVIEW,
    )
