"""
What an entity uses of its quota on the whole cluster.

Kafka enforces a limit on each broker by itself. So an entity may use as many times its limit as there are brokers, if
its traffic is spread over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Columns, Entity, LimitState, Snapshot, Usages
from ..untrusted import one_line, shown
from .units import UNKNOWN, UNKNOWN_NUMBER, UNLIMITED, entity_name, measured, percent, type_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUsage:
    """The usage of an entity on all nodes, under one quota type."""

    quota_type: QuotaType
    user: str
    client_id: str
    usage: float | None
    """The sum over nodes, in the units of ``Entity.limit``; None where no node gave one."""
    complete: bool
    """False if the usage on some node is unknown, so that the sum is the least that it can be."""
    limit: float | None
    """
    The sum of its limits on all brokers; for controller mutations that of the active controller. None when it is
    unlimited or unknown, as ``limit_state`` says.
    """
    limit_state: LimitState
    largest_broker: str | None
    """Node id of the broker with most of it; None when there is no usage, or only one broker to have it."""
    largest_share: float | None
    """The part of the usage that this broker has."""


def cluster_usages(snapshot: Snapshot, usages: Usages) -> Iterator[ClusterUsage]:
    """Yield the usage on the cluster of each entity that has one of these rows, in their order."""
    seen = set[tuple[QuotaType, str, str]]()
    columns = usages.columns
    for row in usages.rows.tolist():
        entity: Entity = columns.layout.entities[row]
        key = entity.quota_type, entity.user, entity.client_id
        if entity.tags is None and key not in seen:
            seen.add(key)
            yield _cluster_usage(snapshot, columns, row)


def _cluster_usage(snapshot: Snapshot, columns: Columns, row: int) -> ClusterUsage:
    entities, own = columns.layout.entities, columns.layout.own
    entity: Entity = entities[row]
    begin, end = row, row + 1  # the rows of an entity are together, by node
    while begin > own.start and _is_same(entities[begin - 1], entity):
        begin -= 1
    while end < own.stop and _is_same(entities[end], entity):
        end += 1
    amounts = columns.usage[begin:end]
    known_amounts = amounts[np.isfinite(amounts)]
    total = float(known_amounts.sum()) if known_amounts.size else None
    limit, state = _limit(snapshot, entities[begin:end].tolist())
    largest = begin + int(np.nanargmax(amounts)) if known_amounts.size else begin
    share = float(columns.usage[largest]) / total if total and total > 0 else None
    single = end - begin == 1 and snapshot.enforcers in {None, 1}
    has_largest = share is not None and isfinite(share) and not single
    return ClusterUsage(
        quota_type=entity.quota_type,
        user=entity.user,
        client_id=entity.client_id,
        usage=total,
        complete=known_amounts.size == end - begin and not snapshot.incomplete,
        limit=limit,
        limit_state=state,
        largest_broker=entities[largest].broker if has_largest else None,
        largest_share=share if has_largest else None,
    )


def _limit(snapshot: Snapshot, entities: list[Entity]) -> tuple[float | None, LimitState]:
    """Return the sum of the limits of an entity on all brokers, of which some may not have seen it."""
    states = {entity.limit_state for entity in entities}
    if LimitState.UNKNOWN in states:
        return None, LimitState.UNKNOWN
    if LimitState.UNLIMITED in states:
        return None, LimitState.UNLIMITED
    count = 1 if entities[0].quota_type is QuotaType.CONTROLLER_MUTATION else snapshot.enforcers
    limits = {entity.limit for entity in entities}
    if count is None or len(limits) > 1:
        return None, LimitState.UNKNOWN
    (limit,) = limits
    return None if limit is None else limit * count, LimitState.LIMITED


def _is_same(one: Entity, other: Entity) -> bool:
    return (one.quota_type, one.user, one.client_id) == (other.quota_type, other.user, other.client_id)


def cluster_sentence(usage: ClusterUsage, *, named: bool = True) -> str:
    """
    Return the usage on the cluster in words, with the entity if it is ``named``.

    ``produce, user alice: cluster 34.0 MB/s of at most 60.0 MB/s; broker 2 has 80% of it``
    """
    kind = usage.quota_type
    amount = UNKNOWN_NUMBER if usage.usage is None else measured(kind, usage.usage, usage.limit)
    least = "" if usage.complete or usage.usage is None else "≥ "
    if usage.limit is not None:
        bound = f" of at most {measured(kind, usage.limit, usage.limit)}"
    else:
        bound = f", {UNLIMITED if usage.limit_state is LimitState.UNLIMITED else f'limit {UNKNOWN}'}"
    text = f"cluster {least}{amount}{bound}"
    if usage.largest_broker is not None:
        text += f"; broker {shown(usage.largest_broker)} has {percent(usage.largest_share)} of it"
    name = f"{type_name(kind)}, {entity_name(usage.user, usage.client_id)}: " if named else f"{type_name(kind)}: "
    return f"{name}{text}"


def cluster_lines(snapshot: Snapshot, counts: Callable[[Entity], bool]) -> list[str]:
    """Return a sentence for each measured entity that counts."""
    measured = snapshot.measured
    entities = measured.columns.layout.entities[measured.rows].tolist()
    rows = measured.rows[np.fromiter(map(counts, entities), np.bool_, len(entities))]
    return [
        one_line(cluster_sentence(usage), 500) for usage in cluster_usages(snapshot, Usages(measured.columns, rows))
    ]
