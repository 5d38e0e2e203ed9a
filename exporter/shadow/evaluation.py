"""
Evaluates shadows on successive snapshots, from the rates that the brokers measure.

The page docs/guides/shadow.md explains which answers these rates allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.numbers import INT_MAX, LONG_MAX
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.pages.baseline import WORSE, ThrottleChange
from quotascope.quotas import InvalidQuotas, QuotaSet, named
from quotascope.quotas.candidates import Candidate, read_candidates

from ..errors import ConfigError
from ..limits import Limits
from ..names import known_rules
from ..snapshot import TYPES, Columns, Floats, Layout, Shadow, ShadowUsage, Snapshot
from ..snapshot.layout import Rows, node_order
from .grouping import Grouping, Mask, Pool

_MOST_SHADOWS: Final = 10
_SHOWN_FACTOR: Final = 2.0
"""Factor on the rank of the entities that are shown already, so that series do not come and go."""
_THROTTLED_RANK: Final = 1e12
"""Rank of a throttled entity: above every utilization, which is the rank of the others."""
_WORSE_RANK: Final = 1e14
"""Rank of an entity whose throttle is new or longer."""
_AWAY_SECONDS: Final = 3600.0
"""Time for which the entities of a broker that is no longer read are counted as unevaluated."""
_UnevaluatedKey: TypeAlias = tuple[QuotaType, str, str]
"""Key of unevaluated entities that are counted together: quota type, broker and reason."""
_LONGEST_FLOAT: Final = float(LONG_MAX - 1023)
"""The largest float that fits into 64 bits; its low 32 bits are as negative as those of Java's `Long.MAX_VALUE`."""
_MUTATION: Final = QuotaType.CONTROLLER_MUTATION


class UnevaluatedReason(StrEnum):
    """Why it is unknown whether a shadow would throttle an entity; the value is the label ``reason``."""

    LIMITS_UNKNOWN = "limits_unknown"
    """The configured quotas are not known, or a custom quota callback decides instead of them."""
    UNMEASURED = "unmeasured"
    """No quota of this type is in force, so the brokers measure no client. The rules of the shadow are counted."""
    FINER = "finer"
    """The shadow has separate entities for requests that the brokers measure together."""
    MUTATION = "mutation"
    """
    The shadow lowers a quota of controller mutations or counts them for other entities.

    The tokens under such a quota depend on the past of its bucket.
    """
    STALE = "stale"
    """The numbers of the broker are old."""
    ABSENT = "absent"
    """There is no rate, or the broker could not be read."""
    CENSORED = "censored"
    """A stricter quota in force throttles part of the entity, so its demand under the shadow is not observed."""


_CHANGE_CODES: Final = {change: code for code, change in enumerate(ThrottleChange, start=1)}
_CHANGE_OF_CODE: Final = (None, *ThrottleChange)
_REASONS: Final = tuple(UnevaluatedReason)
_REASON_CODES: Final = {reason: code for code, reason in enumerate(_REASONS, start=1)}


def read_shadows(path: Path) -> tuple[Candidate, ...]:
    """
    Return the candidates in a file, ten at most.

    Raises ``ConfigError``, which names the file and each wrong line.
    """
    try:
        candidates = read_candidates(path)
    except InvalidQuotas as error:
        raise ConfigError(error.subject, error.problems) from None
    if len(candidates) > _MOST_SHADOWS:
        problem = f"{len(candidates)} candidates, but at most {_MOST_SHADOWS} shadows are evaluated at a time"
        raise ConfigError(named(path), [problem])
    return candidates


