"""Expressions that several dashboards need."""

from __future__ import annotations

from quotascope.alerts.promql import above, both, call, compare, grouped, highest, rate
from quotascope.alerts.recorded import (
    ENTITY_THROTTLE,
    ENTITY_UTILIZATION,
    ENTITY_UTILIZATION_PREDICTED,
    TREND_NEEDS,
    TREND_WINDOW,
)
from quotascope.metrics.catalog import (
    CALLBACK_THROTTLE_TIME_SECONDS,
    REFUSED_MUTATIONS,
    RULE_INFO,
    SOURCE_UP,
    THROTTLE_CAUSE_INFO,
    THROTTLE_TIME_SECONDS,
    THROTTLING_ERRORS,
    UTILIZATION,
    Family,
    FamilyType,
)

from .scope import RATE_INTERVAL, Scope

ENTITY = ("quota_type", "user", "client_id")
RULE = ("rule",)


def throttled(scope: Scope, *matchers: str) -> str:
    """Throttle time of entities on their worst broker, above 0."""
    if scope.recorded:
        recorded = scope.recorded_of(ENTITY_THROTTLE, *matchers)
        return scope.of_owners(_without_name(scope, recorded))
    delayed = above(scope.of(THROTTLE_TIME_SECONDS, *matchers), 0)
    return scope.of_owners(scope.by("max", delayed, *ENTITY))


def throttled_by_callback(scope: Scope) -> str:
    """Throttle time of the clients of a custom quota callback, above 0; their labels are the callback's."""
    return above(scope.of(CALLBACK_THROTTLE_TIME_SECONDS), 0)


def count_by_callback(scope: Scope, *labels: str) -> str:
    """How many of them are throttled, on the broker and by the quota type with most: they cannot be put together across brokers."""
    each = scope.by("count", throttled_by_callback(scope), "instance", "broker", "quota_type")
    return scope.by("max", each, *labels)


def utilization(scope: Scope, *matchers: str, at: str = "") -> str:
    """Utilization of entities on their busiest broker; ``at`` is a modifier such as ``@ end()``."""
    if scope.recorded:
        recorded = f"{scope.recorded_of(ENTITY_UTILIZATION, *matchers)} {at}".rstrip()
        return scope.of_owners(_without_name(scope, recorded))
    each = scope.by("max", f"{scope.of(UTILIZATION, *matchers)} {at}".rstrip(), *ENTITY)
    return scope.of_owners(each)


def predicted(scope: Scope) -> str:
    """
    Utilization of entities in three hours, by the trend of the last six; nothing of those that are known for less than four.

    Without recorded series every entity is evaluated 36 times on each broker, instead of once a scrape.
    """
    if scope.recorded:
        future = scope.recorded_of(ENTITY_UTILIZATION_PREDICTED)
    else:
        history = scope.of(UTILIZATION, window=f"{TREND_WINDOW}:10m")
        each = call("predict_linear", history, "3 * 3600")
        before = f"{scope.of(UTILIZATION)} offset {TREND_NEEDS}"
        known_for_long = both(each, before, scope.keys(*UTILIZATION.labels))
        on_brokers = scope.by("avg", known_for_long, *UTILIZATION.labels)
        future = scope.by("max", on_brokers, *ENTITY)
    return call("clamp_min", future, "0")


def _without_name(scope: Scope, recorded: str) -> str:
    """Recorded series without their names, or tables would have a row for each name: Grafana merges rows with equal labels only."""
    return scope.by("max", recorded, *ENTITY)


def deciding_rule(scope: Scope, entities: str, *matchers: str) -> str:
    """The rules that apply to some entities; the value has no meaning."""
    rules = scope.by("max", scope.of(RULE_INFO, *matchers), *ENTITY, *RULE)
    return both(rules, entities, scope.keys(*ENTITY))


def cause(scope: Scope, entities: str, *matchers: str) -> str:
    """What throttles some entities: a quota of their own, or that of controller mutations."""
    causes = scope.by("max", scope.of(THROTTLE_CAUSE_INFO, *matchers), *ENTITY, "cause")
    return both(causes, entities, scope.keys(*ENTITY))


def of_entities(scope: Scope, expression: str, entities: str) -> str:
    """An expression, only of those entities."""
    return both(expression, entities, scope.keys(*ENTITY))


def top(scope: Scope, count: int, expression: str) -> str:
    """
    The highest of each cluster, for instant queries: over a range they would change all the time.

    >>> top(Scope(), 3, "up")
    'topk by (cluster) (3, up)'
    """
    return scope.by("topk", f"{count}, {expression}")


def steady_top(scope: Scope, count: int) -> str:
    """
    Utilization over time of those that are highest in each cluster at the end of the range.

    They are chosen once: the lines of a plain topk() would come and go.
    """
    chosen = top(scope, count, utilization(scope, at="@ end()"))
    return both(utilization(scope), chosen, scope.keys(*ENTITY))


def row_key(expression: str, *labels: str) -> str:
    """
    Gives every row a column by which Grafana merges queries: some labels, by default user and client-id.

    A label that no row of a query has is no column at all, and rows would be merged by what is left.

    >>> row_key("up")
    'label_join(up, "entity", " / ", "user", "client_id")'
    """
    names = ", ".join(f'"{label}"' for label in labels or ("user", "client_id"))
    return f'label_join({expression}, "entity", " / ", {names})'


def counter_rate(scope: Scope, family: Family, *matchers: str) -> str:
    """How fast a counter of the chosen clusters grows, per second."""
    return rate(family, RATE_INTERVAL, scope.chosen, *matchers, extra=scope.cluster)


def count_of_sources_down(scope: Scope) -> str:
    """How many sources an exporter cannot read, each once; 0 where all are read."""
    each = scope.by("min", scope.of(SOURCE_UP), "source")
    return scope.by("sum", compare(each, "== bool", 0))


def refused(scope: Scope) -> str:
    """Refusals of controller mutations per second, of the request that is refused most; an embedded engine counts partitions, and no requests."""
    return scope.or_zero(
        highest(
            scope.keys(), requests=total(scope, THROTTLING_ERRORS, "request"), engine=total(scope, REFUSED_MUTATIONS)
        )
    )


def total(scope: Scope, family: Family, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    """The sum for each combination of some labels, per second where it is of counters; two exporters of one cluster count once."""
    if family.type is FamilyType.COUNTER:
        each = counter_rate(scope, family, *matchers)
    else:
        each = scope.of(family, *matchers)
    return scope.by("sum", scope.by("max", each, *family.labels), *labels)


def ratio(part: str, whole: str, on: tuple[str, ...]) -> str:
    """
    A share; nothing where the whole is 0 or not known.

    >>> ratio("a", "b", ("cluster",))
    '(a) / on (cluster) (b > 0)'
    """
    return f"{grouped(part)} / on ({', '.join(on)}) {grouped(above(whole, 0))}"
