"""Expressions that several dashboards need."""

from __future__ import annotations

from quotascope.metrics.catalog import (
    CALLBACK_THROTTLE_TIME_SECONDS,
    RULE_INFO,
    SOURCE_UP,
    THROTTLE_CAUSE_INFO,
    THROTTLE_TIME_SECONDS,
    THROTTLING_ERRORS,
    UTILIZATION,
    Family,
    FamilyType,
)
from quotascope.metrics.kafka.entities import QuotaType

from .promql import above, both, but_not, call, compare, grouped, rate, span
from .recorded import (
    ENTITY_THROTTLE,
    ENTITY_THROTTLED_SHARE,
    ENTITY_UTILIZATION,
    ENTITY_UTILIZATION_PREDICTED,
    TREND_NEEDS,
    TREND_WINDOW,
    throttled_share,
)
from .scope import RATE_INTERVAL, Scope

ENTITY = ("quota_type", "user", "client_id")
RULE = ("rule",)
_WHOLE_RANGE = "$__range:5s"
"""The dashboard's range in steps of the scrape interval that bursts under a minute need (docs/guides/recommend.md)."""


def throttled(scope: Scope, *matchers: str) -> str:
    """Return the throttle time of entities on their worst broker, above 0."""
    if scope.recorded:
        recorded = scope.recorded_of(ENTITY_THROTTLE, *matchers)
        return scope.of_teams(_without_name(scope, recorded))
    return scope.of_teams(scope.by("max", _by_own_quota(scope, *matchers), *ENTITY))


def _by_own_quota(scope: Scope, *matchers: str) -> str:
    """Return the throttle times above 0, without request throttles that another entity has as its throttle time."""
    delayed = above(scope.of(THROTTLE_TIME_SECONDS, *matchers), 0)
    referring = scope.of(THROTTLE_CAUSE_INFO, 'by_broker!=""', *matchers)
    return but_not(delayed, referring, scope.keys(*THROTTLE_TIME_SECONDS.labels))


def share_throttled(scope: Scope, *matchers: str) -> str:
    """
    Return the throttled share of entities, on the broker where it is highest.

    Without recorded series, a throttle counts for as long as Kafka reports it, even if it lasts longer.
    """
    if scope.recorded:
        recorded = scope.recorded_of(ENTITY_THROTTLED_SHARE, *matchers)
        return scope.of_teams(_without_name(scope, recorded))
    return scope.of_teams(scope.by("max", throttled_share(grouped(_by_own_quota(scope, *matchers))), *ENTITY))


def latest(scope: Scope, usage: Family, *matchers: str) -> str:
    """
    Return the latest usage of entities in the dashboard's range, on the broker where it is highest.

    A table of what they did in the range begins with it: it has a series for each entity that another query has one of.
    """
    newest = call("last_over_time", scope.of(usage, *matchers, window="$__range"))
    return scope.by("max", newest, "user", "client_id")


def limit_for_a_hundredth(scope: Scope, usage: Family, *matchers: str) -> str:
    """
    Return the lowest limit that would throttle entities for at most 1 % of their active time in the dashboard's range.

    Active is usage above 0. A sample is Kafka's own rate, which Kafka compares with the limit. Each broker applies the
    limit separately, so the broker that needs most counts. For an instant query; see docs/guides/recommend.md.
    """
    active = grouped(above(scope.of(usage, *matchers), 0))
    return scope.by("max", call("quantile_over_time", "0.99", f"{active}{span(_WHOLE_RANGE)}"), "user", "client_id")


def share_of_range_throttled(scope: Scope, quota_type: QuotaType, *matchers: str) -> str:
    """Return the part of the dashboard's range in which entities had a throttle time, on their worst broker."""
    times = scope.of(THROTTLE_TIME_SECONDS, f'quota_type="{quota_type.label}"', *matchers)
    return scope.by(
        "max", call("avg_over_time", f"{grouped(f'{times} > bool 0')}{span(_WHOLE_RANGE)}"), "user", "client_id"
    )


def throttled_by_callback(scope: Scope) -> str:
    """Return the throttle time of the clients of a custom quota callback, above 0; their labels are the callback's."""
    return above(scope.of(CALLBACK_THROTTLE_TIME_SECONDS), 0)


def count_by_callback(scope: Scope, *labels: str) -> str:
    """Return the number of these clients for the broker and quota type with the most; brokers cannot be added up."""
    throttled_clients = scope.by("count", throttled_by_callback(scope), "instance", "broker", "quota_type")
    return scope.by("max", throttled_clients, *labels)


def utilization(scope: Scope, *matchers: str, modifier: str = "") -> str:
    """Return the utilization of entities on their busiest broker; ``modifier`` is for example ``@ end()``."""
    if scope.recorded:
        recorded = f"{scope.recorded_of(ENTITY_UTILIZATION, *matchers)} {modifier}".rstrip()
        return scope.of_teams(_without_name(scope, recorded))
    highest_by_entity = scope.by("max", f"{scope.of(UTILIZATION, *matchers)} {modifier}".rstrip(), *ENTITY)
    return scope.of_teams(highest_by_entity)


def predicted(scope: Scope) -> str:
    """
    Return the utilization of entities in three hours by the trend of the last six, if they are four hours old.

    Without recorded series every entity is evaluated 36 times on each broker, instead of once a scrape.
    """
    if scope.recorded:
        future = scope.recorded_of(ENTITY_UTILIZATION_PREDICTED)
    else:
        history = scope.of(UTILIZATION, window=f"{TREND_WINDOW}:10m")
        trend = call("predict_linear", history, "3 * 3600")
        older = f"{scope.of(UTILIZATION)} offset {TREND_NEEDS}"
        lasting = both(trend, older, scope.keys(*UTILIZATION.labels))
        on_brokers = scope.by("avg", lasting, *UTILIZATION.labels)
        future = scope.by("max", on_brokers, *ENTITY)
    return call("clamp_min", future, "0")