class Shadows:
    """
    Evaluates candidates on each snapshot.

    Args:
        candidates: The candidates. A candidate without a list of quotas starts from the cluster's own.
        max_entities: Maximum number of entities of each shadow that are shown one by one.
        shows: Function that returns whether an entity of a user and a client-id may be shown; None if that is unknown.

    """

    def __init__(
        self,
        candidates: Iterable[Candidate] = (),
        max_entities: int = 100,
        shows: Callable[[str, str], bool | None] = lambda _user, _client_id: True,
    ) -> None:
        self._evaluations = [_Evaluation(candidate, max_entities, shows) for candidate in candidates]

    def evaluate(self, joined: Snapshot, late: AbstractSet[str]) -> tuple[Shadow, ...]:
        """
        Return the shadow of each candidate on a snapshot.

        Args:
            joined: The snapshot with all measured entities, before any is folded.
            late: Nodes with old numbers.

        """
        overruled = frozenset(node.broker for node in joined.nodes if node.overruled)
        return tuple(evaluation.evaluate(joined, overruled, late) for evaluation in self._evaluations)


class _Evaluation:
    """Evaluates one candidate on successive snapshots."""

    def __init__(self, candidate: Candidate, max_entities: int, shows: Callable[[str, str], bool | None]) -> None:
        self._candidate, self._max_entities, self._shows = candidate, max_entities, shows
        self._version: int | None = None
        self._overruled: AbstractSet[str] = frozenset()
        self._grouping: Grouping | None = None
        self._shown: Mask = np.empty(0, np.bool_)
        self._measured: set[Pool] = set()
        """Pools in which the shadow has had an entity since the rules changed last."""
        self._last_counts: dict[Pool, tuple[float, int]] = {}
        """Time at which each pool was read last, and the number of entities that the shadow had in it."""

    def evaluate(self, joined: Snapshot, overruled: AbstractSet[str], late: AbstractSet[str]) -> Shadow:
        """
        Return the shadow on a snapshot.

        Args:
            joined: The snapshot with all measured entities, before any is folded.
            overruled: Nodes on which a custom quota callback decides instead of the configured quotas.
            late: Nodes with old numbers.

        """
        limits = joined.limits
        if limits is None:
            nodes = {node.broker for node in joined.nodes}
            return Shadow(name=self._candidate.name, unevaluated=self._count_under_unknown_limits(joined, nodes))
        grouping = self._grouping_of(joined.columns.layout, limits, overruled)
        effects = _effects(grouping, joined.columns, late)
        evaluated, changes, unevaluated = _count(grouping, effects)
        # a pool may have a change without an evaluated entity: a throttle that ends, as no limit remains
        changed_pools = {pool for pool, counts in changes.items() if any(counts.values())}
        self._measured |= {pool for pool, count in evaluated.items() if count} | changed_pools
        self._measured |= {(kind, broker) for kind, broker, _ in unevaluated}
        pools = _limited_pools(joined, limits, grouping.rules, self._measured, overruled)
        for kind, broker in pools:  # brokers measure only under quotas in force
            if not grouping.enforced[kind].enabled:
                reason = UnevaluatedReason.MUTATION if kind is _MUTATION else UnevaluatedReason.UNMEASURED
                unevaluated[kind, broker, reason] += len(grouping.rules[kind])
        # of a key in two counts, the greater one stays
        unevaluated |= self._count_absent(joined, pools, evaluated, unevaluated, overruled)
        unevaluated |= self._count_under_unknown_limits(joined, overruled)
        unclear_pools = {(kind, broker) for kind, broker, _ in unevaluated}
        # an entity count of 0 is known only where nothing is unevaluated
        known_pools = [pool for pool in pools if evaluated[pool] or pool in changed_pools or pool not in unclear_pools]
        no_changes = dict.fromkeys(_CHANGE_CODES, 0)
        return Shadow(
            name=self._candidate.name,
            entities=self._nearest_to_throttle(grouping, effects),
            evaluated={pool: evaluated[pool] for pool in known_pools},
            changes={pool: changes.get(pool, no_changes) for pool in known_pools},
            unevaluated={key: unevaluated[key] for key in sorted(unevaluated, key=_sort_key)},
        )

    def _grouping_of(self, layout: Layout, limits: Limits, overruled: AbstractSet[str]) -> Grouping:
        """Return the grouping of a layout; a new one if the rules have changed since the last layout."""
        grouping = self._grouping
        is_unchanged = overruled == self._overruled and limits.version == self._version
        if grouping is None or grouping.crowded or not is_unchanged:
            candidate = self._candidate
            if not candidate.based:
                candidate = candidate.over(QuotaSet(limits.quotas()))
            grouping = Grouping(known_rules(candidate.tables()), limits, candidate.windows, self._shows, overruled)
            self._grouping = grouping
            self._shown, self._measured = np.empty(0, np.bool_), set()
        self._version, self._overruled = limits.version, overruled
        grouping.move_to(layout)
        return grouping

    def _count_absent(
        self,
        joined: Snapshot,
        pools: Iterable[Pool],
        evaluated: Counter[Pool],
        unevaluated: Counter[_UnevaluatedKey],
        overruled: AbstractSet[str],
    ) -> Counter[_UnevaluatedKey]:
        """Count the entities on brokers that are not read now, as of when they were read last."""
        now_seconds, brokers = joined.steady_at, {broker for _, broker in pools} | overruled
        away = {
            pool: (seen_at, count)
            for pool, (seen_at, count) in self._last_counts.items()
            if pool[1] not in brokers and abs(now_seconds - seen_at) <= _AWAY_SECONDS
        }
        counts = evaluated.copy()
        for (kind, broker, _), count in unevaluated.items():
            counts[kind, broker] += count
        self._last_counts = away | {pool: (now_seconds, counts[pool]) for pool in pools}
        return Counter({(*pool, UnevaluatedReason.ABSENT): max(1, count) for pool, (_, count) in away.items()})

    def _nearest_to_throttle(self, grouping: Grouping, effects: _Effects) -> tuple[ShadowUsage, ...]:
        """Return the entities to show one by one, the nearest to a throttle, and remember them as shown."""
        worse, throttle_ms = effects.worse, np.nan_to_num(effects.throttle_ms)
        rank = effects.ratios + (throttle_ms > 0) * _THROTTLED_RANK + worse * _WORSE_RANK
        with np.errstate(over="ignore"):  # an agent may report any float; infinity stays the greatest
            # entities that are new since the last snapshot have the last numbers
            rank[: len(self._shown)][self._shown] *= _SHOWN_FACTOR
        numbers = np.flatnonzero((effects.codes == 0) & ~grouping.hidden)
        if len(numbers) > self._max_entities:
            highest = np.argpartition(-rank[numbers], self._max_entities)[: self._max_entities]
            numbers = numbers[highest]
        self._shown = np.zeros(len(rank), np.bool_)
        self._shown[numbers] = True
        # lexsort sorts by its last key first: worse before not worse, then changed before kept
        order = np.lexsort((-effects.ratios[numbers], -throttle_ms[numbers], grouping.kept[numbers], ~worse[numbers]))
        numbers = numbers[order]
        throttle_times = _to_seconds(effects.throttle_ms[numbers])
        differences = _to_seconds(_differences(effects, numbers))
        return tuple(
            ShadowUsage(
                entity=grouping.entities[number],
                usage=float(effects.usages[number]),
                throttle_time_seconds=throttle_time,
                change=_CHANGE_OF_CODE[effects.changes[number]],
                change_seconds=difference,
                held_back=bool(effects.held_back[number]),
                unchanged=bool(grouping.kept[number]),
            )
            for number, throttle_time, difference in zip(numbers.tolist(), throttle_times, differences, strict=True)
        )

    def _count_under_unknown_limits(self, joined: Snapshot, brokers: AbstractSet[str]) -> Counter[_UnevaluatedKey]:
        """Count the entities on ``brokers``, where the quotas in force are unknown: at least 1 of each quota type."""
        if not brokers:
            return Counter()
        tables = self._candidate.tables()
        counts = Counter((entity.quota_type, entity.broker) for entity in joined.columns.layout.entities)
        return Counter(
            {
                (kind, broker, UnevaluatedReason.LIMITS_UNKNOWN): max(1, counts[kind, broker])
                for kind in TYPES
                for broker in brokers
                if tables[kind].enabled or not self._candidate.based
            }
        )


