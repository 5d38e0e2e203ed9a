"""Alerts on single clients: throttled, near their limit, out of tokens, or with traffic that no quota holds back."""

from __future__ import annotations

from collections.abc import Iterator

from quotascope.metrics import catalog
from quotascope.metrics.catalog import OVERFLOW, Family

from .. import recorded
from ..links import Dashboard, Site
from ..promql import above, aggregate, average, both, but_not, call, compare, grouped, operation, quoted, select, series
from ..rule import (
    BYTES,
    DURATION,
    ENTITY,
    ENTITY_LABELS,
    INTEGER,
    PERCENT,
    QUOTA_LABELS,
    THREE_DIGITS,
    Alert,
    AlertScope,
)
from ..settings import AlertSeverity, duration_seconds, duration_text
from ..thresholds import (
    CLIENT_TIMEOUT,
    HEAVY_BYTES,
    HEAVY_SHARE,
    MUTATION_THROTTLED,
    NEAR_LIMIT,
    PERSISTENT,
    PREDICTION,
    REFUSALS,
    REFUSALS_FACTOR,
    SHADOW_ENTITIES,
    STORM,
    SYSTEM_THROTTLED,
    THROTTLED,
    TOKENS_DEBT,
)

_ONE_BY_ONE = f'user!="{OVERFLOW}"'
"""Leaves out the overflow entity, which stands for many clients."""
_STORM = "KafkaQuotaThrottleStorm"
_NEAR = "KafkaQuotaNearLimit"
_MANY_NEAR = "KafkaQuotaManyNearLimit"
_MANY_IN_SHADOW = "KafkaQuotaShadowThrottlesMany"
_WAIT = "15m"
"""The `for` of alerts on throttled entities and on those near their limits, and of those on too many of them."""
_EVALUATED = 120
"""Seconds in which each rule is evaluated at least once."""
LINGERING = ((60, "2m"), (180, "4m"), (300, "7m"), (480, "12m"), (780, "25m"))
"""
Throttle times in seconds, and for how long an entity counts as throttled after the last sample with a longer one.

Kafka reports a throttle for about a minute, however long it lasts, and the client's next one comes when it has ended. The windows reach from the
last sample of a throttle to the first one of the next, for throttles of the times up to the next line; after a single one they are true for at
most twice its time.
"""


def throttled(site: Site) -> Iterator[Alert]:
    """Alerts on single entities that are throttled."""
    yield _throttled_by(site, "produce", "KafkaQuotaProduceThrottled", "Requests to produce")
    yield _throttled_by(site, "fetch", "KafkaQuotaFetchThrottled", "Requests to fetch")
    yield _throttled_by(site, "request", "KafkaQuotaRequestThrottled", "Requests")
    yield Alert(
        name="KafkaQuotaMutationThrottled",
        expr=_one_by_one(
            site,
            _longer('quota_type="controller_mutation"', site.value(MUTATION_THROTTLED)),
            _storm(site, "KafkaQuotaMutationThrottled"),
        ),
        labels=QUOTA_LABELS,
        severity=AlertSeverity.INFO,
        scope=AlertScope.ENTITY,
        wait="15m",
        keep="10m",
        summary="A client is throttled when it creates or deletes topics.",
        description=f"Requests of {ENTITY} to create, extend or delete topics are delayed by {DURATION} on average: it wants more controller mutations than its quota allows.",
        dashboard=Dashboard.MUTATIONS,
        thresholds=(MUTATION_THROTTLED, STORM, THROTTLED),
    )
    yield Alert(
        name="KafkaQuotaThrottleBeyondClientTimeout",
        expr=_still_longer(site, 'quota_type=~"produce|fetch"', site.value(CLIENT_TIMEOUT)),
        labels=QUOTA_LABELS,
        severity=AlertSeverity.WARNING,
        scope=AlertScope.ENTITY,
        wait="4m",
        keep="5m",
        summary="A client is throttled for longer than clients wait for an answer.",
        description=f"Requests of {ENTITY} are delayed by {DURATION} on average because of its {{{{ $labels.quota_type }}}} quota. Many clients give up after {site.value(CLIENT_TIMEOUT):g} s: producers may lose records, consumers may leave their group.",
        dashboard=Dashboard.ENTITY,
        thresholds=(CLIENT_TIMEOUT, STORM, THROTTLED),
    )


def _longer(of_type: str, seconds: float, window: str = "") -> str:
    """Entities that are throttled for longer than this, now or at any time within a window."""
    throttle = series(recorded.ENTITY_THROTTLE, of_type, _ONE_BY_ONE, window=window)
    return above(call("max_over_time", throttle) if window else throttle, seconds)