def _without_name(scope: Scope, recorded: str) -> str:
    """Return recorded series without their names: Grafana merges rows of a table only if all labels are equal."""
    return scope.by("max", recorded, *ENTITY)


def deciding_rule(scope: Scope, entities: str, *matchers: str) -> str:
    """Return the rules that apply to some entities; the value has no meaning."""
    rules = scope.by("max", scope.of(RULE_INFO, *matchers), *ENTITY, *RULE)
    return both(rules, entities, scope.keys(*ENTITY))


def cause(scope: Scope, entities: str, *matchers: str) -> str:
    """Return the causes of throttles of some entities: their own quota, or the quota of controller mutations."""
    causes = scope.by("max", scope.of(THROTTLE_CAUSE_INFO, *matchers), *ENTITY, "cause")
    return both(causes, entities, scope.keys(*ENTITY))


def of_entities(scope: Scope, expression: str, entities: str) -> str:
    """Return an expression for some entities only."""
    return both(expression, entities, scope.keys(*ENTITY))


def top(scope: Scope, count: int, expression: str) -> str:
    """
    Return the highest series of each cluster, for instant queries: over a range they would change all the time.

    >>> top(Scope(), 3, "up")
    'topk by (cluster) (3, up)'
    """
    return scope.by("topk", f"{count}, {expression}")


def steady_top(scope: Scope, count: int) -> str:
    """
    Return the utilization over time of entities that are highest in each cluster at the end of the range.

    They are chosen once: the lines of a plain topk() would come and go.
    """
    chosen = top(scope, count, utilization(scope, modifier="@ end()"))
    return both(utilization(scope), chosen, scope.keys(*ENTITY))


def row_key(expression: str, *labels: str) -> str:
    """
    Add to every row a column by which Grafana merges queries: some labels, by default user and client-id.

    A label that no row of a query has is no column, and Grafana would merge rows by the remaining labels.

    >>> row_key("up")
    'label_join(up, "entity", " / ", "user", "client_id")'
    """
    names = ", ".join(f'"{label}"' for label in labels or ("user", "client_id"))
    return f'label_join({expression}, "entity", " / ", {names})'


def spelled_entity(expression: str) -> str:
    """
    Add the label ``entity`` to every series: user and client-id as a legend spells them.

    The spelling is that of `quotascope.metrics.kafka.entities.spelled` for plain names: ``alice / etl``, ``user alice``
    and ``client-id etl``. Names are cut off nowhere, and not quoted.
    """
    by_user = call("label_replace", row_key(expression), '"entity"', '"user $1"', '"entity"', '"(?s)(.+) / "')
    return call("label_replace", by_user, '"entity"', '"client-id $1"', '"entity"', '"(?s) / (.*)"')


def occurred(scope: Scope, family: Family, expression: str, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    """Return the lines of an expression whose family is above 0 somewhere in the dashboard's range."""
    return both(expression, _above_zero(scope, family, *matchers), scope.keys(*labels))


def occurred_nowhere(scope: Scope, *families: Family, label: str = "", matchers: tuple[str, ...] = ()) -> str:
    """
    Return 0 for each cluster, or each value of a label in it, where families are known and 0 in the whole range.

    It stands beside the lines of ``occurred``: without a line, what is known to be 0 would look like what is unknown.
    The first family is the evidence.
    """
    labels = (label,) if label else ()
    evidence = families[0]
    if evidence.type is FamilyType.COUNTER:
        values = counter_rate(scope, evidence, *matchers)
    else:
        values = scope.of(evidence, *matchers)
    zero = f"0 * {scope.by('max', values, *labels)}"
    for family in families:
        zero = but_not(zero, _above_zero(scope, family, *matchers), scope.keys(*labels))
    return zero


def _above_zero(scope: Scope, family: Family, *matchers: str) -> str:
    """Return the series of a family that are above 0 somewhere in the dashboard's range."""
    over_range = f"{scope.of(family, *matchers, window='$__range')} @ end()"
    function = "increase" if family.type is FamilyType.COUNTER else "max_over_time"
    return above(call(function, over_range), 0)


def counter_rate(scope: Scope, family: Family, *matchers: str) -> str:
    """Return the growth of a counter of the chosen clusters per second."""
    return rate(family, RATE_INTERVAL, scope.chosen, *matchers, extra=scope.cluster)


def count_of_sources_down(scope: Scope) -> str:
    """Return the number of sources that no exporter can read, 0 if all are read."""
    sources = scope.by("min", scope.of(SOURCE_UP), "source")
    return scope.by("sum", compare(sources, "== bool", 0))


def refused(scope: Scope) -> str:
    """Return refusals of controller mutations per second, of the request with most."""
    return scope.or_zero(scope.by("max", total(scope, THROTTLING_ERRORS, "request")))


def total(scope: Scope, family: Family, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    """Return the sum for each combination of some labels, per second for counters; two exporters count once."""
    if family.type is FamilyType.COUNTER:
        values = counter_rate(scope, family, *matchers)
    else:
        values = scope.of(family, *matchers)
    return scope.by("sum", scope.by("max", values, *family.labels), *labels)


def ratio(part: str, whole: str, on: tuple[str, ...]) -> str:
    """
    Return a share; no series where the whole is 0 or unknown.

    >>> ratio("a", "b", ("cluster",))
    '(a) / on (cluster) (b > 0)'
    """
    return f"{grouped(part)} / on ({', '.join(on)}) {grouped(above(whole, 0))}"