def _to_seconds(values_ms: Floats) -> list[float | None]:
    """Return times in seconds; None for NaN."""
    return [None if isnan(value) else value / 1000 for value in values_ms.tolist()]


class _Effects(NamedTuple):
    """The effects of the shadow's rules on the entities of a grouping, by the number of the entity."""

    codes: NDArray[np.int8]
    """0 if the effect is known, -1 if the entity has no row, else the code of the reason why it is unknown."""
    usages: Floats
    """Sums of the measured usage."""
    ratios: Floats
    """Usage / limit."""
    throttle_ms: Floats
    """
    Throttle times; NaN where unknown.

    Under an unchanged limit it is the throttle time that the broker reports, else the one that Kafka would impose now.
    """
    base_ms: Floats
    """The longest throttle time that the quotas in force impose now on a part of the entity."""
    changes: NDArray[np.int8]
    """Code of the change; 0 for an entity that neither the shadow nor a quota in force throttles."""
    held_back: Mask
    """True if another limit in force throttles a part of the entity: its usage is a lower bound of its demand."""
    freed_pools: NDArray[np.intp]
    """The pool of each row that a quota in force throttles and the shadow does not limit."""

    @property
    def worse(self) -> Mask:
        """Mask of the entities that the shadow throttles newly or for longer."""
        worse: Mask = np.logical_or.reduce([self.changes == _CHANGE_CODES[change] for change in WORSE])
        return worse


