"""Dashboard about shadows: quotas that are not set, beside the quotas in force."""

from __future__ import annotations

from typing import Any, Final

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import columns, steps
from ..expressions import ENTITY, row_key, throttled, top, utilization
from ..links import runbooks
from ..panels import Line, Row, below_each_other, dashboard, graph, limit, side_by_side, table
from ..promql import above, both, call, either, grouped, span
from ..scope import Scope
from ..variables import common, one_of, values

_CHOSEN: Final = one_of("shadow")
_RULES: Final = ("shadow", "quota_type")
_CLIENT: Final = ("shadow", *ENTITY)
_LEGEND: Final = "{{quota_type}} of {{entity}}"
_RELIEF: Final = 'change=~"shorter|ended"'
_ROWS: Final = 50
_PAST: Final = "14d:5m"


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard about quotas that no broker enforces."""
    return dashboard(
        scope,
        Dashboard.SHADOW,
        title="Kafka quotas / Shadow",
        description="What brokers would do under quotas that are not set. No broker enforces them.",
        variables=(
            *common(scope),
            values((catalog.SHADOW_UNEVALUATED_ENTITIES, catalog.SHADOW_THROTTLED_ENTITIES), "shadow", "Shadow"),
        ),
        rows=(verdicts(scope), clients(scope), over_time(scope))
    )  # fmt: skip


def verdicts(scope: Scope) -> Row:
    """Return the row of shadows and the time since one would have throttled a client."""
    counted = _throttled(scope)
    unknown = _unknown(scope)
    exprs = counted, _most(counted), _throttled(scope, _RELIEF), unknown, _most(unknown), _quiet(scope)
    shadows = table(
        "Shadows",
        "Clients that each shadow would throttle newly or for longer than the quotas in force, on the broker with "
        "most of them, now and at most in 14 days; those that it would throttle for less long or no longer; those of "
        "which that is unknown; and for how long there was no newly or longer throttled and no unknown client, as "
        "far back as 14 days.",
        (row_key(expr, *_RULES) for expr in exprs),
        columns.BoardColumn(title="Shadow", source="shadow"),
        columns.quota_type(),
        columns.number("Newly or longer throttled", "A", "short", 215),
        columns.number("Most in 14 days", "B", "short", 150),
        columns.number("Shorter or no longer", "C", "short", 185),
        columns.number("Unknown", "D", "short", 110),
        columns.number("Unknown in 14 days", "E", "short", 170),
        columns.number("Quiet for", "F", "s", 130),
        columns.cluster(scope.site),
        sort="Newly or longer throttled",
        links=runbooks(scope.site, "KafkaQuotaShadowThrottlesMany")
    )  # fmt: skip
    return Row(title="Safe to set", panels=side_by_side(shadows))


def clients(scope: Scope) -> Row:
    """Return the row of clients nearest to the limits of shadows, beside the quotas in force."""
    chosen = top(scope, _ROWS, _of(scope, catalog.SHADOW_UTILIZATION))
    waits, changes = (
        both(_of(scope, family), chosen, scope.keys(*_CLIENT))
        for family in (catalog.SHADOW_THROTTLE_TIME, catalog.SHADOW_THROTTLE_CHANGE)
    )
    enforced = utilization(scope), throttled(scope)
    enforced_beside = (_beside(scope, chosen, expr) for expr in enforced)
    nearest = table(
        "Clients nearest to the limits of a shadow",
        "Usage / limit of the shadow (of a client that is throttled now, at least this much), the first delay of a "
        "request if it were set now, and by how much that is longer than the quotas in force make it, on the worst "
        f"broker; beside them what is enforced on the same user and client-id, if anything is. At most {_ROWS} of "
        "each cluster.",
        (row_key(expr, *_CLIENT) for expr in (chosen, waits, changes, *enforced_beside)),
        columns.BoardColumn(title="Shadow", source="shadow"),
        columns.quota_type(),
        *columns.entity(scope.site),
        columns.bar("Used in the shadow", "A", steps.USED, 190),
        columns.colored("Shadow delay", "B", "s", steps.DELAY_IF_ANY, 135),
        columns.colored("Longer by", "C", "s", steps.DELAY_IF_ANY, 125),
        columns.number("Used now", "D", "percentunit", 110),
        columns.delay("E"),
        columns.cluster(scope.site),
        sort="Used in the shadow",
        links=runbooks(scope.site, "KafkaQuotaShadowThrottlesClient")
    )  # fmt: skip
    return Row(title="Who", panels=side_by_side(nearest))


def over_time(scope: Scope) -> Row:
    """Return the row of shadows and enforced quotas over time."""
    enforced = scope.by("count", throttled(scope), "quota_type")
    number = graph(
        scope,
        "Clients throttled newly or longer, and now",
        "Solid: what each shadow would throttle newly or for longer, on the broker with most. Dashed: clients that "
        "quotas in force throttle.",
        "short",
        Line(_throttled(scope), "{{shadow}}, {{quota_type}}"),
        limit(enforced, "in force, {{quota_type}}"),
        axis="clients",
    )
    longest = graph(
        scope,
        "Delay, if it were set and now",
        "Solid: the delay of a request if a shadow were set. Dashed: the average delay by quotas in force.",
        "s",
        Line(above(_of(scope, catalog.SHADOW_THROTTLE_TIME), 0), f"{{{{shadow}}}}: {_LEGEND}"),
        limit(throttled(scope), f"in force: {_LEGEND}"),
    )
    return Row(title="Over time", panels=below_each_other(number, longest))


def _throttled(scope: Scope, changes: str = catalog.WORSE) -> str:
    """Return the number of clients with some changes, by default newly or longer throttled, on the broker with most."""
    every = scope.of(catalog.SHADOW_THROTTLED_ENTITIES, _CHOSEN, changes)
    of_brokers = scope.by("sum", scope.by("max", every, *_RULES, "broker", "change"), *_RULES, "broker")
    return scope.by("max", of_brokers, *_RULES)


def _unknown(scope: Scope) -> str:
    """Return the number of clients that cannot be evaluated, for all reasons; 0 where all are evaluated."""
    every = scope.of(catalog.SHADOW_UNEVALUATED_ENTITIES, _CHOSEN)
    of_brokers = scope.by("max", every, *_RULES, "broker", "reason")
    unknown = scope.by("sum", of_brokers, *_RULES)
    return either(unknown, f"0 * {_throttled(scope)}")


def _most(expr: str) -> str:
    return call("max_over_time", grouped(expr) + span(_PAST))


def _quiet(scope: Scope) -> str:
    """Return the seconds since a client was newly or longer throttled, or unknown, or else since the shadow began."""
    hit, unknown = above(_throttled(scope), 0), above(_unknown(scope), 0)
    last_time = call("max_over_time", call("timestamp", either(hit, unknown)) + span(_PAST))
    first_time = call("min_over_time", call("timestamp", _throttled(scope)) + span(_PAST))
    return either(f"time() - {last_time}", f"time() - {first_time}")


def _of(scope: Scope, family: Family) -> str:
    """Return the highest value of each client on any broker."""
    return scope.by("max", scope.of(family, _CHOSEN), *_CLIENT)


def _beside(scope: Scope, chosen: str, enforced: str) -> str:
    """Return the enforced figures of the chosen clients of shadows."""
    on = ", ".join(scope.keys(*ENTITY))
    return f"(0 * {grouped(chosen)}) + on ({on}) group_left () {grouped(enforced)}"
