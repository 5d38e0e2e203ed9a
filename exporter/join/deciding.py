"""
Finds the controller mutation quota behind a request throttle.

Under KRaft the bucket is on the active controller, and the broker that forwards a request counts its throttle under
group Request (`cause`). Here the entity of the bucket gets the throttle time, and the throttled entity refers to it.
So usage, limit and rule of the quota that decides are shown beside its throttle.
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
"""Most names of rules that are tried for a name that an entity lacks; with more names, the rule stays unknown."""


_RowsByNames: TypeAlias = dict[tuple[str | None, str | None], list[int]]
"""Rows of entities by the keys of `indexed`."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Everything that a decision depends on except the tokens of the buckets."""

    layout: Layout
    table: RuleTable | None
    overruled: frozenset[str]


class Deciders:
    """Finds the mutation quota of each request throttle, and remembers the entities that a quota has throttled."""

    def __init__(self) -> None:
        self._evidence: _Evidence | None = None
        self._candidates: dict[int, Sequence[int] | Entity | None] = {}
        """Results of ``_find_candidates`` by the row of the throttled entity, for the same evidence."""
        self._buckets: _RowsByNames = {}
        self._throttled: dict[int, set[int]] = {}
        """The serials of the entities that a bucket has throttled, by the serial of the bucket's entity."""

    def join(self, columns: Columns, table: RuleTable | None, overruled: frozenset[str], in_debt: Rows) -> Columns:
        """
        Return the columns with the deciding entity of each request throttle, and with throttle times of buckets.

        A bucket gets the longest throttle time of the entities that it throttles. The throttle time of a bucket that
        throttled before is 0 once it is known to throttle none of them any more; until then it stays unknown.

        Args:
            columns: Columns with the causes.
            table: The rules of controller mutations; None if they are unknown or do not decide.
            overruled: Nodes on which the rules do not decide.
            in_debt: The rows of buckets that were in debt lately.

        """
        layout = columns.layout
        rows = np.flatnonzero(columns.causes[layout.own] == _OF_MUTATIONS)
        if not rows.size and not self._throttled:
            return columns
        evidence = _Evidence(layout, table, overruled)
        if evidence != self._evidence:
            self._evidence, self._candidates, self._buckets = evidence, {}, {}
        causes, throttle_time = columns.causes.copy(), columns.throttle_time.copy()
        deciders: dict[int, Entity] = {}
        debtors = _rows_by_names(layout, in_debt)
        throttled_by_bucket = defaultdict[int, set[int]](set)
        for row in rows.tolist():
            entity = layout.entities[row]
            decider = self._decider(columns, row, debtors, None if entity.broker in overruled else table)
            if decider is None:
                continue
            if isinstance(decider, Entity):  # a rule whose bucket no node shows, so no row gets the throttle time
                deciders[row] = decider
                continue
            deciders[row] = layout.entities[decider]
            throttle_time[decider] = np.fmax(throttle_time[decider], throttle_time[row])
            causes[decider] = _OWN
            throttled_by_bucket[decider].add(entity.serial)
        self._remember(columns, throttled_by_bucket, throttle_time)
        return replace(columns, causes=fixed(causes), throttle_time=layout.column(throttle_time), deciders=deciders)

    def _decider(
        self, columns: Columns, row: int, debtors: _RowsByNames, table: RuleTable | None
    ) -> int | Entity | None:
        """
        Return the quota that decides on a request throttle.

        It is the row of its bucket, or the rule in the form of an entity if no node shows the bucket; None if unknown.
        """
        layout, entity = columns.layout, columns.layout.entities[row]
        if row not in self._candidates:
            self._candidates[row] = self._find_candidates(layout, entity, table)
        candidates = self._candidates[row]
        if candidates is None or isinstance(candidates, Entity):
            # no bucket shares a name with the entity, but a bucket in debt, or any, may be the only possible one
            only_bucket = _only_bucket(debtors, entity, layout, candidates)
            if only_bucket is None:
                only_bucket = _only_bucket(self._buckets, entity, layout, candidates)
            return candidates if only_bucket is None else only_bucket
        tokens = columns.tokens[candidates]
        emptiest = int(np.argmin(np.where(np.isnan(tokens), np.inf, tokens)))
        return candidates[emptiest]

    def _find_candidates(
        self, layout: Layout, entity: Entity, table: RuleTable | None
    ) -> Sequence[int] | Entity | None:
        """
        Return the rows of the buckets that share a name with a throttled entity and may decide.

        Without such a bucket, return the only rule that can decide; None if there is none.
        """
        if not self._buckets:
            buckets = layout.of_type(QuotaType.CONTROLLER_MUTATION)
            self._buckets = _rows_by_names(layout, range(buckets.start, buckets.stop))
        rows = sorted({row for pair in sharing(entity) for row in self._buckets.get(pair, ())})
        if entity.user and entity.client_id and table:
            # the entity is one client, whose bucket has the tags that the rules give it
            tags = table.metric_tags(entity.user, entity.client_id)
            rows_with_tags = [
                row for row in rows if (layout.entities[row].user, layout.entities[row].client_id) == tags
            ]
            rows = rows_with_tags or rows
        if rows:
            return rows
        return _only_rule(entity, table) if table else None

    def _remember(self, columns: Columns, throttled_by_bucket: Mapping[int, set[int]], throttle_time: Floats) -> None:
        """
        Remember the entities that buckets throttle, and set the throttle time of buckets that throttle none any more.

        Args:
            columns: Columns with the causes.
            throttled_by_bucket: Serials of the entities that are throttled now, by the row of the bucket.
            throttle_time: Throttle times by row. A time becomes 0 where it is known to be 0.

        """
        layout = columns.layout
        for bucket, serials in throttled_by_bucket.items():
            self._throttled.setdefault(layout.entities[bucket].serial, set()).update(serials)
        all_serials = set(self._throttled).union(*self._throttled.values())
        present_rows: Rows = np.flatnonzero(np.isin(layout.serials, [*all_serials]))
        row_of_serial: dict[int, int] = dict(
            zip(layout.serials[present_rows].tolist(), present_rows.tolist(), strict=True)
        )
        unclear_entities = layout.entities[np.flatnonzero(columns.causes == _UNKNOWN)]
        unclear_names = {pair for entity in unclear_entities for pair in indexed(entity.user, entity.client_id)}
        for bucket_serial, serials in tuple(self._throttled.items()):
            if not {bucket_serial, *serials} <= row_of_serial.keys():
                del self._throttled[bucket_serial]  # one of them has left, so no later 0 would be certain
                continue
            bucket, rows = row_of_serial[bucket_serial], [row_of_serial[serial] for serial in serials]
            entity: Entity = layout.entities[bucket]
            # a throttle of an unknown cause may be of this bucket
            if bucket in throttled_by_bucket or not unclear_names.isdisjoint(overlapping(entity)):
                continue
            if np.isnan(throttle_time[bucket]) and not np.isnan(columns.throttle_time[rows]).any():
                throttle_time[bucket] = 0.0