def _effects(grouping: Grouping, columns: Columns, late: AbstractSet[str]) -> _Effects:
    """
    Return the effects of the shadow's rules now.

    First come the throttle times that Kafka would impose now, then the changes against the quotas in force. In the end,
    throttle times that the broker reports, or that are unknown, take their places.
    """
    count, rows, number_of_row = len(grouping.entities), grouping.members, grouping.of_members
    limits, pools = grouping.limits, grouping.pool_of
    usages = np.bincount(number_of_row, columns.usage[rows], count).astype(np.float64)
    with np.errstate(all="ignore"):
        ratios = usages / limits
    throttle_ms = _imposed_by_rates(grouping, usages)
    codes = np.zeros(count, np.int8)
    mutation_pools = np.flatnonzero([kind is _MUTATION for kind, _ in grouping.pools])
    mutations = np.isin(pools, mutation_pools)
    if mutations.any():
        # a mutation quota throttles by tokens, not by its rate: for as long as it takes to pay the debt
        tokens = np.full(count, np.nan)
        tokens[number_of_row] = columns.tokens[rows]
        with np.errstate(all="ignore"):
            times_ms = np.floor(-tokens[mutations] / limits[mutations] * 1000 + 0.5)
        throttle_ms[mutations] = np.clip(np.fmax(times_ms, 0.0), 0.0, LONG_MAX)
        codes[mutations & np.isnan(tokens)] = _REASON_CODES[UnevaluatedReason.ABSENT]
    baseline = _Baseline.of(grouping, columns, mutations[number_of_row], throttle_ms)
    # The tokens of a mutation quota are known under an unchanged limit. Under a raised limit they are at least as many.
    raised = grouping.raised
    codes[mutations & ~grouping.kept & ~raised & (codes == 0)] = _REASON_CODES[UnevaluatedReason.MUTATION]
    changes = baseline.changes(throttle_ms)
    codes[(changes < 0) & (codes == 0)] = _REASON_CODES[UnevaluatedReason.CENSORED]
    # under an unchanged limit, the broker's own throttle time is the answer
    is_reported = grouping.kept & ~np.isnan(baseline.throttle_ms)
    throttle_ms[is_reported] = baseline.throttle_ms[is_reported]
    # a broker that does not throttle the entity under the stricter limit in force does not under the raised one
    throttle_ms[raised & ~baseline.throttled] = 0.0
    throttle_ms[raised & baseline.throttled & np.isfinite(limits)] = np.nan
    held_back = baseline.throttled & ~grouping.kept & np.isfinite(limits)
    # of several reasons, the last one here stays
    codes[np.isnan(usages)] = _REASON_CODES[UnevaluatedReason.ABSENT]
    codes[grouping.unclear] = _REASON_CODES[UnevaluatedReason.FINER]
    late_pools = np.flatnonzero([broker in late for _, broker in grouping.pools])
    codes[np.isin(pools, late_pools)] = _REASON_CODES[UnevaluatedReason.STALE]
    codes[pools < 0] = -1
    freed_pools = grouping.freed_pools[columns.held_back[grouping.freed]]
    freed_pools = freed_pools[~np.isin(freed_pools, late_pools)]
    return _Effects(codes, usages, ratios, throttle_ms, baseline.throttle_ms, changes, held_back, freed_pools)


