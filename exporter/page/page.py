"""The page at `/`: the most urgent entities, and the state of the cluster and the exporter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from quotascope.metrics.catalog.teams import UNOWNED
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.baseline import FIRST_THROTTLE, HELD_BACK, ThrottleChange

from ..diagnosis.findings import diagnose
from ..diagnosis.releases import release_line
from ..diagnosis.rule_usage import rule_usage
from ..diagnosis.selection import Order, Selection, Show, matching
from ..diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN,
    entity_name,
    handlers_idle,
    left_out,
    limits_unknown,
    muted,
    shadow_name,
    source_state,
    throttled_clients,
    throttles_unknown,
    type_name,
    unseen_clients,
)
from ..snapshot import Snapshot
from .columns import COLUMNS, TEAM, TableColumn, TableRow
from .query import QueryResult, shown_part
from .render import PageFrame, as_of, name, render

_MOST: Final = 200
"""Most rows of each table except that of the entities."""
_ASCENDING: Final = (Order.NAME, Order.TOKENS, Order.LEVEL, Order.TYPE, Order.BROKER)
TYPES: Final = (("", "all"), *((quota_type.label, type_name(quota_type)) for quota_type in QuotaType))
_NO_TEAM: Final = "no team"
"""Text of the choice that stands for entities that no team owns."""
_SHOWS: Final = (
    (Show.LIMITED.value, "under a limit"),
    (Show.NEAR.value, "close to it, or over"),
    (Show.THROTTLED.value, "throttled"),
    (Show.ALL.value, "all"),
)


def entity_list_page(result: QueryResult | None, frame: PageFrame, problem: str = "") -> str:
    """
    Return the page as HTML.

    Args:
        result: The entities to show; None before the first collection.
        frame: The surroundings of the page.
        problem: The error in the query; empty for none.

    """
    values: dict[str, object] = {}
    if result is not None:
        snapshot, query = result.snapshot, result.query
        teams = dict.fromkeys(filter(None, (*result.teams.names, query.team)))
        shadows = [_shadows(snapshot)] if snapshot.shadows else []
        team_choices = [(team, _NO_TEAM if team == UNOWNED else team) for team in teams]
        columns = [column for column in COLUMNS if column is not TEAM or result.teams.names]
        values = {
            **as_of(snapshot),
            "numbers": _numbers(snapshot),
            "left_out": left_out(snapshot),
            "tagged": len(snapshot.columns.tagged),
            "findings": diagnose(snapshot),
            "given": query.parameters(),
            "teams": [("", "all"), *team_choices] if team_choices else [],
            "types": TYPES,
            "shows": _SHOWS,
            "show": query.show.value,
            "caption": _caption(result),
            "columns": list(_headers(result, columns)),
            "urgent": query.with_values(sort=Order.URGENCY, reverse="0").address,
            "rows": [
                [
                    column.cell(
                        TableRow(
                            usage=usage,
                            near_limit=snapshot.thresholds.near_limit,
                            recent=result.trails.utilization(usage),
                            throttled=result.trails.throttled(usage),
                            team=result.teams.of(usage.entity),
                        )
                    )
                    for column in columns
                ]
                for usage in result.rows
            ],
            "before": query.before,
            "following": query.following(result.total),
            "json": f"api/v1/entities{query.address}",
            "sections": (*shadows, _queues(snapshot), _sources(snapshot)),
        }
    return render("page.html", frame, here="entities", result=result, problem=problem, **values)


def _numbers(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """
    Yield the key numbers of the cluster, with the addresses that they link to.

    Where limits or throttle times are unknown, a number says how many more there could be.
    """
    usages = snapshot.measured
    up = sum(source.up for source in snapshot.sources)
    yield "sources up", f"{up} of {len(snapshot.sources)}", "#sources"
    yield "Kafka", release_line(snapshot.limits), ""
    yield "nodes", str(len(snapshot.nodes) or UNKNOWN), ""
    count = throttled = near = UNKNOWN
    if snapshot.nodes:
        count = str(len(usages))
        throttled = str(throttled_clients(usages))
        if unknown := throttles_unknown(usages):
            throttled += f" (throttle times of {unknown} unknown)"
        unknown = limits_unknown(usages)
        if not usages or unknown < len(usages):
            near = str(len(matching(usages, Selection(near_limit=snapshot.thresholds.near_limit, show=Show.NEAR))))
            near += f" (limits of {unknown} unknown)" if unknown else ""
    if unseen := unseen_clients(snapshot):
        if not usages:
            throttled = near = UNKNOWN
        count += f" ({unseen})"
    yield "quota entities", count, "?show=all"
    yield "clients throttled lately", throttled, "?show=throttled"
    yield "close to their limit or over", near, "?show=near"
    yield "connections muted now", muted(snapshot), ""
    yield "request handlers idle", handlers_idle(snapshot), ""
    rules = [] if snapshot.limits is None else rule_usage(snapshot.limits, snapshot)
    unknown = sum(rule.hits is None for rule in rules)
    unused = UNKNOWN
    if snapshot.limits is not None and (not rules or unknown < len(rules)):
        unused = f"{sum(rule.hits == () for rule in rules)} of {len(rules)}"
        unused += f" ({unknown} unknown)" if unknown else ""
    yield "rules without an entity", unused, "rules?show=unused"


def _caption(result: QueryResult) -> str:
    """Return the place of the shown entities among all that match, or the reason why there is none."""
    unknown = ""
    if result.limits_unknown and result.query.show is Show.NEAR:
        unknown = f" The limits of {result.limits_unknown} entities are unknown: they may be close to them or over."
    team = result.query.team
    if team and team not in result.teams.names:
        return f"No entity matches: no team is called {team}."
    if not result.snapshot.nodes:
        return "No source is read: the entities are unknown."
    if not result.total:
        unseen = unseen_clients(result.snapshot)
        no_entity = f"No entity matches.{unknown}"
        return f"{no_entity} But {unseen}." if unseen else no_entity
    return f"{shown_part(result.query.offset, len(result.rows), result.total)}{unknown}"


def _headers(result: QueryResult, columns: list[TableColumn]) -> Iterator[dict[str, str]]:
    """
    Yield the headers, which are links that sort.

    ``sorted`` is the direction of the header by which the table is sorted.
    """
    query, backwards = result.query, result.query.reverse == "1"
    for column in columns:
        header = {"header": column.header, "kind": column.kind}
        if (order := column.order) is None:
            yield {**header, "address": "", "sorted": ""}
            continue
        is_sorted = order is query.sort
        upwards = (order in _ASCENDING) is not backwards  # reversing turns either direction round
        direction = "ascending" if upwards else "descending"
        yield {
            **header,
            "key": order.value,
            "address": query.with_values(sort=order, reverse=str(int(is_sorted and not backwards)), offset=0).address,
            "sorted": direction if is_sorted else "",
        }


def _shadows(snapshot: Snapshot) -> dict[str, object]:
    """Return the section of the shadows, with a row for each."""
    rows = []
    for shadow in snapshot.shadows:
        nearest = shadow.entities[0] if shadow.entities else None
        named = "" if nearest is None else entity_name(nearest.entity.user, nearest.entity.client_id)
        is_known = bool(shadow.changes)
        rows.append((
            name(shadow.name),
            *(str(shadow.changed(change)) if is_known else UNKNOWN for change in ThrottleChange),
            str(sum(shadow.evaluated.values())) if is_known else UNKNOWN,
            str(sum(shadow.unevaluated.values())),
            f"{named}, {type_name(nearest.entity.quota_type)}" if nearest else NOT_APPLICABLE,
            shadow_name(nearest),
        ))  # fmt: skip
    return {
        "key": "shadows",
        "heading": "Shadows",
        "caption": (
            "Quotas that no broker enforces: what they would change of the throttling by quotas in force; an "
            f"entity counts once for each broker. {HELD_BACK} {FIRST_THROTTLE}"
        ),
        "headers": (
            "Shadow", *(change.words.capitalize() for change in ThrottleChange),
            "Evaluated", "Unknown", "First to look at", "Throttle or utilization",
        ),
        "rows": rows,
    }  # fmt: skip


def _queues(snapshot: Snapshot) -> dict[str, object]:
    """Return the section of the delay queues, with a row for each node that reports them, the longest first."""
    nodes = [node for node in snapshot.nodes if node.delay_queue_size]
    nodes.sort(key=lambda node: -sum(node.delay_queue_size.values()))
    rows = []
    for node in nodes[:_MOST]:
        sizes = (node.delay_queue_size.get(quota_type) for quota_type in QuotaType)
        texts = (UNKNOWN if size is None else f"{size:.0f}" for size in sizes)
        rows.append((name(node.broker), *texts))
    return {
        "key": "queues",
        "heading": "Delay queues",
        "caption": _capped("Connections that nodes do not read from now", len(nodes)),
        "headers": ("Node", *map(type_name, QuotaType)),
        "rows": rows,
    }


def _sources(snapshot: Snapshot) -> dict[str, object]:
    """Return the section of the sources, with a row for each."""
    count = len(snapshot.sources)
    return {
        "key": "sources",
        "heading": "Sources",
        "caption": _capped(f"Agents of nodes: {count}", count),
        "headers": ("Source", "Dialect", "State", "Took", "Readings"),
        "rows": [
            (
                name(source.name),
                name(source.dialect),
                source_state(source),
                f"{source.duration_seconds:.3f} s",
                str(source.readings),
            )
            for source in islice(snapshot.sources, _MOST)
        ],
    }


def _capped(caption: str, count: int) -> str:
    """Return the caption of a table, which says so if not all rows are shown."""
    return f"{caption}; the first {_MOST}" if count > _MOST else caption
