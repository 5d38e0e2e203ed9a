"""Six numbers that say whether to read on: the first row of the overview."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import above
from quotascope.metrics import catalog

from ... import steps
from ...expressions import sources_down, throttled, total, utilization
from ...links import to_dashboard
from ...model import Row, Stat
from ...scope import Scope
from ...shortcuts import stat


def right_now(scope: Scope) -> Row:
    """Six numbers."""
    numbers = (_throttled, _waiting, _longest_delay, _near, _refused, _sources_down)
    panels = tuple((4, number(scope)) for number in numbers)
    return Row(title="Right now", panels=panels, height=4)


def _throttled(scope: Scope) -> Stat:
    return stat(
        scope,
        "Throttled",
        "Users and client-ids that Kafka held back within the last minute. The brokers' averages linger for 30 to 60 s after the last delay.",
        "short",
        scope.or_zero(scope.by("count", throttled(scope))),
        steps=steps.ENTITIES,
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
    return stat(
        scope,
        "Longest delay",
        "Average delay of whoever waits longest. Clients give up after their request timeout, often 30 s.",
        "s",
        scope.or_zero(scope.by("max", throttled(scope))),
        steps=steps.DELAY,
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
    return stat(
        scope,
        "Topic changes refused",
        "Answers with THROTTLING_QUOTA_EXCEEDED per second: creating or deleting topics, adding partitions. KRaft counts each twice, on the broker and on the controller.",
        "cps",
        total(scope, catalog.THROTTLING_ERRORS),
        to_dashboard(Dashboard.MUTATIONS, "Who changes topics"),
        steps=steps.REFUSED,
        nothing="none seen",
    )


def _sources_down(scope: Scope) -> Stat:
    return stat(
        scope,
        "Sources down",
        "Brokers and controllers that the exporter cannot read: whoever is throttled there is missing on this page.",
        "short",
        scope.or_zero(scope.by("count", sources_down(scope))),
        to_dashboard(Dashboard.EXPORTER, "Which, and why"),
        steps=steps.DOWN,
    )