def _still_longer(site: Site, of_type: str, seconds: float) -> str:
    """Entities that are throttled for longer than this, with those whose throttle still lasts although Kafka does not report it any more, one by one."""
    storm = recorded.storm(site, series(recorded.CLUSTER_THROTTLED_ENTITIES))
    arms = [_one_by_one(site, _longer(of_type, seconds), storm)]
    for least, window in LINGERING:
        # two comparisons: which number is greater is unknown for a threshold that the mixin leaves open
        entities = above(grouped(_longer(of_type, least, window)), seconds)
        number = call("max_over_time", series(recorded.CLUSTER_THROTTLED_ENTITIES, window=window))
        arms.append(_one_by_one(site, entities, recorded.storm(site, number)))
    return "\nor\n".join(arms)


def _one_by_one(site: Site, entities: str, storm: str) -> str:
    """These entities, where they are so few that each is a message."""
    if not site.enabled(_STORM):  # then no other alert has their number
        return entities
    return but_not(entities, storm, site.keys())


def _storm(site: Site, alert: str) -> str:
    """
    Clusters with too many throttled entities during almost the whole `for` of an alert on an entity, or of `KafkaQuotaThrottleStorm`, if that is shorter.

    Where their number is around the threshold, a moment above it would start the `for` of each alert on an entity again, and a moment below it that of
    `KafkaQuotaThrottleStorm`: none would ever fire. No more entities than the threshold are throttled without a pause over a moment below it.
    """
    number = series(recorded.CLUSTER_THROTTLED_ENTITIES)
    if window := _almost_for(site, alert, _STORM):
        in_window = series(recorded.CLUSTER_THROTTLED_ENTITIES, window=window)
        number = call("min_over_time", in_window)
    return recorded.storm(site, number)


def _almost_for(site: Site, *alerts: str) -> str:
    """A minute less than the shortest `for` of some alerts; empty if rules may not be evaluated within it."""
    shortest = min(duration_seconds(site.wait(name, _WAIT)) for name in alerts) - 60
    return duration_text(shortest) if shortest >= _EVALUATED else ""


def _throttled_by(site: Site, quota_type: str, name: str, what: str) -> Alert:
    of_type = f'quota_type="{quota_type}"'
    on_brokers = average(catalog.UTILIZATION, site.keys(*catalog.UTILIZATION.labels), "15m", of_type)
    utilization = aggregate("max", site.keys(*QUOTA_LABELS), on_brokers)
    return Alert(
        name=name,
        expr=but_not(
            _one_by_one(site, _longer(of_type, site.value(THROTTLED)), _storm(site, name)),
            compare(utilization, "<", site.value(PERSISTENT)),
            site.keys(*QUOTA_LABELS),
        ),
        labels=QUOTA_LABELS,
        severity=AlertSeverity.WARNING,
        scope=AlertScope.ENTITY,
        wait="15m",
        keep="10m",
        summary=f"A client is throttled by its {quota_type} quota for a long time.",
        description=f"{what} of {ENTITY} are delayed by {DURATION} on average: it wants more than its {quota_type} quota allows.",
        dashboard=Dashboard.ENTITY,
        thresholds=(THROTTLED, PERSISTENT, STORM),
    )


_RECENT = series(recorded.ENTITY_UTILIZATION_RECENT)


