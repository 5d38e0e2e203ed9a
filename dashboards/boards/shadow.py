"""Shadows: quotas that are not set, beside those that are."""

from __future__ import annotations

from typing import Any, Final

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import above, both, call, either, grouped
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import columns, steps
from ..expressions import ENTITY, row_key, throttled, top, utilization
from ..links import runbooks
from ..panels import Line, Row, dashboard, graph, limit, side_by_side, table
from ..scope import Scope
from ..variables import common, one_of, values

_CHOSEN: Final = one_of("shadow")
_RULES: Final = ("shadow", "quota_type")
_CLIENT: Final = ("shadow", *ENTITY)
_LEGEND: Final = "{{quota_type}} of {{user}} / {{client_id}}"
_ROWS: Final = 50
_PAST: Final = "14d:5m"


def board(scope: Scope) -> dict[str, Any]:
    """The dashboard about quotas that no broker enforces."""
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
    """Whether each shadow would have been quiet."""
    counted = _throttled(scope)
    unknown = _unknown(scope)
    exprs = counted, _most(counted), unknown, _most(unknown), _quiet(scope)
    found = table(
        "Shadows",
        "Clients that each shadow would throttle on the broker with most of them, now and at most in 14 days; those of which that is unknown; and for how long no client was throttled and none unknown, as far back as 14 days.",
        (row_key(each, *_RULES) for each in exprs),
        columns.BoardColumn(title="Shadow", source="shadow"),
        columns.quota_type(),
        columns.number("Would be throttled", "A", "short", 185),
        columns.number("Most in 14 days", "B", "short", 150),
        columns.number("Unknown", "C", "short", 110),
        columns.number("Unknown in 14 days", "D", "short", 170),
        columns.number("Quiet for", "E", "s", 130),
        columns.cluster(scope.site),
        sort="Would be throttled",
        links=runbooks(scope.site, "KafkaQuotaShadowThrottlesMany")
    )  # fmt: skip
    return Row(title="Safe to set", panels=side_by_side(found))


def clients(scope: Scope) -> Row:
    """The clients that would be throttled, beside what is enforced."""
    chosen = top(scope, _ROWS, _of(scope, catalog.SHADOW_UTILIZATION))
    waits = both(_of(scope, catalog.SHADOW_THROTTLE_TIME), chosen, scope.keys(*_CLIENT))
    enforced = utilization(scope), throttled(scope)
    now = (_beside(scope, chosen, each) for each in enforced)
    found = table(
        "Clients nearest to the limits of a shadow",
        f"Usage / limit of the shadow, and the delay of a request now if it were set, on the worst broker; beside them what is enforced on the same user and client-id, if anything is. At most {_ROWS} of each cluster.",
        (row_key(each, *_CLIENT) for each in (chosen, waits, *now)),
        columns.BoardColumn(title="Shadow", source="shadow"),
        columns.quota_type(),
        *columns.entity(scope.site),
        columns.bar("Used in the shadow", "A", steps.USED, 190),
        columns.BoardColumn(title="Shadow delay", source="B", unit="s", width=135, cell=columns.COLORED, steps=steps.DELAY_IF_ANY),
        columns.number("Used now", "C", "percentunit", 110),
        columns.delay("D"),
        columns.cluster(scope.site),
        sort="Used in the shadow",
        links=runbooks(scope.site, "KafkaQuotaShadowThrottlesClient")
    )  # fmt: skip
    return Row(title="Who", panels=side_by_side(found))


def over_time(scope: Scope) -> Row:
    """Enforced beside shadow."""
    enforced = scope.by("count", throttled(scope), "quota_type")
    number = graph(
        scope,
        "Clients throttled, if it were set and now",
        "Solid: what each shadow would throttle, on the broker with most. Dashed: clients that quotas in force throttle.",
        "short",
        Line(_throttled(scope), "{{shadow}}, {{quota_type}}"),
        limit(enforced, "in force, {{quota_type}}"),
    )
    longest = graph(
        scope,
        "Delay, if it were set and now",
        "Solid: the delay of a request if a shadow were set. Dashed: the average delay by quotas in force.",
        "s",
        Line(above(_of(scope, catalog.SHADOW_THROTTLE_TIME), 0), f"{{{{shadow}}}}: {_LEGEND}"),
        limit(throttled(scope), f"in force: {_LEGEND}"),
    )
    return Row(title="Over time", panels=side_by_side(number, longest))


def _throttled(scope: Scope) -> str:
    """Clients that would be throttled, on the broker with most: the same one on two brokers is one."""
    of_brokers = scope.of(catalog.SHADOW_THROTTLED_ENTITIES, _CHOSEN)
    return scope.by("max", of_brokers, *_RULES)


def _unknown(scope: Scope) -> str:
    """Clients of which it is unknown, all reasons together; 0 where all are evaluated."""
    every = scope.of(catalog.SHADOW_UNEVALUATED_ENTITIES, _CHOSEN)
    of_brokers = scope.by("max", every, *_RULES, "broker", "reason")
    found = scope.by("sum", of_brokers, *_RULES)
    return either(found, f"0 * {_throttled(scope)}")


def _most(expr: str) -> str:
    return call("max_over_time", f"{grouped(expr)}[{_PAST}]")


def _quiet(scope: Scope) -> str:
    """Seconds since a client was throttled or unknown; where none was, since the shadow was seen first."""
    hit, unknown = above(_throttled(scope), 0), above(_unknown(scope), 0)
    last = call("max_over_time", f"{call('timestamp', either(hit, unknown))}[{_PAST}]")
    first = call("min_over_time", f"{call('timestamp', _throttled(scope))}[{_PAST}]")
    return either(f"time() - {last}", f"time() - {first}")


def _of(scope: Scope, family: Family) -> str:
    """The highest value of each client on any broker."""
    return scope.by("max", scope.of(family, _CHOSEN), *_CLIENT)


def _beside(scope: Scope, chosen: str, enforced: str) -> str:
    """What is enforced on chosen clients of shadows."""
    on = ", ".join(scope.keys(*ENTITY))
    return f"(0 * {grouped(chosen)}) + on ({on}) group_left () {grouped(enforced)}"
