"""What the page says beside the entities: sources, delay queues, limits that nobody meets, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.pages.markup import Child, element
from quotascope.quotas import Entity

from ..diagnosis import diagnose
from ..diagnosis.rule_usage import RuleUsage, rule_usage
from ..diagnosis.selection import Selection, Show, matching
from ..diagnosis.units import (
    UNKNOWN,
    amount,
    entity_name,
    left_out,
    limits_unknown,
    muted,
    short_type,
    throttles_unknown,
)
from ..snapshot import Snapshot
from ..untrusted import one_line
from .table import name, table

_MOST: Final = 200
"""Rows of each of these tables."""


def summary(snapshot: Snapshot) -> Element:
    """The whole in a few numbers."""
    measured = snapshot.measured
    up = sum(source.up for source in snapshot.sources)
    numbers = (
        ("sources up", f"{up} of {len(snapshot.sources)}"),
        ("nodes", str(len(snapshot.nodes))),
        ("quota entities", str(len(measured))),
        ("throttled lately", _throttled(snapshot)),
        ("close to their limit or over", _near(snapshot)),
        ("connections muted now", muted(snapshot)),
    )
    terms = (
        element("div", element("dt", text), element("dd", number))
        for text, number in numbers
    )
    made = element("div", element("dl", *terms))
    if rest := left_out(snapshot):
        made.append(element("p", f"Not among the metrics one by one: {rest}."))
    if tagged := len(snapshot.shown.tagged):
        made.append(element("p", f"Entities of custom quota callbacks, not listed here: {tagged}."))  # fmt: skip
    return made


def findings(snapshot: Snapshot) -> Iterator[Element]:
    """What is wrong or missing, and what to do."""
    found = diagnose(snapshot)
    if not found:
        return
    yield element("h2", "What is wrong or missing")
    yield element(
        "ul",
        *(
            element(
                "li",
                element("b", each.severity.value, class_=each.severity.value),
                f": {one_line(each.text)} {one_line(each.advice)}",
            )
            for each in found
        ),
    )


def sources(snapshot: Snapshot) -> Iterator[Element]:
    """The agents, and how reading them went."""
    yield element("h2", "Sources")
    rows = (
        (
            name(source.name),
            name(source.dialect),
            element("span", "up", class_="fine")
            if source.up
            else element("span", "down", class_="over"),
            f"{source.duration_seconds:.3f} s",
            str(source.readings),
        )
        for source in islice(snapshot.sources, _MOST)
    )
    headers = ("Source", "Dialect", "State", "Took", "Readings")
    yield table(
        _told(f"Agents of nodes: {len(snapshot.sources)}", len(snapshot.sources)),
        headers,
        rows,
    )


def delay_queues(snapshot: Snapshot) -> Iterator[Element]:
    """How many connections each node does not read from at this moment."""
    nodes = [node for node in snapshot.nodes if node.delay_queue_size]
    if not nodes:
        return
    nodes.sort(key=lambda node: -sum(node.delay_queue_size.values()))
    yield element("h2", "Delay queues")
    rows = (
        (
            name(node.broker),
            *(_queue(node.delay_queue_size.get(each)) for each in QuotaType),
        )
        for node in nodes[:_MOST]
    )
    headers = ("Node", *map(short_type, QuotaType))
    caption = _told("Connections that nodes do not read from now", len(nodes))
    yield table(caption, headers, rows)


def unused_limits(snapshot: Snapshot) -> Iterator[Element]:
    """Rules under which no client is measured."""
    if snapshot.limits is None:
        return
    rules = rule_usage(snapshot.limits, snapshot)
    unused = [rule for rule in rules if rule.hits == ()]
    if not unused:
        return
    yield element("h2", "Limits that no client is measured under")
    rows = (
        (_whose(rule.entity), rule.key, _value(rule), _overruling(rule))
        for rule in unused[:_MOST]
    )
    caption = _told(f"{len(unused)} of {len(rules)} limits configured", len(unused))
    yield table(caption, ("For", "Limit", "Value", "Overruled by"), rows)


def _count(snapshot: Snapshot, show: Show) -> str:
    return str(len(matching(snapshot.measured, Selection(show=show))))


def _throttled(snapshot: Snapshot) -> str:
    """How many were throttled; where throttle times are unknown, there may be more."""
    unknown = throttles_unknown(snapshot.measured)
    rest = f" (throttle times of {unknown} unknown)" if unknown else ""
    return f"{_count(snapshot, Show.THROTTLED)}{rest}"


def _near(snapshot: Snapshot) -> str:
    """How many are close to their limit; where limits are unknown, there may be more."""
    unknown = limits_unknown(snapshot.measured)
    if not unknown:
        return _count(snapshot, Show.NEAR)
    if unknown == len(snapshot.measured):
        return UNKNOWN
    return f"{_count(snapshot, Show.NEAR)} (limits of {unknown} unknown)"


def _told(caption: str, count: int) -> str:
    return f"{caption}; the first {_MOST}" if count > _MOST else caption


def _queue(size: float | None) -> Child:
    return UNKNOWN if size is None else f"{size:.0f}"


def _overruling(rule: RuleUsage) -> str:
    return "" if rule.overruled_by is None else _whose(rule.overruled_by)


def _whose(entity: Entity) -> str:
    if not isinstance(entity, QuotaEntity):
        return name(str(entity))
    return name(entity_name(entity.user, entity.client_id))


def _value(rule: RuleUsage) -> str:
    return amount(QuotaType.of_quota_key(rule.key), rule.value)