def near_limit(site: Site) -> Iterator[Alert]:
    """Alerts on utilization; trends are slow, and so is the evaluation."""
    near = both(above(_RECENT, site.value(NEAR_LIMIT)), series(recorded.ENTITY_UTILIZATION), site.keys(*QUOTA_LABELS))
    throttled_lately = call("present_over_time", series(recorded.ENTITY_THROTTLE, window="30m"))
    clients = but_not(near, throttled_lately, site.keys(*QUOTA_LABELS))
    number = aggregate("count", site.keys(), clients)
    many = for_long = above(number, site.value(STORM))
    if window := _almost_for(site, _NEAR, _MANY_NEAR):
        # or a number around the threshold would start the `for` of both alerts again and again, as with `_storm`
        lowest = call("min_over_time", f"{grouped(number)}[{window}:2m]")
        for_long = above(lowest, site.value(STORM))
    yield Alert(
        name=_NEAR,
        expr=but_not(clients, for_long, site.keys()) if site.enabled(_MANY_NEAR) else clients,
        labels=QUOTA_LABELS,
        severity=AlertSeverity.WARNING,
        scope=AlertScope.ENTITY,
        wait="15m",
        keep="10m",
        summary="A client that is not throttled uses almost all of its quota.",
        description=f"Over half an hour, {ENTITY} used {PERCENT} of its {{{{ $labels.quota_type }}}} quota on its busiest broker and was not throttled: Kafka will throttle it there above 100%.",
        dashboard=Dashboard.ENTITY,
        thresholds=(NEAR_LIMIT, STORM),
    )
    yield Alert(
        name=_MANY_NEAR,
        expr=many,
        labels=(),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.CLUSTER,
        wait="15m",
        keep="10m",
        summary="Too many clients are near their limits for an alert each.",
        description=f"Over half an hour, the utilization of {INTEGER} quotas of clients that were not throttled was above {site.value(NEAR_LIMIT) * 100:g}%. They have no alerts of their own.",
        dashboard=Dashboard.OVERVIEW,
        thresholds=(NEAR_LIMIT, STORM),
    )
    trend = above(series(recorded.ENTITY_UTILIZATION_PREDICTED), 1)
    here = series(recorded.ENTITY_UTILIZATION)
    rising = both(trend, above(_RECENT, site.value(PREDICTION)), site.keys(*QUOTA_LABELS))
    not_near = but_not(rising, above(_RECENT, site.value(NEAR_LIMIT)), site.keys(*QUOTA_LABELS))
    yield Alert(
        name="KafkaQuotaLimitPredicted",
        expr=both(not_near, here, site.keys(*QUOTA_LABELS)),
        labels=QUOTA_LABELS,
        severity=AlertSeverity.INFO,
        scope=AlertScope.ENTITY,
        wait="30m",
        keep="30m",
        summary="By its trend, a client will reach its quota within hours.",
        description=f"By the trend of the last six hours, {ENTITY} will use {PERCENT} of its {{{{ $labels.quota_type }}}} quota in three hours' time.",
        dashboard=Dashboard.ENTITY,
        thresholds=(PREDICTION, NEAR_LIMIT),
    )


def shadows(site: Site) -> Iterator[Alert]:
    """Alerts on clients that quotas would throttle if they were set."""
    many = above(
        aggregate("max", site.keys("shadow", "quota_type"), select(catalog.SHADOW_THROTTLED_ENTITIES)),
        site.value(SHADOW_ENTITIES),
    )
    each = aggregate("max", site.keys("shadow", *QUOTA_LABELS), select(catalog.SHADOW_THROTTLE_TIME))
    longer = above(each, site.value(THROTTLED))
    yield Alert(
        name="KafkaQuotaShadowThrottlesClient",
        expr=but_not(longer, many, site.keys("shadow", "quota_type")) if site.enabled(_MANY_IN_SHADOW) else longer,
        labels=("shadow", *QUOTA_LABELS),
        severity=AlertSeverity.INFO,
        scope=AlertScope.ENTITY,
        wait="15m",
        keep="10m",
        summary="A quota that is not set would throttle a client.",
        description=f"If {{{{ $labels.shadow | printf `%q` }}}} were set, requests of {ENTITY} would be delayed by {DURATION} because of its {{{{ $labels.quota_type }}}} quota. No broker enforces it.",
        dashboard=Dashboard.SHADOW,
        thresholds=(THROTTLED, SHADOW_ENTITIES),
    )
    yield Alert(
        name=_MANY_IN_SHADOW,
        expr=many,
        labels=("shadow", "quota_type"),
        severity=AlertSeverity.INFO,
        scope=AlertScope.CLUSTER,
        wait="15m",
        keep="10m",
        summary="A quota that is not set would throttle many clients.",
        description=f"If {{{{ $labels.shadow | printf `%q` }}}} were set, its {{{{ $labels.quota_type }}}} quotas would throttle {INTEGER} clients on one broker. No broker enforces them.",
        dashboard=Dashboard.SHADOW,
        thresholds=(SHADOW_ENTITIES,),
    )


def mutations(site: Site) -> Iterator[Alert]:
    """Alerts on controller mutations (KIP-599)."""
    family = catalog.CONTROLLER_MUTATION_TOKENS
    tokens, labels = select(family), site.keys(*family.labels)
    # in steps of the shortest usual scrape interval: longer ones would always meet a client that repeats each minute in the same phase
    in_debt = f"({compare(tokens, '< bool', 0)})[15m:15s]"
    share = aggregate("avg", labels, call("avg_over_time", in_debt))
    # a younger bucket was full before: the share of its own time would be too high
    there_before = both(share, select(family, offset="15m"), labels)
    still_there = both(there_before, tokens, labels)
    yield Alert(
        name="KafkaQuotaMutationTokensExhausted",
        expr=above(aggregate("max", site.keys(*ENTITY_LABELS), still_there), site.value(TOKENS_DEBT)),
        labels=("user", "client_id"),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.ENTITY,
        wait="10m",
        keep="10m",
        summary="A client's tokens to create or delete topics are used up.",
        description=f"The token bucket of {ENTITY} for controller mutations was in debt for {PERCENT} of the last 15 minutes: its requests to create, extend or delete topics are refused or delayed.",
        dashboard=Dashboard.MUTATIONS,
        thresholds=(TOKENS_DEBT,),
    )
    refusals = series(recorded.CLUSTER_REFUSALS)
    usual = operation(
        refusals,
        "<=",
        f"({site.value(REFUSALS_FACTOR):.15g} * {recorded.CLUSTER_REFUSALS_BASELINE})",
        site.keys("request"),
    )
    yield Alert(
        name="KafkaQuotaRefusalsRising",
        expr=but_not(
            # a cluster whose usual is unknown may refuse as many every day
            both(
                above(refusals, site.value(REFUSALS)), series(recorded.CLUSTER_THROTTLED_ENTITIES_BASELINE), site.keys()
            ),
            usual,
            site.keys("request"),
        ),
        labels=("request",),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.CLUSTER,
        wait="10m",
        keep="10m",
        summary="More and more requests to change topics are refused.",
        description=f"{THREE_DIGITS} requests {{{{ $labels.request }}}} per second are answered with THROTTLING_QUOTA_EXCEEDED, more than {site.value(REFUSALS_FACTOR):g} times as many as yesterday (KRaft counts each twice): a client repeats them without waiting.",
        dashboard=Dashboard.MUTATIONS,
        thresholds=(REFUSALS, REFUSALS_FACTOR),
    )


