"""Six numbers that say whether to read on: the first row of the overview."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import above
from quotascope.metrics import catalog

from ... import statistics, steps
from ...expressions import throttled, total, utilization
from ...links import to_dashboard
from ...model import Row, Stat
from ...scope import Scope
from ...shortcuts import stat


def right_now(scope: Scope) -> Row:
    """Six numbers."""
    return statistics.right_now(
        scope, _throttled, _waiting, _longest_delay, _near, _refused, _sources_down
    )


def _throttled(scope: Scope) -> Stat:
    return statistics.how_many_throttled(
        scope,
        "Users and client-ids that Kafka held back within the last minute. The brokers' averages linger for 30 to 60 s after the last delay.",
        throttled(scope),
    )


def _waiting(scope: Scope) -> Stat:
    return stat(
        scope,
        "Connections waiting",
        "Connections that brokers have muted at this moment: the live signal that somebody is held back.",
        "short",
        total(scope, catalog.DELAY_QUEUE_SIZE),
        to_dashboard(Dashboard.BROKERS, "On which brokers"),
        steps=steps.MUTED,
    )


def _longest_delay(scope: Scope) -> Stat:
    return statistics.longest(
        scope,
        "Longest delay",
        "Average delay of whoever waits longest. Clients give up after their request timeout, often 30 s.",
        throttled(scope),
    )


def _near(scope: Scope) -> Stat:
    return stat(
        scope,
        f"Above {steps.NEAR:.0%} of the limit",
        "Users and client-ids that use nearly all they may, throttled or not: the next peak throttles them.",
        "short",
        scope.or_zero(scope.by("count", above(utilization(scope), steps.NEAR))),
        steps=steps.ANY,
    )


def _refused(scope: Scope) -> Stat:
    return statistics.refused(
        scope,
        "Topic changes refused",
        "Answers with THROTTLING_QUOTA_EXCEEDED per second: creating or deleting topics, adding partitions.",
        to_dashboard(Dashboard.MUTATIONS, "Who changes topics"),
    )


def _sources_down(scope: Scope) -> Stat:
    return statistics.sources_down(
        scope,
        "Brokers and controllers that the exporter cannot read: whoever is throttled there is missing on this page.",
        to_dashboard(Dashboard.EXPORTER, "Which, and why"),
    )