def _imposed_by_rates(grouping: Grouping, usages: Floats) -> Floats:
    """
    Return the throttle times in ms that Kafka would impose now for usages, by number of the entity.

    A rate is violated above its bound, and the throttle time is (rate - bound) / bound x window (`ClientQuotaManager`,
    `QuotaUtils`). The throttle time of a request quota is one window at most. The throttle time of a byte rate is
    limited to 31 bits since 4.4; before, its low 32 bits are sent (`KafkaRelease.saturates`). The window is the
    configured one; a broker's own at an instant is up to one sample shorter or longer.
    """
    limits = grouping.limits
    with np.errstate(all="ignore"):
        times_ms = np.floor((usages - limits) / limits * grouping.windows + 0.5)
        # an infinite limit, or no usage under a limit of 0, gives NaN: no throttle
        return _as_sent(np.minimum(np.fmax(times_ms, 0.0), grouping.longest))


def _as_sent(times_ms: Floats) -> Floats:
    """
    Return throttle times of at least 0 as a response carries them: the low 32 bits.

    A time that these bits turn negative throttles nothing, so it is 0.
    """
    if not (times_ms > INT_MAX).any():
        return times_ms
    low = np.minimum(times_ms, _LONGEST_FLOAT).astype(np.int64) & 0xFFFF_FFFF
    return np.where(low > INT_MAX, 0.0, low.astype(np.float64))


def _differences(effects: _Effects, numbers: Rows) -> Floats:
    """
    Return the throttle time of entities minus their throttle time under the quotas in force, in ms.

    Args:
        effects: The effects on all entities.
        numbers: The numbers of the entities. The result is in their order, and NaN where the difference is unknown.

    """
    changes, shadow_ms, base_ms = effects.changes[numbers], effects.throttle_ms[numbers], effects.base_ms[numbers]
    # the time in force is a mean over a minute: a longer one says nothing about this moment
    longer_ms = np.where(shadow_ms > base_ms, shadow_ms - base_ms, np.nan)
    differences_by_change = {
        ThrottleChange.NEW: shadow_ms,
        ThrottleChange.LONGER: longer_ms,
        ThrottleChange.SHORTER: shadow_ms - base_ms,
        ThrottleChange.ENDED: -base_ms,
    }
    differences = np.zeros(len(numbers))
    for change, values in differences_by_change.items():
        differences = np.where(changes == _CHANGE_CODES[change], values, differences)
    return differences


