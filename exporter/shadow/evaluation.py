"""
Evaluates shadows on one snapshot after the other, from the rates that the brokers measure.

The page docs/guides/shadow.md says what can be known.
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
_KEEP: Final = 2.0
"""
An entity that is shown stays so unless another one has more than this times its utilization: series do not come and go.
"""
_THROTTLED: Final = 1e12
"""Rank of a throttle beside a utilization."""
_WORSE: Final = 1e14
"""Rank of a throttle that is new or longer."""
_AWAY_SECONDS: Final = 3600.0
"""Time that the entities of a broker that is not read count as unknown."""
_Unknown: TypeAlias = tuple[QuotaType, str, str]
"""Key of unknown entities that are counted together: quota type, broker and reason."""
_LONGEST_FLOAT: Final = float(LONG_MAX - 1023)
"""The largest float that fits into 64 bits; its low 32 bits are as negative as those of Java's `Long.MAX_VALUE`."""
_MUTATION: Final = QuotaType.CONTROLLER_MUTATION


class UnevaluatedReason(StrEnum):
    """Why it is unknown whether a shadow would throttle an entity; the value is the label ``reason``."""

    LIMITS_UNKNOWN = "limits_unknown"
    """The configured quotas are not known, or a custom quota callback decides instead of them."""
    UNMEASURED = "unmeasured"
    """No quota of this type is set, so that brokers measure no client: rules of the shadow are counted."""
    FINER = "finer"
    """The shadow divides what the brokers measure as one."""
    MUTATION = "mutation"
    """
    The shadow lowers a quota of controller mutations or counts them otherwise, which depends on the past of the bucket.
    """
    STALE = "stale"
    """The numbers of the broker are old."""
    ABSENT = "absent"
    """There is no rate, or the broker could not be read."""
    CENSORED = "censored"
    """A stricter quota throttles a part of it now: how much that would use without is not seen."""