def _rows_by_names(layout: Layout, rows: Iterable[int]) -> _RowsByNames:
    """Return the rows of entities by their names, under the keys that `overlapping` and `sharing` look up."""
    rows_by_names: _RowsByNames = {}
    for row in rows:
        for pair in indexed(layout.entities[row].user, layout.entities[row].client_id):
            rows_by_names.setdefault(pair, []).append(row)
    return rows_by_names


def _only_bucket(buckets: _RowsByNames, entity: Entity, layout: Layout, rule: Entity | None) -> int | None:
    """
    Return the row of the only bucket that may decide on an entity, whether it shares a name with the entity or not.

    Return None if several buckets may decide, or if the ``rule`` that decides is known and the bucket has another one.
    """
    rows = chain.from_iterable(buckets.get(pair, ()) for pair in overlapping(entity))
    first_rows = [*islice(rows, 2)]
    if len(first_rows) != 1:
        return None
    only_row = first_rows[0]
    if rule is not None and rule.resolution is not None and layout.entities[only_row].resolution != rule.resolution:
        return None
    return only_row


def indexed(user: str, client_id: str) -> Iterable[tuple[str | None, str | None]]:
    """
    Return the keys of a client in an index that is looked up with `overlapping` and `sharing`.

    A key is a user and a client-id. In a key, None stands for any name, and an empty text for an absent name. A client
    is under four keys, so that each look-up is of a few keys, however many clients the index has.
    """
    return product({user, None}, {client_id, None})


def overlapping(entity: Entity) -> Iterable[tuple[str | None, str | None]]:
    """
    Return the keys of the clients that may be clients of the entity: equal in each name that both have.

    Of user ``a`` without a client-id, they are ``("", None)`` and ``("a", None)``.
    """
    return product(_keys_of_name(entity.user), _keys_of_name(entity.client_id))


def sharing(entity: Entity) -> Iterator[tuple[str | None, str | None]]:
    """Yield the keys of the clients that may be clients of the entity and have its user or its client-id."""
    user, client_id = entity.user, entity.client_id
    if user:
        yield from product((user,), _keys_of_name(client_id))
    if client_id:
        yield from product(_keys_of_name(user), (client_id,))


def _keys_of_name(name: str) -> tuple[str | None, ...]:
    """Return the keys of the names that do not contradict a name: itself and an absent name; of an absent name, any."""
    return ("", name) if name else (None,)


def _only_rule(entity: Entity, table: RuleTable) -> Entity | None:
    """
    Return the only rule that can throttle the clients of an entity; None if several can, or none.

    The rule is in the form of an entity without a broker, since no node shows its bucket.
    """
    name_without_rule = unnamed(table)
    users: Sequence[str] | None = (entity.user,)
    if not entity.user:
        users = _names_to_try((rule.user for rule in table), name_without_rule)
    client_ids: Sequence[str] | None = (entity.client_id,)
    if not entity.client_id:
        client_ids = _names_to_try((rule.client_id for rule in table), name_without_rule)
    if users is None or client_ids is None:
        return None
    # the decisions of the table on sample clients, by the rule, with the tags under which it measures them
    decisions: dict[object, tuple[Resolution, tuple[str, str]]] = {}
    for names in product(users, client_ids):
        decision = table.decide(*names)
        if decision.entity is not None:
            decisions[decision.entity] = decision, table.metric_tags(*names)
    if len(decisions) != 1:
        return None
    ((decision, (user, client_id)),) = decisions.values()
    bound = decision.bound
    # a name that was only tried, since the entity lacks it, is not in the result
    return Entity(
        broker="",
        quota_type=QuotaType.CONTROLLER_MUTATION,
        user=user if entity.user and user != name_without_rule else "",
        client_id=client_id if entity.client_id and client_id != name_without_rule else "",
        resolution=decision,
        limit=None if bound is None or not np.isfinite(bound) else QuotaType.CONTROLLER_MUTATION.in_base_unit(bound),
    )


def _names_to_try(names: Iterable[object], name_without_rule: str) -> Sequence[str] | None:
    """Return the distinct names in rules, an absent name and a name that no rule has; None for too many names."""
    distinct_names = dict.fromkeys(name for name in names if isinstance(name, str))
    return None if len(distinct_names) > _MOST_NAMES else [*distinct_names, "", name_without_rule]
