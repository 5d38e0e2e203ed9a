"""A replication throttle was left on."""

from __future__ import annotations

from quotascope.metrics import catalog

from ..levels import Levels
from ..links import Dashboard
from ..promql import aggregate, call, compare, select
from ..rule import Alert, Group, Scope, Severity
from ..text import WHOLE
from ..thresholds import REPLICATION_DAY

_LOOKS_A_DAY = 24 * 4


def replication(levels: Levels) -> Group:
    """Alerts on replication quotas (KIP-73)."""
    limit = select(
        catalog.REPLICATION_LIMIT,
        'direction!="alter_log_dirs"',  # this one is often meant to stay
    )
    once = aggregate("max", levels.of("broker", "direction"), limit)
    day = call("count_over_time", f"({once})[1d:15m]")
    # promtool counts 96 or 97 looks, both ends included
    throttled = compare(day, ">=", REPLICATION_DAY.value * _LOOKS_A_DAY)
    return Group(
        name="quotascope-replication",
        interval="2m",
        rules=(
            Alert(
                name="KafkaQuotaReplicationThrottleLeftOn",
                expr=compare(
                    aggregate("count", levels.of("direction"), throttled), ">", 0
                ),
                labels=("direction",),
                severity=Severity.WARNING,
                scope=Scope.CLUSTER,
                wait="15m",
                keep="1h",
                summary="A replication throttle has been on for a day.",
                description=f"{WHOLE} brokers have limited the replication of throttled replicas ({{{{ $labels.direction }}}}) for a day: most likely a reassignment ended without `--verify`, which takes the throttle off. Replicas that fall behind may never catch up.",
                dashboard=Dashboard.BROKERS,
                thresholds=(REPLICATION_DAY,),
                spared="Reassignments of some hours; the limit between log directories.",
            ),
        ),
    )