_CHANGES: Final = {change: number for number, change in enumerate(ThrottleChange, start=1)}
_OF_CODES: Final = (None, *ThrottleChange)
_REASONS: Final = tuple(UnevaluatedReason)
_CODES: Final = {reason: code for code, reason in enumerate(_REASONS, start=1)}


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
    Evaluates candidates on each snapshot; without any it does nothing.

    Args:
        candidates: The candidates; one that lists no quotas starts from the cluster's own.
        most: Entities of each shadow that are shown one by one.
        shows: Function that decides whether an entity of a user and a client-id may be shown.

    """

    def __init__(
        self,
        candidates: Iterable[Candidate] = (),
        max_entities: int = 100,
        shows: Callable[[str, str], bool | None] = lambda _user, _client_id: True,
    ) -> None:
        self._each = [_Evaluation(candidate, max_entities, shows) for candidate in candidates]

    def of(self, joined: Snapshot, late: AbstractSet[str]) -> tuple[Shadow, ...]:
        """Return the shadows; ``joined`` has all measured entities, and the numbers of ``late`` nodes are old."""
        overruled = frozenset(node.broker for node in joined.nodes if node.overruled)
        return tuple(evaluation.of(joined, overruled, late) for evaluation in self._each)


class _Evaluation:
    """One shadow, evaluated again and again."""

    def __init__(self, candidate: Candidate, max_entities: int, shows: Callable[[str, str], bool | None]) -> None:
        self._candidate, self._most, self._shows = candidate, max_entities, shows
        self._version: int | None = None
        self._overruled: AbstractSet[str] = frozenset()
        self._grouping: Grouping | None = None
        self._shown: Mask = np.empty(0, np.bool_)
        self._measured: set[Pool] = set()
        """Pools in which the shadow ever had an entity under the present rules."""
        self._last: dict[Pool, tuple[float, int]] = {}
        """Time at which each pool was read last, and the number of entities that the shadow had there."""

    def of(self, joined: Snapshot, overruled: AbstractSet[str], late: AbstractSet[str]) -> Shadow:
        """Return the shadow as of now. The configured quotas decide on all nodes except the ``overruled``."""
        limits = joined.limits
        if limits is None:
            nodes = {node.broker for node in joined.nodes}
            return Shadow(name=self._candidate.name, unevaluated=self._unknown(joined, nodes))
        grouping = self._followed(joined.columns.layout, limits, overruled)
        answers = _answers(grouping, joined.columns, late)
        evaluated, changes, unevaluated = _counted(grouping, answers)
        self._measured |= {pool for pool, number in evaluated.items() if number or any(changes[pool].values())}
        self._measured |= {pool[:2] for pool in unevaluated}
        places = _places(joined, limits, grouping.rules, self._measured, overruled)
        for kind, broker in places:
            if not grouping.enforced[kind].enabled:
                reason = UnevaluatedReason.MUTATION if kind is _MUTATION else UnevaluatedReason.UNMEASURED
                unevaluated[kind, broker, reason] += len(grouping.rules[kind])
        unevaluated |= self._absent(joined, places, evaluated, unevaluated, overruled)
        unevaluated |= self._unknown(joined, overruled)
        unclear = {pool[:2] for pool in unevaluated}
        none = dict.fromkeys(_CHANGES, 0)
        known_pools = [
            pool for pool in places if evaluated[pool] or pool not in unclear or any(changes.get(pool, none).values())
        ]
        return Shadow(
            name=self._candidate.name,
            entities=self._nearest(grouping, answers),
            evaluated={pool: evaluated[pool] for pool in known_pools},
            changes={pool: changes.get(pool, none) for pool in known_pools},
            unevaluated={key: unevaluated[key] for key in sorted(unevaluated, key=_in_order)},
        )

    def _followed(self, layout: Layout, limits: Limits, overruled: AbstractSet[str]) -> Grouping:
        """Return the entities under the present rules, resolved again when a rule has changed."""
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
        grouping.follow(layout)
        return grouping

    def _absent(
        self,
        joined: Snapshot,
        places: Iterable[Pool],
        evaluated: Counter[Pool],
        unevaluated: Counter[_Unknown],
        overruled: AbstractSet[str],
    ) -> Counter[_Unknown]:
        """Return the counts of entities on brokers that are not read now."""
        now_seconds, brokers = joined.steady_at, {broker for _, broker in places} | overruled
        away = {
            pool: (seen_at, count)
            for pool, (seen_at, count) in self._last.items()
            if pool[1] not in brokers and abs(now_seconds - seen_at) <= _AWAY_SECONDS
        }
        counts = evaluated.copy()
        for (kind, broker, _), count in unevaluated.items():
            counts[kind, broker] += count
        self._last = away | {pool: (now_seconds, counts[pool]) for pool in places}
        return Counter({(*pool, UnevaluatedReason.ABSENT): max(1, count) for pool, (_, count) in away.items()})

    def _nearest(self, grouping: Grouping, answers: _Answers) -> tuple[ShadowUsage, ...]:
        """Return the entities that are shown one by one: those nearest to a throttle."""
        worse, throttle_ms = answers.worse, np.nan_to_num(answers.throttle_ms)
        rank = answers.ratios + (throttle_ms > 0) * _THROTTLED + worse * _WORSE
        with np.errstate(over="ignore"):  # an agent may report any float; infinity stays the greatest
            rank[: len(self._shown)][self._shown] *= _KEEP
        able = np.flatnonzero((answers.codes == 0) & ~grouping.hidden)
        if len(able) > self._most:
            able = able[np.argpartition(-rank[able], self._most)[: self._most]]
        self._shown = np.zeros(len(rank), np.bool_)
        self._shown[able] = True
        order = np.lexsort((-answers.ratios[able], -throttle_ms[able], grouping.kept[able], ~worse[able]))
        order = able[order]
        times, differences = (
            _seconds(times_ms) for times_ms in (answers.throttle_ms[order], _differences(answers, order))
        )
        return tuple(
            ShadowUsage(
                entity=grouping.entities[number],
                usage=float(answers.usages[number]),
                throttle_time_seconds=throttle_time,
                change=_OF_CODES[answers.changes[number]],
                change_seconds=difference,
                held_back=bool(answers.held_back[number]),
                unchanged=bool(grouping.kept[number]),
            )
            for number, throttle_time, difference in zip(order.tolist(), times, differences, strict=True)
        )

    def _unknown(self, joined: Snapshot, brokers: AbstractSet[str]) -> Counter[_Unknown]:
        """Count the entities on brokers where nothing is known, since the quotas in force are unknown."""
        if not brokers:
            return Counter()
        tables = self._candidate.tables()
        rows = Counter((entity.quota_type, entity.broker) for entity in joined.columns.layout.entities)
        return Counter(
            {
                (kind, broker, UnevaluatedReason.LIMITS_UNKNOWN): max(1, rows[kind, broker])
                for kind in TYPES
                for broker in brokers
                if tables[kind].enabled or not self._candidate.based
            }
        )


def _seconds(values_ms: Floats) -> list[float | None]:
    return [None if isnan(value) else value / 1000 for value in values_ms.tolist()]


class _Answers(NamedTuple):
    """The answers for the entities of a grouping."""

    codes: NDArray[np.int8]
    """0 where the answer is known, else 1 + the place of the reason, -1 for an entity that is not there."""
    usages: Floats
    """Sums of the measured usage."""
    ratios: Floats
    """Usage / limit."""
    throttle_ms: Floats
    """
    Throttle time: the broker's own under a limit that stays, Kafka's answer now under another one, NaN where it is
    unknown.
    """
    base_ms: Floats
    """The longest throttle time that the quotas in force impose now on a part of the entity."""
    changes: NDArray[np.int8]
    """0 for an entity that neither the shadow nor a quota in force throttles, else 1 + the place of the change."""
    held_back: Mask
    """True if another limit in force throttles a part of the entity: its usage is a lower bound of its demand."""
    freed: NDArray[np.intp]
    """The pool of each entity that a quota in force throttles and the shadow does not limit."""

    @property
    def worse(self) -> Mask:
        """Return for each entity whether the shadow throttles it newly or for longer."""
        worse: Mask = np.logical_or.reduce([self.changes == _CHANGES[change] for change in WORSE])
        return worse


def _answers(grouping: Grouping, columns: Columns, late: AbstractSet[str]) -> _Answers:
    """
    Return Kafka's answer to each entity now.

    A rate is violated above its bound, and the throttle is (rate - bound) / bound x window (`ClientQuotaManager`,
    `QuotaUtils`): of request time one window at most, of bytes what fits into 31 bits since 4.4, and its low 32 bits
    before (`KafkaRelease.saturates`). The window is the one that is configured; a broker's own at an instant is up to
    one sample shorter or longer.
    """
    count, rows, of_row = len(grouping.entities), grouping.members, grouping.of_members
    limits, pools = grouping.limits, grouping.pool_of
    usages = np.bincount(of_row, columns.usage[rows], count).astype(np.float64)
    with np.errstate(all="ignore"):
        ratios = usages / limits
        times = np.floor((usages - limits) / limits * grouping.windows + 0.5)
        # NaN, of an infinite limit or of no usage of one of 0, is 0
        throttle_ms = _as_sent(np.minimum(np.fmax(times, 0.0), grouping.longest))
    codes = np.zeros(count, np.int8)
    mutating = np.flatnonzero([kind is _MUTATION for kind, _ in grouping.pools])
    mutations = np.isin(pools, mutating)
    if mutations.any():
        tokens = np.full(count, np.nan)
        tokens[of_row] = columns.tokens[rows]
        with np.errstate(all="ignore"):
            times = np.floor(-tokens[mutations] / limits[mutations] * 1000 + 0.5)
        throttle_ms[mutations] = np.clip(np.fmax(times, 0.0), 0.0, LONG_MAX)
        codes[mutations & np.isnan(tokens)] = _CODES[UnevaluatedReason.ABSENT]
    base = _Baseline.of(grouping, columns, mutations[of_row], throttle_ms)
    # of a mutation quota the bucket is known where it stays; where the limit is raised, it has no fewer tokens than now
    raised = grouping.raised
    codes[mutations & ~grouping.kept & ~raised & (codes == 0)] = _CODES[UnevaluatedReason.MUTATION]
    changes = base.changes(throttle_ms)
    codes[(changes < 0) & (codes == 0)] = _CODES[UnevaluatedReason.CENSORED]
    is_known = grouping.kept & ~np.isnan(base.throttle_ms)
    throttle_ms[is_known] = base.throttle_ms[is_known]
    throttle_ms[raised & ~base.throttled] = 0.0  # a broker that delays no request under a stricter limit
    throttle_ms[raised & base.throttled & np.isfinite(limits)] = np.nan
    held_back = base.throttled & ~grouping.kept & np.isfinite(limits)
    codes[np.isnan(usages)] = _CODES[UnevaluatedReason.ABSENT]
    codes[grouping.unclear] = _CODES[UnevaluatedReason.FINER]
    old = np.flatnonzero([broker in late for _, broker in grouping.pools])
    codes[np.isin(pools, old)] = _CODES[UnevaluatedReason.STALE]
    codes[pools < 0] = -1
    freed = grouping.freed_pools[columns.held_back[grouping.freed]]
    freed = freed[~np.isin(freed, old)]
    return _Answers(codes, usages, ratios, throttle_ms, base.throttle_ms, changes, held_back, freed)


def _as_sent(times_ms: Floats) -> Floats:
    """
    Return times of at least 0 as brokers send them, without the bits beyond 32.

    A time that becomes negative by that throttles nothing.
    """
    if not (times_ms > INT_MAX).any():
        return times_ms
    low = np.minimum(times_ms, _LONGEST_FLOAT).astype(np.int64) & 0xFFFF_FFFF
    return np.where(low > INT_MAX, 0.0, low.astype(np.float64))


def _differences(answers: _Answers, numbers: Rows) -> Floats:
    """
    Return the throttle times of some entities minus those of the quotas in force, in ms.

    It is NaN where the difference is unknown.
    """
    changes, shadow_ms, base_ms = answers.changes[numbers], answers.throttle_ms[numbers], answers.base_ms[numbers]
    longer = np.where(
        shadow_ms > base_ms, shadow_ms - base_ms, np.nan
    )  # else a mean over a minute would be compared with this moment
    differences_by_change = {
        ThrottleChange.NEW: shadow_ms,
        ThrottleChange.LONGER: longer,
        ThrottleChange.SHORTER: shadow_ms - base_ms,
        ThrottleChange.ENDED: -base_ms,
    }
    differences = np.zeros(len(numbers))
    for change, values in differences_by_change.items():
        differences = np.where(changes == _CHANGES[change], values, differences)
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
    def of(cls, grouping: Grouping, columns: Columns, mutations: Mask, answers_ms: Floats) -> _Baseline:
        """
        Return the baseline of a grouping.

        ``mutations`` marks the members under mutation quotas; their debt under an unchanged limit is in ``answers_ms``.
        """
        count, rows, of_row = len(grouping.entities), grouping.members, grouping.of_members
        held_back = np.flatnonzero(columns.held_back[rows])
        of_held = of_row[held_back]
        stricter = grouping.in_force[held_back] < grouping.limits[of_held]
        longest = np.zeros(count)
        with np.errstate(invalid="ignore"):
            np.maximum.at(longest, of_held, columns.throttle_time[rows[held_back]] * 1000)  # NaN where any is unknown
        unmeasured = grouping.kept & np.isnan(longest)
        longest[unmeasured] = answers_ms[unmeasured]
        kept_numbers = of_row[mutations]
        kept_numbers = kept_numbers[grouping.kept[kept_numbers]]
        longest[kept_numbers] = np.fmax(longest[kept_numbers], answers_ms[kept_numbers])
        throttling = np.flatnonzero(answers_ms[of_row] > 0)
        free = throttling[(columns.usage[rows[throttling]] > 0) & ~columns.held_back[rows[throttling]]]

        def parts(numbers: Rows) -> Mask:
            mask = np.zeros(count, np.bool_)
            mask[numbers] = True
            return mask

        return cls(
            grouping=grouping,
            throttle_ms=longest,
            throttled=parts(of_held),
            stricter=parts(of_held[stricter]),
            looser=parts(of_held[~stricter]),
            free=parts(of_row[free]),
        )

    def changes(self, answers_ms: Floats) -> NDArray[np.int8]:
        """
        Return the number of each entity's change, 0 for no change, -1 where it is unknown.

        A part that a limit at least as high throttles is throttled for longer under this one. The demand of a part that
        a stricter limit throttles is not seen. Only if the entity is this part alone, it is known that the throttle
        does not get longer.
        """
        grouping, limits = self.grouping, self.grouping.limits
        changes = np.zeros(len(limits), np.int8)
        over = answers_ms > 0
        changes[over & (self.free | ~self.throttled)] = _CHANGES[ThrottleChange.NEW]
        mixed = self.stricter & ~self.looser & ~(over & self.free)
        changes[mixed] = -1
        changes[mixed & over & (grouping.sums > limits)] = _CHANGES[ThrottleChange.LONGER]
        changes[self.looser] = _CHANGES[ThrottleChange.LONGER]
        raised = grouping.raised
        changes[raised] = np.where(self.throttled[raised], _CHANGES[ThrottleChange.SHORTER], 0)
        endless = np.isinf(limits)
        changes[endless] = np.where(self.throttled[endless], _CHANGES[ThrottleChange.ENDED], 0)
        throttled = self.throttled | (self.throttle_ms > 0)
        changes[grouping.kept] = np.where(throttled[grouping.kept], _CHANGES[ThrottleChange.UNCHANGED], 0)
        return changes


class _Counts(NamedTuple):
    """Numbers of entities by quota type and broker."""

    evaluated: Counter[Pool]
    changes: Mapping[Pool, Mapping[ThrottleChange, int]]
    unevaluated: Counter[_Unknown]


def _counted(grouping: Grouping, answers: _Answers) -> _Counts:
    """
    Return the numbers of entities by quota type and broker.

    They are the evaluated entities, the throttled ones by change, and the unknown ones by reason.
    """
    pools, codes = grouping.pool_of, answers.codes
    width, count = 1 + len(_REASONS), len(grouping.pools)
    numbers = np.bincount((pools * width + codes)[codes >= 0], minlength=count * width).reshape(count, width)
    numbers[:, _CODES[UnevaluatedReason.FINER]] += np.bincount(grouping.divided, minlength=count)
    unknown = Counter[_Unknown]()
    for pool, place in np.argwhere(numbers[:, 1:]).tolist():
        unknown[*grouping.pools[pool], _REASONS[place]] = int(numbers[pool, 1 + place])
    evaluated = dict(zip(grouping.pools, numbers[:, 0].tolist(), strict=True))
    is_known, wide = codes == 0, 1 + len(ThrottleChange)
    changed = np.bincount((pools * wide + answers.changes)[is_known], minlength=count * wide).reshape(count, wide)
    changed[:, _CHANGES[ThrottleChange.ENDED]] += np.bincount(answers.freed, minlength=count)
    changes = {
        pool: dict(zip(_CHANGES, counts[1:], strict=True))
        for pool, counts in zip(grouping.pools, changed.tolist(), strict=True)
    }
    return _Counts(Counter(evaluated), changes, unknown)


def _places(
    joined: Snapshot,
    limits: Limits,
    rules: Mapping[QuotaType, RuleTable],
    measured: AbstractSet[Pool],
    overruled: AbstractSet[str],
) -> Sequence[Pool]:
    """
    Return the pools in which the shadow has rules: quota types with the nodes that enforce them.

    ``limits.nodes`` has the settings of brokers, but not of nodes that are only controllers.
    """
    nodes = {node.broker for node in joined.nodes}
    leads = {node.broker for node in joined.nodes if node.active_controller}
    brokers = nodes & limits.nodes.keys()
    pools = {pool for pool in measured if pool[1] in nodes}
    for kind in TYPES:
        if rules[kind].enabled:
            enforcing = leads if kind is _MUTATION else brokers
            pools |= {(kind, node) for node in enforcing or nodes}
    return sorted((pool for pool in pools if pool[1] not in overruled), key=_in_order)


def _in_order(key: tuple[QuotaType, str, *tuple[str, ...]]) -> tuple[object, ...]:
    return TYPES.index(key[0]), node_order(key[1]), key[2:]
