"""
What an entity uses of its quota on the whole cluster.

Kafka enforces a limit on each broker by itself. So an entity may use as many times its limit as there are brokers, if
its traffic is spread over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Final, NamedTuple

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType

from ..coverage import EntityKind
from ..snapshot import Columns, Entity, Floats, LimitState, Snapshot, Usages
from ..snapshot.fairness import jain_index
from ..snapshot.layout import node_order
from ..snapshot.visibility import Visibility
from ..untrusted import one_line, shown
from .units import UNKNOWN, UNKNOWN_NUMBER, UNLIMITED, entity_name, measured, percent, type_name

_NAMED: Final = 3
"""Most brokers that a sentence names."""


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
    limit_at_least: float | None
    """The sum of those that are known, where the limit on some broker is unknown; None where none is known."""
    limit_state: LimitState
    largest_broker: str | None
    """
    Node id of the broker with the largest part of the usage; None without usage, or when only one broker can have it.
    """
    largest_share: float | None
    """The part of the usage that ``largest_broker`` has."""
    stranded: float | None
    """
    The sum of its limits on brokers that have measured nothing of it for an hour, so that no traffic of then could use
    them. None when it is unlimited or its limit unknown, while no broker is certain to show it, as one that was started
    within the hour, and for controller mutations.
    """
    stranded_complete: bool
    """False if some broker may have measured it without showing it: ``stranded`` is the least that it can be."""
    stranded_brokers: tuple[str, ...]
    """Node ids of these brokers."""
    fairness: float | None
    """
    Jain's index of the usage over all brokers: 1 if all have the same, 1 / brokers if one has all. None for fewer than
    two brokers, without usage, where it is unknown on one, and for controller mutations.
    """


def cluster_usages(snapshot: Snapshot, usages: Usages) -> Iterator[ClusterUsage]:
    """Yield the usage on the cluster of each entity that has one of these rows, in their order."""
    seen = set[tuple[QuotaType, str, str]]()
    columns, visibility = usages.columns, Visibility.of(snapshot)
    for row in usages.rows.tolist():
        entity: Entity = columns.layout.entities[row]
        key = entity.quota_type, entity.user, entity.client_id
        if entity.tags is None and key not in seen:
            seen.add(key)
            yield _cluster_usage(snapshot, visibility, columns, row)


def _cluster_usage(snapshot: Snapshot, visibility: Visibility, columns: Columns, row: int) -> ClusterUsage:
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
    limit = _limit(snapshot, entities[begin:end].tolist())
    largest = begin + int(np.nanargmax(amounts)) if known_amounts.size else begin
    share = float(columns.usage[largest]) / total if total and total > 0 else None
    single = end - begin == 1 and snapshot.enforcers in {None, 1}
    has_largest = share is not None and isfinite(share) and not single
    complete = known_amounts.size == end - begin and not snapshot.incomplete
    place = _place(snapshot, visibility, entities[begin:end].tolist())
    return ClusterUsage(
        quota_type=entity.quota_type,
        user=entity.user,
        client_id=entity.client_id,
        usage=total,
        complete=complete,
        limit=limit.total,
        limit_at_least=limit.at_least,
        limit_state=limit.state,
        largest_broker=entities[largest].broker if has_largest else None,
        largest_share=share if has_largest else None,
        stranded=None if not place.visible or limit.of_each is None else limit.of_each * len(place.without),
        stranded_complete=place.complete and limit.of_each is not None,
        stranded_brokers=() if limit.of_each is None else place.without,
        fairness=_fairness(amounts, snapshot.enforcers) if complete and place.located else None,
    )


class _Limit(NamedTuple):
    """The limits of an entity on all brokers together."""

    total: float | None
    state: LimitState
    at_least: float | None = None
    of_each: float | None = None
    """The limit that it has on each broker, None where they differ or some are unknown."""


def _limit(snapshot: Snapshot, entities: list[Entity]) -> _Limit:
    """Return the sum of the limits of an entity on all brokers, of which some may not have seen it."""
    states = {entity.limit_state for entity in entities}
    limits = {entity.limit for entity in entities}
    certain, count = len(snapshot.enforcing_brokers), snapshot.enforcers
    if entities[0].quota_type is QuotaType.CONTROLLER_MUTATION:
        certain = count = 1
    if LimitState.UNLIMITED in states:
        return _Limit(None, LimitState.UNKNOWN if LimitState.UNKNOWN in states else LimitState.UNLIMITED)
    known = limits - {None}
    if count is None or len(limits) > 1 or not known:
        (limit,) = known if len(known) == 1 and certain else (None,)
        return _Limit(None, LimitState.UNKNOWN, at_least=None if limit is None else limit * certain)
    (limit,) = known
    return _Limit(None if limit is None else limit * count, LimitState.LIMITED, of_each=limit)


class _Place(NamedTuple):
    """The brokers that have not seen an entity."""

    without: tuple[str, ...] = ()
    """Brokers that would show the entity, also if they had measured it an hour ago, and do not."""
    visible: bool = False
    """True if it is known of any broker whether it has seen the entity."""
    complete: bool = False
    """True if that is known of all brokers."""
    located: bool = False
    """True if all brokers would show the entity if they measured it now."""


def _place(snapshot: Snapshot, visibility: Visibility, entities: list[Entity]) -> _Place:
    entity = entities[0]
    kind = EntityKind.of(entity.user, entity.client_id)
    if kind is None or entity.quota_type is QuotaType.CONTROLLER_MUTATION or snapshot.unsent:
        return _Place()
    brokers = visibility.shown_on(entity.quota_type, kind)
    present = brokers & {entity.broker for entity in entities}
    known = present | (brokers - visibility.without_memory(snapshot.taken_at))
    return _Place(
        tuple(sorted(known - present, key=node_order)),
        visible=bool(known),
        complete=len(known) == snapshot.enforcers,
        located=len(brokers) == snapshot.enforcers,
    )


def _fairness(amounts: Floats, brokers: int | None) -> float | None:
    """Return Jain's index of the amounts of some brokers and of zero for all others; None where there is none."""
    (index,) = jain_index(amounts[np.newaxis], brokers or 0).tolist()
    return index if isfinite(index) else None


