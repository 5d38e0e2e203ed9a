"""One client is held back for long."""

from __future__ import annotations

from quotascope.metrics.catalog import OVERFLOW

from .. import recorded
from ..levels import Levels
from ..links import Dashboard
from ..promql import above, but_not, call, compare, series
from ..rule import Alert, Group, Scope, Severity
from ..text import DURATION, ENTITY
from ..thresholds import CLIENT_TIMEOUT, MUTATION_THROTTLED, PERSISTENT, THROTTLED

_LABELS = ("quota_type", "user", "client_id")
_ONE_BY_ONE = f'user!="{OVERFLOW}"'
"""What the exporter folded into one is nobody that could be told."""


def throttled(levels: Levels) -> Group:
    """Alerts on single entities that are throttled."""
    return Group(
        name="quotascope-throttled",
        rules=(
            _bandwidth(
                levels, "produce", "KafkaQuotaProduceThrottled", "Requests to produce"
            ),
            _bandwidth(
                levels, "fetch", "KafkaQuotaFetchThrottled", "Requests to fetch"
            ),
            _bandwidth(levels, "request", "KafkaQuotaRequestThrottled", "Requests"),
            _mutation(),
            _beyond_timeouts(),
        ),
    )


def _bandwidth(levels: Levels, quota_type: str, name: str, what: str) -> Alert:
    of_type = f'quota_type="{quota_type}"'
    utilization = series(recorded.ENTITY_UTILIZATION, of_type, window="15m")
    return Alert(
        name=name,
        expr=but_not(
            above(
                series(recorded.ENTITY_THROTTLE, of_type, _ONE_BY_ONE), THROTTLED.value
            ),
            compare(call("avg_over_time", utilization), "<", PERSISTENT.value),
            levels.typed,
        ),
        labels=_LABELS,
        severity=Severity.WARNING,
        scope=Scope.ENTITY,
        wait="15m",
        keep="10m",
        summary=f"A client is throttled by its {quota_type} quota for a long time.",
        description=f"{what} of {ENTITY} have been delayed for more than 15 minutes, by {DURATION} on average: it wants more than its {quota_type} quota.",
        dashboard=Dashboard.ENTITY,
        thresholds=(THROTTLED, PERSISTENT),
        spared="Bursts below half of the limit; Kafka's averages after the last throttle; the controller mutation quota.",
    )


def _mutation() -> Alert:
    return Alert(
        name="KafkaQuotaMutationThrottled",
        expr=above(
            series(
                recorded.ENTITY_THROTTLE,
                'quota_type="controller_mutation"',
                _ONE_BY_ONE,
            ),
            MUTATION_THROTTLED.value,
        ),
        labels=_LABELS,
        severity=Severity.INFO,
        scope=Scope.ENTITY,
        wait="15m",
        keep="10m",
        summary="A client waits long to create or delete topics.",
        description=f"Requests of {ENTITY} to create, extend or delete topics have been delayed for more than 15 minutes, by {DURATION} on average: it wants more partition mutations than its quota.",
        dashboard=Dashboard.MUTATIONS,
        thresholds=(MUTATION_THROTTLED,),
        spared="A single large request.",
    )


def _beyond_timeouts() -> Alert:
    return Alert(
        name="KafkaQuotaThrottleBeyondClientTimeout",
        expr=above(
            series(
                recorded.ENTITY_THROTTLE,
                'quota_type=~"produce|fetch"',
                _ONE_BY_ONE,
            ),
            CLIENT_TIMEOUT.value,
        ),
        labels=_LABELS,
        severity=Severity.WARNING,
        scope=Scope.ENTITY,
        wait="3m",
        keep="10m",
        summary="A client is throttled for longer than clients wait for an answer.",
        description=f"Requests of {ENTITY} are delayed by {DURATION} on average because of its {{{{ $labels.quota_type }}}} quota. Many clients give up after {CLIENT_TIMEOUT.value:g} s: producers may lose records, consumers may leave their group.",
        dashboard=Dashboard.ENTITY,
        thresholds=(CLIENT_TIMEOUT,),
        spared="A single long throttle; request quotas, whose throttles are at most one second by default.",
    )
