"""Traffic that quotas do not hold back, or cannot tell apart."""

from __future__ import annotations

from quotascope.metrics import catalog
from quotascope.metrics.catalog import OVERFLOW, Family

from .. import recorded
from ..levels import Levels
from ..links import Dashboard, Site
from ..promql import (
    above,
    aggregate,
    both,
    but_not,
    call,
    compare,
    grouped,
    operation,
    quoted,
    select,
    series,
)
from ..rule import Alert, Group, Scope, Severity
from ..text import BYTES, DURATION, ENTITY, PERCENT
from ..thresholds import (
    HEAVY_BYTES,
    HEAVY_SHARE,
    PROXY_SHARE,
    PROXY_USERS,
    SYSTEM_THROTTLED,
)

_ONE_BY_ONE = f'user!="{OVERFLOW}"'
_NOT_NAMED = 'level=~"default_user_default_client|default_user|default_client"'


def traffic(levels: Levels) -> Group:
    """Alerts on who has the traffic."""
    return Group(
        name="quotascope-traffic",
        rules=(_heavy(levels), _proxy(levels), _system_user(levels)),
    )


def _heavy(levels: Levels) -> Alert:
    produced = _unlimited(
        levels, "produce", recorded.ENTITY_PRODUCE, catalog.PRODUCE_LIMIT
    )
    fetched = _unlimited(levels, "fetch", recorded.ENTITY_FETCH, catalog.FETCH_LIMIT)
    # without the limits nobody has one
    limits_known = aggregate(
        "group", levels.cluster, select(catalog.LIMITS_AGE_SECONDS)
    )
    callback = above(select(catalog.CALLBACK_DETECTED), 0)
    free = both(operation(produced, "or", fetched), limits_known, levels.cluster)
    return Alert(
        name="KafkaQuotaHeavyClientWithoutLimit",
        expr=but_not(free, callback, levels.cluster),
        labels=("quota_type", "user", "client_id"),
        severity=Severity.INFO,
        scope=Scope.ENTITY,
        wait="30m",
        keep="30m",
        summary="A client without a limit has a large part of the traffic.",
        description=f"With {BYTES}, {ENTITY} has more than {HEAVY_SHARE.value:.0%} of the cluster's traffic, and no {{{{ $labels.quota_type }}}} limit holds it back: if it doubles, everybody feels it.",
        dashboard=Dashboard.ENTITY,
        thresholds=(HEAVY_BYTES, HEAVY_SHARE),
        spared="Times when limits cannot be read; custom callbacks; the overflow entity; clusters with little traffic.",
    )


def _unlimited(levels: Levels, quota_type: str, amounts: str, limit: Family) -> str:
    amount = series(amounts, _ONE_BY_ONE)
    share = _share_of_cluster(levels, amount)
    heavy = both(
        above(amount, HEAVY_BYTES.value),
        above(grouped(share), HEAVY_SHARE.value),
        levels.entity,
    )
    free = but_not(heavy, select(limit), levels.entity)
    return call("label_replace", free, '"quota_type"', quoted(quota_type), '""', '""')


def _share_of_cluster(levels: Levels, amount: str) -> str:
    return operation(
        amount,
        f"/ on ({', '.join(levels.cluster)}) group_left ()",
        grouped(above(series(recorded.CLUSTER_BYTES), 0)),
    )


def _proxy(levels: Levels) -> Alert:
    amount = series(recorded.USER_BYTES, 'user!=""', _ONE_BY_ONE)
    share = above(grouped(_share_of_cluster(levels, amount)), PROXY_SHARE.value)
    busy = both(
        share,
        above(series(recorded.CLUSTER_BYTES), HEAVY_BYTES.value),
        levels.cluster,
    )
    users = aggregate("count", levels.cluster, above(amount, 0))
    return Alert(
        name="KafkaQuotaOneUserOwnsTraffic",
        expr=both(busy, compare(users, ">=", PROXY_USERS.value), levels.cluster),
        labels=("user",),
        severity=Severity.INFO,
        scope=Scope.CLUSTER,
        wait="2h",
        keep="1h",
        summary="One user has most of the traffic of a cluster: a proxy, or clients that do not log in.",
        description=f"User {{{{ printf `%q` $labels.user }}}} has {PERCENT} of the measured traffic. If it stands for many applications, such as behind a proxy, one quota holds all of them back together.",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(PROXY_SHARE, HEAVY_BYTES, PROXY_USERS),
        spared="Clusters with one or two users, or little traffic.",
    )


def _system_user(levels: Levels) -> Alert:
    waiting = above(series(recorded.ENTITY_THROTTLE), SYSTEM_THROTTLED.value)
    by_default = aggregate(
        "group", levels.typed, "\nor\n".join(_system_rules(levels.site))
    )
    return Alert(
        name="KafkaQuotaSystemUserThrottledByDefault",
        expr=both(waiting, by_default, levels.typed),
        labels=("quota_type", "user", "client_id"),
        severity=Severity.WARNING,
        scope=Scope.ENTITY,
        wait="10m",
        keep="10m",
        summary="One of the platform's own programs is throttled by a default quota.",
        description=f"Requests of {ENTITY} are delayed by {DURATION} on average. It looks like a part of the platform, and nobody set this {{{{ $labels.quota_type }}}} limit for it: a default rule did.",
        dashboard=Dashboard.ENTITY,
        thresholds=(SYSTEM_THROTTLED,),
        spared="Programs with a rule of their own.",
    )


def _system_rules(site: Site) -> tuple[str, str]:
    pattern = quoted(site.system_users)
    return (
        select(catalog.RULE_INFO, _NOT_NAMED, f"user=~{pattern}"),
        select(catalog.RULE_INFO, _NOT_NAMED, f"client_id=~{pattern}"),
    )
