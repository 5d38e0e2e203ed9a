"""
The controller mutation quota behind a request throttle.

Under KRaft the bucket is on the active controller, and the broker that forwards a request counts its delay under group
Request (`cause`). Here the bucket's entity gets the throttle time, and the throttled entity refers to it, so that each
surface shows usage, limit and rule of the quota that decides beside its throttle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType, Resolution
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.quotas import unnamed

from ..snapshot import CAUSES, Columns, Entity, Floats, Layout, ThrottleCause
from ..snapshot.layout import Rows, fixed

_OWN, _OF_MUTATIONS, _UNKNOWN = map(
    CAUSES.index, (ThrottleCause.OWN, ThrottleCause.CONTROLLER_MUTATION, ThrottleCause.UNKNOWN)
)
_MOST_NAMES: Final = 100
"""Names of rules that are tried for one that an entity does not have; where there are more, the rule stays unknown."""


_ByNames: TypeAlias = dict[tuple[str | None, str | None], list[int]]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Everything that a decision follows from, apart from the buckets' tokens."""

    layout: Layout
    table: RuleTable | None
    overruled: frozenset[str]


class Deciders:
    """Finds the mutation quota of each request throttle, and remembers the entities that each was seen to throttle."""

    def __init__(self) -> None:
        self._evidence: _Evidence | None = None
        self._of_row: dict[int, Sequence[int] | Entity | None] = {}
        """
        For each row with a request throttle, the rows of the buckets that share a name with it and may decide, or else
        the rule that decides.
        """
        self._buckets: _ByNames = {}
        self._throttled: dict[int, set[int]] = {}
        """The entities whose throttles each bucket decided, by the serial of the bucket's entity."""

    def join(self, columns: Columns, table: RuleTable | None, overruled: frozenset[str], in_debt: Rows) -> Columns:
        """
        Give buckets the longest throttle time that they decide, and the throttled entities what decides.

        A bucket that throttled before has 0 once all those entities are known to be throttled by it no more; else it
        stays unknown.

        Args:
            columns: Columns with the causes.
            table: The rules of controller mutations; None where they are unknown or do not decide.
            overruled: Nodes on which they do not decide.
            in_debt: The rows of buckets that were in debt lately.

        """
        layout = columns.layout
        rows = np.flatnonzero(columns.causes[layout.own] == _OF_MUTATIONS)
        if not rows.size and not self._throttled:
            return columns
        evidence = _Evidence(layout, table, overruled)
        if evidence != self._evidence:
            self._evidence, self._of_row, self._buckets = evidence, {}, {}
        causes, throttle = columns.causes.copy(), columns.throttle_time.copy()
        deciders: dict[int, Entity] = {}
        debtors = _by_names(layout, in_debt)
        referred = defaultdict[int, set[int]](set)
        for row in rows.tolist():
            if row not in self._of_row:
                deciding_table = None if layout.entities[row].broker in overruled else table
                self._of_row[row] = self._found(layout, layout.entities[row], deciding_table)
            candidates = self._of_row[row]
            if candidates is None or isinstance(candidates, Entity):
                only = _only(debtors, layout.entities[row], layout, candidates)
                if only is None:
                    only = _only(self._buckets, layout.entities[row], layout, candidates)
                if only is None:
                    if candidates is not None:
                        deciders[row] = candidates
                    continue
                candidates = [only]
            tokens = columns.tokens[candidates]
            bucket = candidates[int(np.argmin(np.where(np.isnan(tokens), np.inf, tokens)))]
            deciders[row] = layout.entities[bucket]
            throttle[bucket] = np.fmax(throttle[bucket], throttle[row])
            causes[bucket] = _OWN
            referred[bucket].add(layout.entities[row].serial)
        self._remember(columns, referred, throttle)
        return replace(columns, causes=fixed(causes), throttle_time=layout.column(throttle), deciders=deciders)

    def _found(self, layout: Layout, entity: Entity, table: RuleTable | None) -> Sequence[int] | Entity | None:
        if not self._buckets:
            buckets = layout.of_type(QuotaType.CONTROLLER_MUTATION)
            self._buckets = _by_names(layout, range(buckets.start, buckets.stop))
        rows = sorted({row for pair in sharing(entity) for row in self._buckets.get(pair, ())})
        if entity.user and entity.client_id and table:
            tags = table.metric_tags(entity.user, entity.client_id)
            counted = [row for row in rows if (layout.entities[row].user, layout.entities[row].client_id) == tags]
            rows = counted or rows
        return rows or (_by_rule(entity, table) if table else None)

    def _remember(self, columns: Columns, referred: Mapping[int, set[int]], throttle: Floats) -> None:
        """Note which entities each bucket decides on, and give 0 to buckets that no longer decide on any."""
        layout = columns.layout
        for bucket, serials in referred.items():
            self._throttled.setdefault(layout.entities[bucket].serial, set()).update(serials)
        serials_of_interest = [
            *self._throttled,
            *{serial for serials in self._throttled.values() for serial in serials},
        ]
        rows_of_interest: Rows = np.flatnonzero(np.isin(layout.serials, serials_of_interest))
        row_of: dict[int, int] = dict(
            zip(layout.serials[rows_of_interest].tolist(), rows_of_interest.tolist(), strict=True)
        )
        unknown = layout.entities[np.flatnonzero(columns.causes == _UNKNOWN)]
        unclear = {pair for entity in unknown for pair in indexed(entity.user, entity.client_id)}
        for serial, serials in tuple(self._throttled.items()):
            if not {serial, *serials} <= row_of.keys():
                del self._throttled[serial]
                continue
            bucket, rows = row_of[serial], [row_of[throttled_serial] for throttled_serial in serials]
            entity: Entity = layout.entities[bucket]
            if bucket in referred or not unclear.isdisjoint(overlapping(entity)):
                continue
            if np.isnan(throttle[bucket]) and not np.isnan(columns.throttle_time[rows]).any():
                throttle[bucket] = 0.0


