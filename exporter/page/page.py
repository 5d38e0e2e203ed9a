"""The page at `/`: the entities closest to their limits, and the state of the cluster and the exporter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.quotas import Entity

from ..diagnosis import diagnose
from ..diagnosis.rule_usage import rule_usage
from ..diagnosis.selection import NEAR, Order, Selection, Show, matching
from ..diagnosis.trails import STEP_SECONDS, used_part
from ..diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN,
    amount,
    digits,
    entity_name,
    left_out,
    level_name,
    limit_name,
    limits_unknown,
    measured,
    muted,
    percent,
    rule_or_cause,
    seconds,
    short_type,
    throttles_unknown,
)
from ..exposition import own_version
from ..exposition.rows import rule_labels
from ..snapshot import EntityUsage, LimitState, Snapshot, ThrottleCause
from ..untrusted import one_line
from .owners import Owners
from .query import QueryResult, address_of, parameters

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but our own style and script, and no script within the page."""
_TEMPLATES: Final = Environment(
    loader=PackageLoader("quotascope.exporter.page"),
    autoescape=True,
    auto_reload=False,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["one_line"] = one_line
_LONGEST_NAME: Final = 200
_MOST: Final = 200
"""Rows of each table but that of the entities."""
_OWNER: Final = "Owner"
_COLUMNS: Final = (
    ("Node", Order.BROKER, ""),
    ("Quota", Order.TYPE, ""),
    ("User and client-id", Order.NAME, "name"),
    (_OWNER, None, "name"),
    ("Usage", Order.USAGE, "number"),
    ("Limit", Order.LIMIT, "number"),
    ("Used", Order.USED, "number"),
    ("Last 5 minutes", None, ""),
    ("Throttle", Order.DELAY, "number"),
    ("Tokens", Order.TOKENS, "number"),
    ("Level and rule", Order.LEVEL, "name"),
)
"""Header, order by which a click on it sorts, and class of each column of the entities."""
_ASCENDING: Final = (Order.NAME, Order.TOKENS, Order.LEVEL, Order.TYPE, Order.BROKER)
_TYPES: Final = (("", "all"), *((each.label, short_type(each)) for each in QuotaType))
_SHOWS: Final = (
    (Show.LIMITED.value, "under a limit"),
    (Show.NEAR.value, "close to it, or over"),
    (Show.THROTTLED.value, "throttled"),
    (Show.ALL.value, "all"),
)
_STEP_WIDTH: Final = 4
_RECENT_HEIGHT: Final = 16
_TOP: Final = 1.25
"""The utilization at which a bar of the last minutes reaches the top."""


def render(template: str, **values: object) -> str:
    """A template of this room, in which every value is escaped."""
    return _TEMPLATES.get_template(template).render(values)


def name(text: str) -> str:
    """An untrusted name on one line, cut to what a table can hold."""
    return one_line(text, _LONGEST_NAME)


def entity_page(
    result: QueryResult | None,
    cluster: str | None,
    problem: str = "",
    *,
    runbooks: bool = False,
) -> str:
    """
    The page as HTML.

    Args:
        result: The entities to show; None before the first collection.
        cluster: The name of the cluster.
        problem: What was wrong with the query.
        runbooks: Whether runbooks are served, so that the page can link to them.

    """
    title = "quotascope" if cluster is None else f"quotascope: {name(cluster)}"
    shown: dict[str, object] = {}
    if result is not None:
        snapshot = result.snapshot
        shown = {
            "taken": datetime.fromtimestamp(snapshot.taken_at, UTC),
            "numbers": _numbers(snapshot),
            "left_out": left_out(snapshot),
            "tagged": len(snapshot.shown.tagged),
            "findings": diagnose(snapshot),
            "given": dict(parameters(result.query)),
            "owners": _owner_options(result),
            "types": _TYPES,
            "shows": _SHOWS,
            "caption": _caption(result),
            "columns": list(_columns(result)),
            "rows": [
                _row(each, result.trails.of(each), result.owners)
                for each in result.rows
            ],
            "sections": (_queues(snapshot), _sources(snapshot), _unused(snapshot)),
        }
    return render(
        "page.html",
        title=title,
        root="",
        result=result,
        problem=problem,
        runbooks=runbooks,
        version=own_version(),
        **shown,
    )


def _numbers(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The whole in a few numbers; where limits or throttle times are unknown, how many could be more."""
    usages = snapshot.measured
    up = sum(source.up for source in snapshot.sources)
    yield "sources up", f"{up} of {len(snapshot.sources)}"
    yield "nodes", str(len(snapshot.nodes))
    yield "quota entities", str(len(usages))
    throttled = len(matching(usages, Selection(show=Show.THROTTLED)))
    unknown = throttles_unknown(usages)
    rest = f" (throttle times of {unknown} unknown)" if unknown else ""
    yield "throttled lately", f"{throttled}{rest}"
    near = str(len(matching(usages, Selection(show=Show.NEAR))))
    if unknown := limits_unknown(usages):
        rest = f"{near} (limits of {unknown} unknown)"
        near = UNKNOWN if unknown == len(usages) else rest
    yield "close to their limit or over", near
    yield "connections muted now", muted(snapshot)


def _caption(result: QueryResult) -> str:
    unknown = ""
    if result.limits_unknown and result.query.selection.show is Show.NEAR:
        unknown = f" The limits of {result.limits_unknown} entities are unknown: they may be close to them or over."
    owner = result.query.owner
    if owner and owner not in result.owners.names:
        return f"No entity matches: no owner is called {owner}."
    if not result.total:
        return f"No entity matches.{unknown}"
    first = result.query.offset + 1
    if not result.rows:
        return f"There are {result.total}; this page is past the last."
    last = first + len(result.rows) - 1
    return f"{first} to {last} of {result.total}.{unknown}"


def _owner_options(result: QueryResult) -> list[tuple[str, str]]:
    """What the form offers where owners are configured, and an owner that the query names."""
    names = dict.fromkeys(result.owners.names)
    if result.query.owner:
        names[result.query.owner] = None
    return [("", "all"), *((each, each) for each in names)] if names else []


def _columns(result: QueryResult) -> Iterator[dict[str, str]]:
    """The headers, which are links that sort; ``sorted`` is the direction of the one by which the table is sorted."""
    query, selection = result.query, result.query.selection
    for header, order, kind in _COLUMNS:
        if header == _OWNER and not result.owners.names:
            continue
        if order is None:
            yield {"header": header, "kind": kind, "address": "", "sorted": ""}
            continue
        here = order is selection.order
        upwards = (order in _ASCENDING) is not selection.backwards
        backwards = here and not selection.backwards
        turned = replace(selection, order=order, backwards=backwards)
        yield {
            "header": header,
            "kind": kind,
            "key": order.value,
            "address": address_of(replace(query, selection=turned, offset=0)),
            "sorted": ("ascending" if upwards else "descending") if here else "",
        }


def _row(
    usage: EntityUsage, recent: Sequence[float | None], owners: Owners
) -> dict[str, object]:
    """The texts of a row; ``bar`` is the utilization to draw in percent, None when there is none."""
    entity, used = usage.entity, used_part(usage)
    # for a number that an entity has only under a limit: without one it does not apply, else it is unknown
    unlimited = entity.limit_state is LimitState.UNLIMITED
    nothing = NOT_APPLICABLE if unlimited else UNKNOWN
    tokens = nothing if usage.tokens is None else digits(usage.tokens)
    if entity.quota_type is not QuotaType.CONTROLLER_MUTATION:
        tokens = NOT_APPLICABLE
    elif usage.tokens is not None:
        burst = entity.burst_tokens
        tokens += f" of {UNKNOWN if burst is None else digits(burst)}"
    level, rule, resolution = "", rule_or_cause(usage), entity.resolution
    if usage.cause in {None, ThrottleCause.OWN} and resolution and resolution.entity:
        level = level_name(resolution).replace("_", " ")
        user, client_id = rule_labels(resolution.entity)[1:]
        rule = entity_name(name(user), name(client_id))
    return {
        "color": _color(used, throttled=usage.throttle_time_seconds > 0),
        "node": name(entity.broker),
        "quota": short_type(entity.quota_type),
        "entity": entity_name(name(entity.user), name(entity.client_id)),
        "owner": name(owners.of(entity) or NOT_APPLICABLE),
        "usage": UNKNOWN
        if usage.usage is None
        else measured(entity.quota_type, usage.usage),
        "limit": limit_name(entity),
        "used": nothing if used is None else percent(used),
        "bar": None if used is None else f"{100 * min(1.0, max(0.0, used)):.1f}",
        "recent": nothing if all(part is None for part in recent) else _drawn(recent),
        "throttle": seconds(usage.throttle_time_seconds)
        if usage.throttle_known
        else UNKNOWN,
        "tokens": tokens,
        "level": level,
        "rule": rule,
    }


def _color(used: float | None, *, throttled: bool = False) -> str:
    """``over``, ``near`` or ``fine``; empty when the utilization is unknown, or there is no limit."""
    if throttled or (used is not None and used >= 1):
        return "over"
    if used is None:
        return ""
    return "near" if used >= NEAR else "fine"


def _drawn(recent: Sequence[float | None]) -> dict[str, object]:
    """The numbers of a drawing of the last minutes, and the same in words for screen readers."""
    bars = []
    for place, part in enumerate(recent):
        if part is not None:
            height = max(1.0, _RECENT_HEIGHT * min(1.0, part / _TOP))
            top = f"{_RECENT_HEIGHT - height:.1f}"
            bars.append((_color(part), _STEP_WIDTH * place, top, f"{height:.1f}"))
    known = [part for part in recent if part is not None]
    least, most = percent(min(known)), percent(max(known))
    minutes = len(recent) * STEP_SECONDS / 60
    return {
        "width": _STEP_WIDTH * len(recent),
        "height": _RECENT_HEIGHT,
        "limit": f"{_RECENT_HEIGHT * (1 - 1 / _TOP):.1f}",
        "bars": bars,
        "words": f"last {minutes:.0f} minutes: from {least} to {most}, lastly {percent(known[-1])}",
    }


def _queues(snapshot: Snapshot) -> dict[str, object]:
    nodes = [node for node in snapshot.nodes if node.delay_queue_size]
    nodes.sort(key=lambda node: -sum(node.delay_queue_size.values()))
    rows = []
    for node in nodes[:_MOST]:
        sizes = (node.delay_queue_size.get(each) for each in QuotaType)
        shown = (UNKNOWN if size is None else f"{size:.0f}" for size in sizes)
        rows.append((name(node.broker), *shown))
    return {
        "key": "queues",
        "heading": "Delay queues",
        "caption": _capped("Connections that nodes do not read from now", len(nodes)),
        "headers": ("Node", *map(short_type, QuotaType)),
        "rows": rows,
    }


def _sources(snapshot: Snapshot) -> dict[str, object]:
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
                "up" if source.up else "down",
                f"{source.duration_seconds:.3f} s",
                str(source.readings),
            )
            for source in islice(snapshot.sources, _MOST)
        ],
    }


def _unused(snapshot: Snapshot) -> dict[str, object]:
    """Configured limits under which no client is measured."""
    limits = snapshot.limits
    rules = () if limits is None else rule_usage(limits, snapshot)
    unused = [rule for rule in rules if rule.hits == ()]
    caption = f"{len(unused)} of {len(rules)} limits configured"
    return {
        "key": "unused",
        "heading": "Limits that no client is measured under",
        "caption": _capped(caption, len(unused)),
        "headers": ("For", "Limit", "Value", "Overruled by"),
        "rows": [
            (
                _entity(rule.entity),
                rule.key,
                amount(QuotaType.of_quota_key(rule.key), rule.value),
                "" if rule.overruled_by is None else _entity(rule.overruled_by),
            )
            for rule in unused[:_MOST]
        ],
    }


def _capped(caption: str, count: int) -> str:
    return f"{caption}; the first {_MOST}" if count > _MOST else caption


def _entity(entity: Entity) -> str:
    if not isinstance(entity, QuotaEntity):
        return name(str(entity))
    return name(entity_name(entity.user, entity.client_id))
