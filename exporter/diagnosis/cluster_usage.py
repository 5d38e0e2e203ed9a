"""
Computes the usage of an entity on the whole cluster.

Kafka enforces a limit on each broker separately. So an entity whose traffic is spread over all brokers may use its
limit on each of them.
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
    """The sum over nodes, in the units of ``Entity.limit``; None if no node reports one."""
    complete: bool
    """False if the usage on a node is unknown, so that the sum is a lower bound."""
    limit: float | None
    """
    The sum of its limits on all brokers, for controller mutations the limit on the active controller.

    None if it is unlimited or unknown, as ``limit_state`` shows.
    """
    limit_at_least: float | None
    """The sum of the known limits, if the limit on a broker is unknown; None if no limit is known."""
    limit_state: LimitState
    largest_broker: str | None
    """
    Node id of the broker with the largest part of the usage; None without usage, or when only one broker can have it.
    """
    largest_share: float | None
    """The part of the usage that ``largest_broker`` has."""
    stranded: float | None
    """
    The sum of its limits on brokers that have measured nothing of it for an hour, so that its traffic cannot use them.

    None if it is unlimited or its limit is unknown, while no broker is certain to show it, and for controller
    mutations. A broker that was started within the hour is not certain to show it.
    """
    stranded_complete: bool
    """False if a broker may have measured it without showing it, so that ``stranded`` is a lower bound."""
    stranded_brokers: tuple[str, ...]
    """Node ids of the brokers with a stranded limit."""
    fairness: float | None
    """
    Jain's index of the usage over all brokers: 1 if all have the same usage, 1 / brokers if one broker has all of it.

    None for fewer than two brokers, without usage, if the usage on a broker is unknown, and for controller mutations.
    """


def cluster_usages(snapshot: Snapshot, usages: Usages) -> Iterator[ClusterUsage]:
    """Yield the usage on the cluster of each entity in ``usages``, in their order."""
    yielded = set[tuple[QuotaType, str, str]]()
    columns, visibility = usages.columns, Visibility.of(snapshot)
    for row in usages.rows.tolist():
        entity: Entity = columns.layout.entities[row]
        key = entity.quota_type, entity.user, entity.client_id
        if entity.tags is None and key not in yielded:
            yielded.add(key)
            yield _cluster_usage(snapshot, visibility, columns, row)


def _cluster_usage(snapshot: Snapshot, visibility: Visibility, columns: Columns, row: int) -> ClusterUsage:
    """Return the usage on the cluster of the entity in a row."""
    all_entities, own = columns.layout.entities, columns.layout.own
    entity: Entity = all_entities[row]
    begin, end = row, row + 1  # a layout has the rows of an entity together
    while begin > own.start and _is_same(all_entities[begin - 1], entity):
        begin -= 1
    while end < own.stop and _is_same(all_entities[end], entity):
        end += 1
    entities: list[Entity] = all_entities[begin:end].tolist()
    usages = columns.usage[begin:end]
    known_usages = usages[np.isfinite(usages)]
    total = float(known_usages.sum()) if known_usages.size else None
    largest = int(np.nanargmax(usages)) if known_usages.size else 0
    share = float(usages[largest]) / total if total and total > 0 else None
    is_only_broker = len(entities) == 1 and snapshot.enforcers in {None, 1}
    has_largest = share is not None and isfinite(share) and not is_only_broker
    complete = known_usages.size == len(entities) and not snapshot.incomplete
    limit = _limit(snapshot, entities)
    absence = _absence(snapshot, visibility, entities)
    has_stranded = absence.visible and limit.on_each is not None
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
        stranded=(limit.on_each or 0.0) * len(absence.brokers) if has_stranded else None,
        stranded_complete=absence.complete and limit.on_each is not None,
        stranded_brokers=() if limit.on_each is None else absence.brokers,
        fairness=_fairness(usages, snapshot.enforcers) if complete and absence.located else None,
    )


class _Limit(NamedTuple):
    """The limits of an entity on all brokers together."""

    total: float | None
    state: LimitState
    at_least: float | None = None
    """The sum of the known limits, if others are unknown."""
    on_each: float | None = None
    """The limit on each broker; None if the limits differ or one is unknown."""


def _limit(snapshot: Snapshot, entities: list[Entity]) -> _Limit:
    """Return the limits of an entity on all brokers, from the entity on the brokers that have measured it."""
    states = {entity.limit_state for entity in entities}
    limits = {entity.limit for entity in entities}
    known_brokers, all_brokers = len(snapshot.enforcing_brokers), snapshot.enforcers
    if entities[0].quota_type is QuotaType.CONTROLLER_MUTATION:
        known_brokers = all_brokers = 1  # only the active controller enforces such a limit
    if LimitState.UNLIMITED in states:
        return _Limit(None, LimitState.UNKNOWN if LimitState.UNKNOWN in states else LimitState.UNLIMITED)
    known_limits = [limit for limit in limits if limit is not None]
    if all_brokers is None or len(limits) > 1 or not known_limits:
        at_least = known_limits[0] * known_brokers if len(known_limits) == 1 and known_brokers else None
        return _Limit(None, LimitState.UNKNOWN, at_least=at_least)
    (limit,) = known_limits
    return _Limit(limit * all_brokers, LimitState.LIMITED, on_each=limit)


class _Absence(NamedTuple):
    """The brokers that have not measured an entity."""

    brokers: tuple[str, ...] = ()
    """Brokers that would show the entity if they had measured it within the last hour, and do not."""
    visible: bool = False
    """True if it is known of one broker or more whether they have measured the entity."""
    complete: bool = False
    """True if that is known of all brokers."""
    located: bool = False
    """True if all brokers would show the entity if they measured it now."""


def _absence(snapshot: Snapshot, visibility: Visibility, entities: list[Entity]) -> _Absence:
    """Return the brokers that have not measured an entity, from the entity on the other brokers."""
    entity = entities[0]
    kind = EntityKind.of(entity.user, entity.client_id)
    if kind is None or entity.quota_type is QuotaType.CONTROLLER_MUTATION or snapshot.unsent:
        return _Absence()
    showing = visibility.shown_on(entity.quota_type, kind)
    present = showing & {entity.broker for entity in entities}
    # a broker that was started within the hour does not show what it measured before
    certain = present | (showing - visibility.without_memory(snapshot.taken_at))
    return _Absence(
        tuple(sorted(certain - present, key=node_order)),
        visible=bool(certain),
        complete=len(certain) == snapshot.enforcers,
        located=len(showing) == snapshot.enforcers,
    )


def _fairness(usages: Floats, brokers: int | None) -> float | None:
    """Return Jain's index of the usages on brokers, with no usage on all others; None if it is undefined."""
    (index,) = jain_index(usages[np.newaxis], brokers or 0).tolist()
    return index if isfinite(index) else None