def _by_names(layout: Layout, rows: Iterable[int]) -> _ByNames:
    """Return the rows of some entities by their names, in the keys that `overlapping` and `sharing` search."""
    rows_by_names: _ByNames = {}
    for row in rows:
        for pair in indexed(layout.entities[row].user, layout.entities[row].client_id):
            rows_by_names.setdefault(pair, []).append(row)
    return rows_by_names


def _only(buckets: _ByNames, entity: Entity, layout: Layout, decider: Entity | None) -> int | None:
    """
    Return the bucket that may decide, if there is only one, and it has the deciding rule where that is known.

    The bucket need not share a name with the entity.
    """
    rows = chain.from_iterable(buckets.get(pair, ()) for pair in overlapping(entity))
    rule = None if decider is None else decider.resolution
    candidates = [*islice(rows, 2)]
    if len(candidates) != 1 or (rule is not None and layout.entities[candidates[0]].resolution != rule):
        return None
    return candidates[0]


def indexed(user: str, client_id: str) -> Iterable[tuple[str | None, str | None]]:
    """
    Return the keys of a client in the index that `overlapping` and `sharing` search.

    None is the key for any user, or any client-id.
    """
    return product({user, None}, {client_id, None})


def overlapping(entity: Entity) -> Iterable[tuple[str | None, str | None]]:
    """Return the pairs of names that may be of the entity's clients: equal in each name that both have."""
    return product(_fitting(entity.user), _fitting(entity.client_id))


def sharing(entity: Entity) -> Iterator[tuple[str | None, str | None]]:
    """Yield the pairs of names that may be of the entity's clients, and share its user or client-id."""
    user, client_id = entity.user, entity.client_id
    yield from product((user,) if user else (), _fitting(client_id))
    yield from product(_fitting(user), (client_id,) if client_id else ())


def _fitting(name: str) -> tuple[str | None, ...]:
    return ("", name) if name else (None,)


def _by_rule(entity: Entity, table: RuleTable) -> Entity | None:
    """
    Return the only rule that can throttle the entity's clients, in the form of an entity whose bucket no node shows.

    Return None if several can.
    """
    unnamed_tag = unnamed(table)
    users = (entity.user,) if entity.user else _names((rule.user for rule in table), unnamed_tag)
    clients = (entity.client_id,) if entity.client_id else _names((rule.client_id for rule in table), unnamed_tag)
    if users is None or clients is None:
        return None
    decisions: dict[object, tuple[Resolution, tuple[str, str]]] = {}
    for pair in product(users, clients):
        decision = table.decide(*pair)
        if decision.entity is not None:
            decisions[decision.entity] = decision, table.metric_tags(*pair)
    if len(decisions) != 1:
        return None
    ((decision, tags),) = decisions.values()
    user, client_id = ("" if tag == unnamed_tag else tag for tag in tags)
    bound = decision.bound
    return Entity(
        broker="",
        quota_type=QuotaType.CONTROLLER_MUTATION,
        user=entity.user and user,
        client_id=entity.client_id and client_id,
        resolution=decision,
        limit=None if bound is None or not np.isfinite(bound) else QuotaType.CONTROLLER_MUTATION.in_base_unit(bound),
    )


def _names(names: Iterable[object], unnamed_tag: str) -> Sequence[str] | None:
    """Return each name in the rules, and one name that no rule has; None where there are too many to try."""
    distinct = [*islice(dict.fromkeys(name for name in names if isinstance(name, str)), _MOST_NAMES + 1)]
    return None if len(distinct) > _MOST_NAMES else [*distinct, "", unnamed_tag]