_NOT_NAMED = 'level=~"default_user_default_client|default_user|default_client"'


def traffic(site: Site) -> Iterator[Alert]:
    """Alerts on who has the traffic."""
    produced = _unlimited(site, "produce", recorded.ENTITY_PRODUCE, catalog.PRODUCE_LIMIT)
    fetched = _unlimited(site, "fetch", recorded.ENTITY_FETCH, catalog.FETCH_LIMIT)
    # while limits cannot be read, no client has one
    limits_known = aggregate("group", site.keys(), select(catalog.LIMITS_AGE_SECONDS))
    callback = above(select(catalog.CALLBACK_DETECTED), 0)
    free = both(operation(produced, "or", fetched), limits_known, site.keys())
    yield Alert(
        name="KafkaQuotaHeavyClientWithoutLimit",
        expr=but_not(free, callback, site.keys()),
        labels=("quota_type", "user", "client_id"),
        severity=AlertSeverity.INFO,
        scope=AlertScope.ENTITY,
        wait="30m",
        keep="30m",
        summary="A client without a limit has a large part of the traffic.",
        description=f"With {BYTES}, {ENTITY} has more than {site.value(HEAVY_SHARE) * 100:g}% of the cluster's traffic, and no {{{{ $labels.quota_type }}}} limit: if its traffic doubles, all clients slow down.",
        dashboard=Dashboard.ENTITY,
        thresholds=(HEAVY_BYTES, HEAVY_SHARE),
    )
    waiting = above(series(recorded.ENTITY_THROTTLE), site.value(SYSTEM_THROTTLED))
    by_default = aggregate("group", site.keys(*QUOTA_LABELS), "\nor\n".join(_system_rules(site)))
    yield Alert(
        name="KafkaQuotaSystemUserThrottledByDefault",
        expr=both(waiting, by_default, site.keys(*QUOTA_LABELS)),
        labels=("quota_type", "user", "client_id"),
        severity=AlertSeverity.WARNING,
        scope=AlertScope.ENTITY,
        wait="10m",
        keep="10m",
        summary="One of the platform's own programs is throttled by a default quota.",
        description=f"Requests of {ENTITY} are delayed by {DURATION} on average. It looks like a part of the platform, and its {{{{ $labels.quota_type }}}} limit comes from a default rule.",
        dashboard=Dashboard.ENTITY,
        thresholds=(SYSTEM_THROTTLED,),
    )


def _unlimited(site: Site, quota_type: str, amounts: str, limit: Family) -> str:
    amount = series(amounts, _ONE_BY_ONE)
    share = _share_of_cluster(site, amount)
    heavy = both(
        above(amount, site.value(HEAVY_BYTES)),
        above(grouped(share), site.value(HEAVY_SHARE)),
        site.keys(*ENTITY_LABELS),
    )
    free = but_not(heavy, select(limit), site.keys(*ENTITY_LABELS))
    return call("label_replace", free, '"quota_type"', quoted(quota_type), '""', '""')


def _share_of_cluster(site: Site, amount: str) -> str:
    return operation(
        amount, f"/ on ({', '.join(site.keys())}) group_left ()", grouped(above(series(recorded.CLUSTER_BYTES), 0))
    )


def _system_rules(site: Site) -> tuple[str, str]:
    pattern = quoted(site.system_users)
    return (
        select(catalog.RULE_INFO, _NOT_NAMED, f"user=~{pattern}"),
        select(catalog.RULE_INFO, _NOT_NAMED, f"client_id=~{pattern}"),
    )
