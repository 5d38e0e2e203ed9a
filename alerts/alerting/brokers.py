"""A broker has more to do than its threads or its delay queues should hold."""

from __future__ import annotations

from .. import recorded
from ..levels import Levels
from ..links import Dashboard
from ..promql import above, both, call, grouped, operation, series
from ..rule import Alert, Group, Scope, Severity
from ..text import PERCENT, WHOLE
from ..thresholds import (
    DELAY_QUEUE,
    DELAY_QUEUE_GROWTH,
    EXEMPT_CAPACITY,
    REQUEST_CAPACITY,
)


def brokers(levels: Levels) -> Group:
    """Alerts on single brokers."""
    return Group(
        name="quotascope-brokers-busy",
        rules=(_queue(levels), _request_time(), _exempt(levels)),
    )


def _queue(levels: Levels) -> Alert:
    labels = ("quota_type", "broker")
    now = _average(None)
    before = _average("30m")
    long = both(
        above(now, DELAY_QUEUE.value),
        above(series(recorded.BROKER_DELAY_QUEUE), DELAY_QUEUE.value),
        levels.of(*labels),
    )
    grown = operation(
        now, ">", f"({DELAY_QUEUE_GROWTH.value:g} * {before})", levels.of(*labels)
    )
    return Alert(
        name="KafkaQuotaDelayQueueGrowing",
        expr=both(long, grown, levels.of(*labels)),
        labels=labels,
        severity=Severity.WARNING,
        scope=Scope.BROKER,
        wait="10m",
        keep="15m",
        summary="A broker makes more and more connections wait.",
        description=f"Broker {{{{ $labels.broker }}}} has muted {WHOLE} connections because of {{{{ $labels.quota_type }}}} quotas, and half an hour ago far fewer.",
        dashboard=Dashboard.BROKERS,
        thresholds=(DELAY_QUEUE, DELAY_QUEUE_GROWTH),
        spared="Waves of minutes; long but steady queues; the first 40 minutes of data.",
    )


def _average(offset: str | None) -> str:
    window = series(recorded.BROKER_DELAY_QUEUE, window="10m", offset=offset or "")
    return call("avg_over_time", window)


def _request_time() -> Alert:
    return Alert(
        name="KafkaQuotaRequestTimeNearCapacity",
        expr=above(series(recorded.BROKER_CAPACITY_USED), REQUEST_CAPACITY.value),
        labels=("broker",),
        severity=Severity.WARNING,
        scope=Scope.BROKER,
        wait="15m",
        keep="15m",
        summary="The threads of a broker are almost always busy.",
        description=f"The threads of broker {{{{ $labels.broker }}}} that serve requests have been busy for {PERCENT} of their time, for more than 15 minutes: all clients get slower, throttled or not.",
        dashboard=Dashboard.BROKERS,
        thresholds=(REQUEST_CAPACITY,),
        spared="Peaks of minutes. Silent without a request quota, because brokers then do not measure request time.",
    )


def _exempt(levels: Levels) -> Alert:
    share = operation(
        series(recorded.BROKER_EXEMPT),
        "/",
        grouped(above(series(recorded.BROKER_CAPACITY), 0)),
        levels.broker,
    )
    return Alert(
        name="KafkaQuotaExemptRequestTimeHigh",
        expr=above(grouped(share), EXEMPT_CAPACITY.value),
        labels=("broker",),
        severity=Severity.WARNING,
        scope=Scope.BROKER,
        wait="15m",
        keep="15m",
        summary="A broker is busy with work that no quota limits.",
        description=f"Replication and other work between brokers takes {PERCENT} of the threads of broker {{{{ $labels.broker }}}}: no quota of clients can free them.",
        dashboard=Dashboard.BROKERS,
        thresholds=(EXEMPT_CAPACITY,),
        spared="A broker that catches up after a restart.",
    )