def _is_same(one: Entity, other: Entity) -> bool:
    """Return whether two entities differ in their nodes alone."""
    return (one.quota_type, one.user, one.client_id) == (other.quota_type, other.user, other.client_id)


def cluster_sentence(usage: ClusterUsage, *, named: bool = True) -> str:
    """
    Return the usage on the cluster in words, with the entity if it is ``named``.

    An example is ``produce, user alice: cluster 34.0 MB/s of at most 60.0 MB/s; broker 2 has 80% of it, fairness
    0.49``. The stranded part and its brokers follow.
    """
    kind = usage.quota_type
    amount = UNKNOWN_NUMBER if usage.usage is None else measured(kind, usage.usage, usage.limit)
    at_least = "" if usage.complete or usage.usage is None else "≥ "
    if usage.limit is not None:
        bound = f" of at most {measured(kind, usage.limit, usage.limit)}"
    elif usage.limit_at_least is not None:
        bound = f", limit ≥ {measured(kind, usage.limit_at_least, usage.limit_at_least)}"
    else:
        no_limit = UNLIMITED if usage.limit_state is LimitState.UNLIMITED else f"limit {UNKNOWN}"
        bound = f", {no_limit}"
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
    """Return a sentence for each measured entity for which ``counts`` returns True."""
    measured = snapshot.measured
    entities = measured.columns.layout.entities[measured.rows].tolist()
    rows = measured.rows[np.fromiter(map(counts, entities), np.bool_, len(entities))]
    return [
        one_line(cluster_sentence(usage), 500) for usage in cluster_usages(snapshot, Usages(measured.columns, rows))
    ]
