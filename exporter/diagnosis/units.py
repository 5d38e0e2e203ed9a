"""
Numbers, names and counts of quotas as a person reads them.

Four things are never written alike: what is unknown (``?`` among numbers, ``unknown`` among words), what is
``unlimited``, zero (``0 s``), and what does not apply (``-``), such as the used part of no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

import numpy as np

from quotascope.clients.quota_admin import ConfigOrigin
from quotascope.metrics.kafka.entities import LEVELS_LEGEND, QuotaType, Resolution, spelled
from quotascope.pages import words
from quotascope.pages.baseline import lower_bound

from ..limits import NodeSettings
from ..snapshot import (
    TYPES,
    Entity,
    EntityUsage,
    LimitState,
    ShadowUsage,
    Snapshot,
    SourceHealth,
    ThrottleCause,
    Usages,
)
from ..snapshot.layout import node_order
from ..snapshot.visibility import Visibility
from ..untrusted import shown

UNKNOWN_NUMBER: Final = "?"
UNKNOWN: Final = "unknown"
UNLIMITED: Final = "unlimited"
NOT_APPLICABLE: Final = "-"

_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_NAMED: Final = 3
"""Nodes that are named in a line."""
_NEARLY_ALL: Final = 0.99
_LEAST: Final = 0.005
"""Least value that two decimals, or a ratio in whole percent, would not show as zero."""
_LEAST_PRECISE: Final = 0.0001
"""Three digits of a smaller value have an exponent."""
_MOST = 9.995
"""Least ratio that is 1000% in whole percent, which is too long."""
_TEN = 9.995
"""Least value that is 10.00 with two decimals, and has only one."""
_HUNDRED = 99.95
"""Least value that is 100.0 with one decimal, and has none."""
_LARGE = 1e7
"""Kafka takes quotas up to 1.8e308, whose digits would leave no room in a table for anything else."""


def legend(quota_types: Iterable[QuotaType | None]) -> str:
    """Return what a table of rules has to explain: their levels, and units of the quota types that are in it."""
    short = QuotaType.CONTROLLER_MUTATION.unit.short
    parts = [LEVELS_LEGEND]
    if QuotaType.CONTROLLER_MUTATION in set(quota_types):
        parts.append(f"{short}: controller mutations (partitions created, added or deleted) per second")
    return "; ".join(parts)


def usage_of_limit(usage: EntityUsage) -> str:
    """
    Return usage and limit in one unit, the larger one's; bytes/s, percent of a thread or mutations/s by quota type.

    ``2.10 / 2.00 MB/s``, ``? / 1.00 MB/s`` where the broker gave no usage, ``8.00 / ? %`` where the limit is unknown,
    and ``8.00 % unlimited``.
    """
    entity, amount_used = usage.entity, usage.usage
    limit, kind = entity.limit, entity.quota_type
    factor, prefix = _scale(kind, max(abs(amount_used or 0.0), limit or 0.0))
    bound = None if limit is None else limit / factor
    used = UNKNOWN_NUMBER if amount_used is None else digits(amount_used / factor, bound)
    unit = f"{prefix}{kind.unit.short}"
    if entity.limit_state is LimitState.UNLIMITED:
        return f"{used} {unit} {UNLIMITED}"
    allowed = UNKNOWN_NUMBER if bound is None else digits(bound, bound)
    return f"{used} / {allowed} {unit}"


def shadow_name(in_shadow: ShadowUsage | None) -> str:
    """
    Return the effect of a shadow on an entity: the throttle time, or else the used part of its limit.

    ``11.0 s``, ``45%``, ``≥ 45%`` of one that is held back now, and ``-`` where no shadow shows it.
    """
    if in_shadow is None:
        return NOT_APPLICABLE
    if in_shadow.throttled:
        return seconds(in_shadow.throttle_time_seconds)
    return lower_bound(percent(in_shadow.used), held_back=in_shadow.held_back, short=True)


def usage_name(usage: EntityUsage) -> str:
    """Return the usage of an entity alone: ``12.0 kB/s`` or ``unknown``."""
    entity = usage.entity
    return UNKNOWN if usage.usage is None else measured(entity.quota_type, usage.usage, entity.limit)


def limit_name(entity: Entity) -> str:
    """Return the limit of an entity alone: ``250 kB/s``, ``unlimited`` or ``unknown``."""
    if entity.limit is not None:
        return measured(entity.quota_type, entity.limit, entity.limit)
    unknown = entity.limit_state is LimitState.UNKNOWN
    return UNKNOWN if unknown else UNLIMITED


def used_name(entity: Entity, used: float | None) -> str:
    """
    Return the used part of an entity's limit, in percent.

    It is ``-`` without a limit, and ``?`` if the limit or the usage is unknown.
    """
    if used is not None:
        return percent(used)
    unlimited = entity.limit_state is LimitState.UNLIMITED
    return NOT_APPLICABLE if unlimited else UNKNOWN_NUMBER


def amount(quota_type: QuotaType | None, value: float) -> str:
    """
    Return a configured value in a readable unit, with three digits however small it is.

    >>> amount(QuotaType.FETCH, 250_000.0), amount(QuotaType.REQUEST, 20.0)
    ('250 kB/s', '20.0 %')
    >>> amount(None, 5.0), amount(QuotaType.REQUEST, inf)
    ('5.00 conn/s', 'unlimited')
    >>> amount(QuotaType.REQUEST, 0.5), amount(QuotaType.REQUEST, 12.5)
    ('0.50 %', '12.5 %')

    Args:
        quota_type: gives the unit: bytes/s, percent of a thread, or mutations/s; connections/s when None.
        value: number in Kafka's unit.

    """
    if value == inf:
        return UNLIMITED
    if quota_type is None:
        return f"{digits(value)} conn/s"
    base = quota_type.in_base_unit(value)
    return measured(quota_type, base, base)


def measured(quota_type: QuotaType, value: float, limit: float | None = None) -> str:
    """
    Return a measured amount in a readable unit, or a limit in the unit of measured amounts.

    >>> measured(QuotaType.REQUEST, 0.2), measured(QuotaType.PRODUCE, 2_104_000.0)
    ('20.0 %', '2.10 MB/s')
    >>> measured(QuotaType.REQUEST, 0.000052, 0.00005)
    '0.0052 %'

    Args:
        quota_type: type of the quota, which gives the unit: bytes/s, percent of a thread or mutations/s.
        value: bytes/s, threads or mutations/s.
        limit: number that it is compared with, if there is one; in the same unit.

    """
    factor, prefix = _scale(quota_type, abs(value))
    limit_in_unit = None if limit is None else limit / factor
    return f"{digits(value / factor, limit_in_unit)} {prefix}{quota_type.unit.short}"


def percent(ratio: float | None) -> str:
    """
    Return a ratio in percent, in four characters at most.

    A ratio below 1 is not shown as 100%, and one above 0 not as 0%.

    >>> percent(0.984), percent(0.999), percent(1.0), percent(123.0)
    ('98%', '99%', '100%', '999+')
    >>> percent(0.004), percent(0.0), percent(-40.0), percent(None)
    ('<1%', '0%', '<0%', '')
    >>> percent(9.99), percent(9.995)
    ('999%', '999+')
    """
    if ratio is None:
        return ""
    if ratio < 0:
        return "<0%"
    if 0 < ratio < _LEAST:
        return "<1%"
    if _NEARLY_ALL < ratio < 1:
        return f"{_NEARLY_ALL:.0%}"
    return f"{ratio:.0%}" if ratio < _MOST else "999+"


def seconds(value: float | None) -> str:
    """
    Return a duration in s, a short one in ms; None when unknown.

    >>> seconds(0.2), seconds(135.0), seconds(0.004), seconds(0.0), seconds(None)
    ('0.20 s', '135 s', '4 ms', '0 s', '?')
    """
    if value is None:
        return UNKNOWN_NUMBER
    if 0 < value < _LEAST:
        return words.seconds(value)
    return f"{digits(value)} s" if value else "0 s"


def entity_name(user: str | None, client_id: str | None) -> str:
    """
    Return a measured quota entity (`spelled`); None and "" stand for a dimension that it does not have.

    Measured without either, it is that of the clients that send no client-id.

    >>> entity_name("etl", "spark"), entity_name("etl", ""), entity_name("", "")
    ('etl / spark', 'user etl', 'client-id ""')
    """
    return spelled(user or None, client_id or None)


def rule_name(resolution: Resolution | None) -> str:
    """
    Return the rule that applies: the number of its level, of which 1 is the strongest, and its entity.

    ``None`` is an unknown rule.
    """
    if resolution is None:
        return UNKNOWN
    if resolution.entity is None:
        return "no rule"
    return resolution.entity.rule


def rule_or_cause(usage: EntityUsage) -> str:
    """Return the rule that applies to an entity, or the other quota that it is throttled by."""
    if usage.referring:
        decider = usage.decided_by
        if decider is None or decider.resolution is None or decider.resolution.entity is None:
            return "throttled by a controller mutation quota"
        return f"controller mutations: {rule_name(decider.resolution)}"
    if usage.cause is ThrottleCause.UNKNOWN:
        return "unknown: its own quota or one of controller mutations"
    return rule_name(usage.entity.resolution)


def throttle_name(usage: EntityUsage) -> str:
    """Return the throttle time of an entity: ``0.20 s``, ``0 s`` or ``unknown``."""
    return UNKNOWN if usage.throttle_time_seconds is None else seconds(usage.throttle_time_seconds)


def type_name(quota_type: QuotaType) -> str:
    """Return the quota type in words: its label `quota_type`, with blanks."""
    return quota_type.label.replace("_", " ")


def digits(value: float, limit: float | None = None) -> str:
    """
    Return three digits of a number, or all of its whole ones up to seven.

    A small number is not shown as zero, and beside a limit that needs more decimals it has them.

    >>> digits(0.125), digits(12.345), digits(2383.9), digits(0.004), digits(0.0), digits(1e300)
    ('0.12', '12.3', '2384', '<0.01', '0.00', '1e+300')
    >>> digits(0.00525, 0.005), digits(3e-7, 0.125), digits(3e-7, 2e-7)
    ('0.00525', '<0.0001', '3e-07')
    """
    # beside a limit such as 0.005, two decimals are too few
    if limit is not None and limit < 1 and round(limit, 2) != limit and 0 < value < 1:
        return "<0.0001" if value < _LEAST_PRECISE <= limit else f"{value:.3g}"
    if 0 < value < _LEAST:
        return "<0.01"
    size = abs(value)
    if size >= _LARGE:
        return f"{value:.3g}"
    if size < _TEN:
        return f"{value:.2f}"
    return f"{value:.1f}" if size < _HUNDRED else f"{value:.0f}"


def left_out(snapshot: Snapshot) -> str:
    """Return the numbers of entities left out and the reasons, such as ``200 folded, 30 idle``."""
    folds = snapshot.folds
    counts = (
        (folds.overflow + snapshot.callbacks.folded, "folded"),
        (folds.excluded, "excluded"),
        (folds.idle, "idle"),
    )
    return ", ".join(f"{count} {reason}" for count, reason in counts if count)


def limits_unknown(usages: Usages) -> int:
    """Return the number of entities that may have an unknown limit, and so an unknown utilization."""
    return len(usages.where(usages.columns.layout.limits_unknown))


def throttled_clients(usages: Usages) -> int:
    """
    Return how many users, client-ids and pairs were throttled lately, as alerts and dashboards count them.

    One under several quotas or on several brokers counts once. A request throttle that a measured bucket of controller
    mutations decides is that bucket's.
    """
    columns, rows = usages.columns, usages.rows
    entities = columns.layout.entities
    clients = set[tuple[str, str]]()
    for row in rows[columns.throttle_time[rows] > 0].tolist():
        decider = columns.deciders.get(row)
        if decider is None or not decider.broker:  # else the measured bucket that decides is counted
            clients.add((entities[row].user, entities[row].client_id))
    return len(clients)


def throttles_unknown(usages: Usages) -> int:
    """
    Return the number of entities that may be throttled although no agent reports it.

    Controller mutations are left out: brokers report their delays as request throttles.
    """
    columns = usages.columns
    mutation = TYPES.index(QuotaType.CONTROLLER_MUTATION)
    reported_here = columns.layout.types != mutation
    return len(usages.where(reported_here & np.isnan(columns.throttle_time)))


def muted(snapshot: Snapshot) -> str:
    """
    Return the number of connections that no node reads from at this moment.

    ``unknown`` when no node reports its delay queues, and ``3 (1 of 2 nodes report it)`` when only some do, which not
    every dialect exports.
    """
    reporting = [node for node in snapshot.nodes if node.delay_queue_size]
    if not reporting:
        return UNKNOWN
    total = sum(sum(node.delay_queue_size.values()) for node in reporting)
    return _reported_by(f"{total:.0f}", len(reporting), snapshot)


def unseen_clients(snapshot: Snapshot) -> str:
    """
    Return the clients that a count of entities leaves out, such as ``clients of node 3 not shown``.

    Empty where none is known to be left out. Where no entity is shown and their absence is not certain either,
    ``clients may not be shown``.
    """
    visibility = Visibility.of(snapshot)
    if hiding := visibility.hiding:
        names = ", ".join(map(shown, hiding[:_NAMED]))
        remainder = f" and {len(hiding) - _NAMED} more" if len(hiding) > _NAMED else ""
        return f"clients of {'node' if len(hiding) == 1 else 'nodes'} {names}{remainder} not shown"
    shows_no_entity = not snapshot.measured and not snapshot.columns.tagged
    is_uncertain = shows_no_entity and snapshot.nodes and not visibility.absence_is_certain
    return "clients may not be shown" if is_uncertain else ""


def waiting(snapshot: Snapshot) -> float:
    """Count the connections that nodes are reported not to read from now."""
    return sum(sum(node.delay_queue_size.values()) for node in snapshot.nodes)


def replication_throttles(nodes: Mapping[str, NodeSettings]) -> list[str]:
    """
    List the limits of replication (KIP-73) that brokers have now, those of several brokers together.

    ``follower 1.00 MB/s on brokers 1, 2 (default of all brokers)``, ``leader 10.0 B/s on broker 3 (its own)``.
    """
    brokers: dict[tuple[str, float, str], list[str]] = {}
    for node_id, settings in sorted(nodes.items(), key=lambda item: node_order(item[0])):
        for direction, bound in settings.replication_limits.items():
            origin = settings.replication_origins.get(direction, "")
            brokers.setdefault((direction, bound, origin), []).append(shown(node_id))
    return [
        f"{direction.replace('_', ' ')} {measured(QuotaType.PRODUCE, bound)} on "
        f"{'broker' if len(ids) == 1 else 'brokers'} "
        f"{', '.join(ids)}{_ORIGINS.get(origin, '')}"
        for (direction, bound, origin), ids in brokers.items()
    ]


_ORIGINS: Final = {
    ConfigOrigin.BROKER.value: " (its own)",
    ConfigOrigin.ALL_BROKERS.value: " (default of all brokers)",
    ConfigOrigin.FILE.value: " (in its file)",
}


def source_state(source: SourceHealth) -> str:
    """Return ``up`` or ``down``; ``stand-by`` when it answers for a node that is read through another source."""
    if not source.up:
        return "down"
    return "up" if source.stand_by_of is None else "stand-by"


def handlers_idle(snapshot: Snapshot) -> str:
    """
    Return the idle share of the request handlers of the busiest node.

    ``unknown`` when no agent reports it, and ``4% on node 2`` or ``4% on node 2 (1 of 2 nodes report it)`` as in
    `muted`.
    """
    reported = [(idle, node.broker) for node in snapshot.nodes if (idle := node.handlers_idle) is not None]
    if not reported:
        return UNKNOWN
    idle, node_id = min(reported)
    return _reported_by(f"{idle:.0%} on node {shown(node_id)}", len(reported), snapshot)


def _reported_by(text: str, count: int, snapshot: Snapshot) -> str:
    """Return a text that nodes report, with their number where not all do."""
    nodes = len(snapshot.nodes)
    return text if count == nodes else f"{text} ({count} of {nodes} nodes report it)"


def _scale(quota_type: QuotaType, value: float) -> tuple[float, str]:
    """
    Return the divisor that brings a value in our unit to a readable size, and the prefix of Kafka's unit.

    Only bytes have prefixes. In other units, the divisor turns our unit into Kafka's.
    """
    if not quota_type.unit.prefixed:
        return 1 / quota_type.unit.divisor, ""
    for divisor, prefix in _SCALES:
        if value >= divisor:
            return divisor, prefix
    return 1.0, ""
