"""A client comes close to its limit."""

from __future__ import annotations

from .. import recorded
from ..levels import Levels
from ..links import Dashboard
from ..promql import above, both, but_not, series
from ..rule import Alert, Group, Scope, Severity
from ..text import ENTITY, PERCENT
from ..thresholds import NEAR_LIMIT, PREDICTION

_LABELS = ("quota_type", "user", "client_id")
_RECENT = series(recorded.ENTITY_UTILIZATION_RECENT)


def near_limit(levels: Levels) -> Group:
    """Alerts on utilisation; trends are slow, and so is the evaluation."""
    return Group(
        name="quotascope-near-limit",
        interval="2m",
        rules=(_near(levels), _predicted(levels)),
    )


def _near(levels: Levels) -> Alert:
    near = above(_RECENT, NEAR_LIMIT.value)
    return Alert(
        name="KafkaQuotaNearLimit",
        expr=both(near, series(recorded.ENTITY_UTILIZATION), levels.typed),
        labels=_LABELS,
        severity=Severity.WARNING,
        scope=Scope.ENTITY,
        wait="15m",
        keep="30m",
        summary="A client uses almost all of its quota.",
        description=f"In the last half hour {ENTITY} used {PERCENT} of its {{{{ $labels.quota_type }}}} quota on its busiest broker: its next peak will be throttled.",
        dashboard=Dashboard.ENTITY,
        thresholds=(NEAR_LIMIT,),
        spared="Peaks within half an hour; clients that left or have no limit.",
    )


def _predicted(levels: Levels) -> Alert:
    trend = above(series(recorded.ENTITY_UTILIZATION_PREDICTED), 1)
    here = series(recorded.ENTITY_UTILIZATION)
    known_for_long = both(
        here, series(recorded.ENTITY_UTILIZATION, offset="4h"), levels.typed
    )
    rising = both(trend, above(_RECENT, PREDICTION.value), levels.typed)
    not_near = but_not(rising, above(_RECENT, NEAR_LIMIT.value), levels.typed)
    return Alert(
        name="KafkaQuotaLimitPredicted",
        expr=both(not_near, known_for_long, levels.typed),
        labels=_LABELS,
        severity=Severity.INFO,
        scope=Scope.ENTITY,
        wait="30m",
        keep="30m",
        summary="A client will reach its quota within hours if it goes on like this.",
        description=f"If the trend of the last six hours goes on, {ENTITY} will use {PERCENT} of its {{{{ $labels.quota_type }}}} quota in three hours' time.",
        dashboard=Dashboard.ENTITY,
        thresholds=(PREDICTION, NEAR_LIMIT),
        spared="Clients known for less than four hours; small values; clients that are near the limit already.",
    )