def _is_same(one: Entity, other: Entity) -> bool:
    return (one.quota_type, one.user, one.client_id) == (other.quota_type, other.user, other.client_id)


def cluster_sentence(usage: ClusterUsage, *, named: bool = True) -> str:
    """
    Return the usage on the cluster in words, with the entity if it is ``named``.

    ``produce, user alice: cluster 34.0 MB/s of at most 60.0 MB/s; broker 2 has 80% of it, fairness 0.49``, then the
    stranded part and its brokers.
    """
    kind = usage.quota_type
    amount = UNKNOWN_NUMBER if usage.usage is None else measured(kind, usage.usage, usage.limit)
    at_least = "" if usage.complete or usage.usage is None else "≥ "
    if usage.limit is not None:
        bound = f" of at most {measured(kind, usage.limit, usage.limit)}"
    elif usage.limit_at_least is not None:
        bound = f", limit ≥ {measured(kind, usage.limit_at_least, usage.limit_at_least)}"
    else:
        bound = f", {UNLIMITED if usage.limit_state is LimitState.UNLIMITED else f'limit {UNKNOWN}'}"
    text = f"cluster {at_least}{amount}{bound}"
    if usage.largest_broker is not None:
        text += f"; broker {shown(usage.largest_broker)} has {percent(usage.largest_share)} of it"
        text += "" if usage.fairness is None else f", fairness {usage.fairness:.2f}"
    if usage.stranded:
        brokers = [shown(broker) for broker in usage.stranded_brokers]
        more = f" and {len(brokers) - _NAMED} more" if len(brokers) > _NAMED else ""
        at_least = "" if usage.stranded_complete else "≥ "
        text += (
            f"; {at_least}{measured(kind, usage.stranded, usage.limit)} stranded on "
            f"{'broker' if len(brokers) == 1 else 'brokers'} {', '.join(brokers[:_NAMED])}{more}"
        )
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
