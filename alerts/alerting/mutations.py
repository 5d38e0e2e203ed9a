"""The controller refuses or delays changes of topics."""

from __future__ import annotations

from quotascope.metrics import catalog

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
    select,
    series,
)
from ..rule import Alert, Group, Scope, Severity
from ..text import ENTITY, PERCENT, ROUGH
from ..thresholds import REJECTIONS, REJECTIONS_FACTOR, TOKENS_DEBT


def mutations(levels: Levels) -> Group:
    """Alerts on partition mutations (KIP-599)."""
    return Group(
        name="quotascope-mutations", rules=(_exhausted(levels), _rising(levels))
    )


def _exhausted(levels: Levels) -> Alert:
    tokens = aggregate("min", levels.entity, select(catalog.CONTROLLER_MUTATION_TOKENS))
    in_debt = f"({compare(tokens, '< bool', 0)})[15m:1m]"
    return Alert(
        name="KafkaQuotaMutationTokensExhausted",
        expr=both(
            above(call("avg_over_time", in_debt), TOKENS_DEBT.value),
            tokens,
            levels.entity,
        ),
        labels=("user", "client_id"),
        severity=Severity.WARNING,
        scope=Scope.ENTITY,
        wait="10m",
        keep="10m",
        summary="A client has used up its right to create or delete topics.",
        description=f"The token bucket of {ENTITY} for partition mutations was in debt for {PERCENT} of the last 15 minutes: its requests to create, extend or delete topics are refused or delayed.",
        dashboard=Dashboard.MUTATIONS,
        thresholds=(TOKENS_DEBT,),
        spared="One large request; clients without a limit; a controller that stepped down.",
    )


def _rising(levels: Levels) -> Alert:
    rejections = series(recorded.CLUSTER_REJECTIONS)
    usual = operation(
        rejections,
        "<=",
        f"({REJECTIONS_FACTOR.value:g} * {recorded.CLUSTER_REJECTIONS_BASELINE})",
        levels.of("request"),
    )
    return Alert(
        name="KafkaQuotaRejectionsRising",
        expr=but_not(above(rejections, REJECTIONS.value), usual, levels.of("request")),
        labels=("request",),
        severity=Severity.WARNING,
        scope=Scope.CLUSTER,
        wait="10m",
        keep="10m",
        summary="More and more changes of topics are refused.",
        description=f"{ROUGH} requests {{{{ $labels.request }}}} per second are answered with THROTTLING_QUOTA_EXCEEDED, more than {REJECTIONS_FACTOR.value:g} times as many as yesterday (KRaft counts each twice): a client repeats them without waiting.",
        dashboard=Dashboard.MUTATIONS,
        thresholds=(REJECTIONS, REJECTIONS_FACTOR),
        spared="Clients that wait between attempts; refusals that happen every day.",
    )