class _Baseline(NamedTuple):
    """The effect of the quotas in force on the entities of a grouping."""

    grouping: Grouping
    throttle_ms: Floats
    """The longest throttle time of any part of an entity; NaN where the time of a throttle is unknown."""
    throttled: Mask
    """True if the quotas in force throttle any part of the entity."""
    stricter: Mask
    """True if a limit lower than the entity's throttles a part of it."""
    looser: Mask
    """True if a limit at least as high as the entity's throttles a part of it."""
    free: Mask
    """True if the quotas in force leave a part with usage unthrottled; only for entities above their limits."""

    @classmethod
    def of(cls, grouping: Grouping, columns: Columns, mutations: Mask, shadow_ms: Floats) -> _Baseline:
        """
        Return the baseline of a grouping.

        Args:
            grouping: The entities.
            columns: The measured numbers.
            mutations: Mask of the members under mutation quotas.
            shadow_ms: Throttle time of each entity under the shadow's limit. Under an unchanged mutation quota it is
                the broker's own, from its tokens.

        """
        count, rows, number_of_row = len(grouping.entities), grouping.members, grouping.of_members
        # members are parts of entities; those that the quotas in force throttle, with the numbers of their entities
        held_members = np.flatnonzero(columns.held_back[rows])
        held_numbers = number_of_row[held_members]
        is_stricter = grouping.in_force[held_members] < grouping.limits[held_numbers]
        longest_ms = np.zeros(count)
        with np.errstate(invalid="ignore"):  # one unknown time makes the longest NaN
            np.maximum.at(longest_ms, held_numbers, columns.throttle_time[rows[held_members]] * 1000)
        # where the broker reports no time under an unchanged limit, the time that Kafka would impose
        unmeasured = grouping.kept & np.isnan(longest_ms)
        longest_ms[unmeasured] = shadow_ms[unmeasured]
        # under an unchanged mutation quota, the tokens may show a throttle that no request throttle refers to
        mutation_numbers = number_of_row[mutations]
        kept_numbers = mutation_numbers[grouping.kept[mutation_numbers]]
        longest_ms[kept_numbers] = np.fmax(longest_ms[kept_numbers], shadow_ms[kept_numbers])
        # members with usage and without a throttle, of entities that the shadow throttles
        throttled_members = np.flatnonzero(shadow_ms[number_of_row] > 0)
        throttled_rows = rows[throttled_members]
        free_members = throttled_members[(columns.usage[throttled_rows] > 0) & ~columns.held_back[throttled_rows]]

        def mask_of(numbers: Rows) -> Mask:
            """Return the mask by number of the entities with these numbers."""
            mask = np.zeros(count, np.bool_)
            mask[numbers] = True
            return mask

        return cls(
            grouping=grouping,
            throttle_ms=longest_ms,
            throttled=mask_of(held_numbers),
            stricter=mask_of(held_numbers[is_stricter]),
            looser=mask_of(held_numbers[~is_stricter]),
            free=mask_of(number_of_row[free_members]),
        )

    def changes(self, shadow_ms: Floats) -> NDArray[np.int8]:
        """
        Return the code of each entity's change; 0 for no throttle before and after, -1 where the change is unknown.

        A part that a limit at least as high throttles now is throttled for longer under the shadow's. The demand of a
        part that a stricter limit throttles now is not observed. If such a part is the whole entity, its throttle
        gets no longer; otherwise the change is unknown.
        """
        grouping, limits = self.grouping, self.grouping.limits
        changes = np.zeros(len(limits), np.int8)
        # of several assignments to an entity, the last one stays
        is_over = shadow_ms > 0
        changes[is_over & (self.free | ~self.throttled)] = _CHANGE_CODES[ThrottleChange.NEW]
        is_censored = self.stricter & ~self.looser & ~(is_over & self.free)
        changes[is_censored] = -1
        # certain only if the limits in force of all parts together exceed the shadow's
        changes[is_censored & is_over & (grouping.sums > limits)] = _CHANGE_CODES[ThrottleChange.LONGER]
        changes[self.looser] = _CHANGE_CODES[ThrottleChange.LONGER]
        raised = grouping.raised
        changes[raised] = np.where(self.throttled[raised], _CHANGE_CODES[ThrottleChange.SHORTER], 0)
        unlimited = np.isinf(limits)
        changes[unlimited] = np.where(self.throttled[unlimited], _CHANGE_CODES[ThrottleChange.ENDED], 0)
        throttled = self.throttled | (self.throttle_ms > 0)
        changes[grouping.kept] = np.where(throttled[grouping.kept], _CHANGE_CODES[ThrottleChange.UNCHANGED], 0)
        return changes


