"""Spark jobs suffer from quotas; their data comes from the Spark listener."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from quotascope.metrics import catalog

from .. import recorded
from ..links import Dashboard, Site
from ..promql import above, aggregate, both, but_not, either, increase, operation, select, series
from ..rule import DURATION, INTEGER, THREE_DIGITS, Alert, AlertScope
from ..settings import AlertSeverity
from ..thresholds import SPARK_RETRIES, SPARK_STALLED, SPARK_STALLED_TRIGGERS, SPARK_THROTTLED

_QUERY = "{{ with $labels.query }}, query {{ printf `%q` . }},{{ end }}"
_JOB = f"Spark job {{{{ printf `%q` $labels.app }}}}{_QUERY}"

_alert = partial(Alert, scope=AlertScope.JOB, dashboard=Dashboard.SPARK)


def jobs(site: Site) -> Iterator[Alert]:
    """Alerts on Spark jobs."""
    yield _alert(
        name="KafkaQuotaSparkJobThrottled",
        expr=above(series(recorded.APP_THROTTLED_RATE), site.value(SPARK_THROTTLED)),
        labels=("app", "query", "side"),
        severity=AlertSeverity.WARNING,
        wait="15m",
        keep="10m",
        summary="A Spark job is throttled by Kafka's quotas.",
        description=f"{_JOB} has {THREE_DIGITS} s of throttle time in every second because of Kafka's quotas (side: {{{{ $labels.side }}}}), as if that many of its tasks did nothing but wait.",
        thresholds=(SPARK_THROTTLED,),
    )
    labels = site.keys("app", "cause")
    grown = increase(catalog.SPARK_TASK_RETRIES, "30m", 'cause=~"kafka_quota|kafka_timeout_throttled"')
    yield _alert(
        name="KafkaQuotaSparkRetries",
        expr=above(aggregate("max", labels, grown), site.value(SPARK_RETRIES)),
        labels=("app", "cause"),
        severity=AlertSeverity.WARNING,
        wait="5m",
        keep="10m",
        summary="Tasks of a Spark job are repeated because of Kafka's quotas.",
        description=f"About {INTEGER} task attempts of Spark job {{{{ printf `%q` $labels.app }}}} were repeated within 30 minutes because of a quota ({{{{ $labels.cause }}}}): a task that fails too often ends its job.",
        thresholds=(SPARK_RETRIES,),
    )
    lost = aggregate("max", site.keys("app"), increase(catalog.SPARK_LISTENER_LOST_EVENTS, "30m"))
    yield _alert(
        name="KafkaQuotaSparkEventsLost",
        expr=above(lost, 0),
        labels=("app",),
        severity=AlertSeverity.INFO,
        wait="5m",
        keep="10m",
        summary="quotascope's Spark listener loses events.",
        description=f"About {INTEGER} events of Spark job {{{{ printf `%q` $labels.app }}}} were lost within 30 minutes: its throttle times, retries and failures are too low.",
    )
    query = site.keys("app", "query")
    age, trigger = (
        aggregate("max", query, select(family))
        for family in (
            catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS,
            catalog.SPARK_QUERY_TRIGGER_SECONDS,
        )
    )
    silent = above(age, site.value(SPARK_STALLED))
    of_no_query = _waits(site.keys("app"), 'query=""')
    yield _alert(
        name="KafkaQuotaSparkQueryStalled",
        expr=but_not(
            either(both(silent, _waits(query), query), both(silent, of_no_query, site.keys("app"))),
            operation(age, "<=", f"{trigger} * {site.value(SPARK_STALLED_TRIGGERS):.15g}", query),
            query,
        ),
        labels=("app", "query"),
        severity=AlertSeverity.WARNING,
        wait="5m",
        keep="10m",
        summary="A streaming query stands still while Kafka throttles it.",
        description=f"{_JOB} has reported no progress for {DURATION}, and Kafka's quotas throttled it in the last 10 minutes.",
        thresholds=(SPARK_STALLED, SPARK_STALLED_TRIGGERS),
    )


def _waits(labels: tuple[str, ...], *matchers: str) -> str:
    """Throttle time above 0. Clients have no query if Spark's connector does not report it."""
    return above(aggregate("max", labels, series(recorded.APP_THROTTLED_RATE, *matchers)), 0)