class _Counts(NamedTuple):
    """Numbers of entities by quota type and broker."""

    evaluated: Counter[Pool]
    changes: Mapping[Pool, Mapping[ThrottleChange, int]]
    unevaluated: Counter[_UnevaluatedKey]


def _count(grouping: Grouping, effects: _Effects) -> _Counts:
    """Count the evaluated entities, the throttled entities by change, and the unevaluated entities by reason."""
    codes, pool_count = effects.codes, len(grouping.pools)

    def counts_of(codes_of_entities: NDArray[np.int8], mask: Mask, code_count: int) -> NDArray[np.intp]:
        """Return the number of masked entities by pool (rows) and code (columns)."""
        cells = grouping.pool_of * code_count + codes_of_entities
        return np.bincount(cells[mask], minlength=pool_count * code_count).reshape(pool_count, code_count)

    # code 0 is for evaluated entities, the others for reasons; divided rows have no entity, and are counted by row
    by_code = counts_of(codes, codes >= 0, 1 + len(_REASONS))
    by_code[:, _REASON_CODES[UnevaluatedReason.FINER]] += np.bincount(grouping.divided, minlength=pool_count)
    evaluated = Counter(dict(zip(grouping.pools, by_code[:, 0].tolist(), strict=True)))
    unevaluated = Counter[_UnevaluatedKey]()
    for pool, reason in np.argwhere(by_code[:, 1:]).tolist():
        unevaluated[*grouping.pools[pool], _REASONS[reason]] = int(by_code[pool, 1 + reason])
    by_change = counts_of(effects.changes, codes == 0, 1 + len(ThrottleChange))
    by_change[:, _CHANGE_CODES[ThrottleChange.ENDED]] += np.bincount(effects.freed_pools, minlength=pool_count)
    changes = {
        pool: dict(zip(_CHANGE_CODES, counts[1:], strict=True))
        for pool, counts in zip(grouping.pools, by_change.tolist(), strict=True)
    }
    return _Counts(evaluated, changes, unevaluated)


def _limited_pools(
    joined: Snapshot,
    limits: Limits,
    rules: Mapping[QuotaType, RuleTable],
    measured: AbstractSet[Pool],
    overruled: AbstractSet[str],
) -> Sequence[Pool]:
    """
    Return the pools that the shadow may limit, in order of quota type and node.

    They are the ``measured`` pools, and each quota type with rules on the nodes that enforce it, except those of
    ``overruled`` nodes. Without a node that is known to enforce a quota type, all nodes count.
    """
    nodes = {node.broker for node in joined.nodes}
    active_controllers = {node.broker for node in joined.nodes if node.active_controller}
    brokers = nodes & limits.nodes.keys()  # the limits have settings of brokers, not of nodes that only are controllers
    pools = {(kind, node) for kind, node in measured if node in nodes}
    for kind in TYPES:
        if rules[kind].enabled:
            enforcing = active_controllers if kind is _MUTATION else brokers
            pools |= {(kind, node) for node in enforcing or nodes}
    return sorted(((kind, node) for kind, node in pools if node not in overruled), key=_sort_key)


def _sort_key(key: tuple[QuotaType, str, *tuple[str, ...]]) -> tuple[object, ...]:
    """Return the sort key of a pool, or of the key of unevaluated entities."""
    quota_type, node, *reasons = key
    return TYPES.index(quota_type), node_order(node), reasons
