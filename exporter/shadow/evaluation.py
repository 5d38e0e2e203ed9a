"""Evaluates shadows on one snapshot after the other, from the rates that the brokers measure: docs/shadow.md says what can be known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType, RuleTable
from quotascope.metrics.numbers import LONG_MAX
from quotascope.quotas import InvalidQuotas, QuotaSet, named
from quotascope.quotas.candidates import Candidate, read_candidates

from ..errors import ConfigError
from ..join.limiting import alike, deciding
from ..limits import Limits
from ..snapshot import CAUSES, TYPES, Columns, EntityUsage, Floats, Layout, Shadow, Snapshot, ThrottleCause
from ..snapshot.layout import node_order
from .grouping import Grouping, Mask, Pool

_MOST_SHADOWS: Final = 10
_KEEP: Final = 2.0
"""An entity that is shown stays so unless another one has more than this times its utilization: series do not come and go."""
_THROTTLED: Final = 1e12
"""What a throttle counts beside a utilization."""
_AWAY_SECONDS: Final = 3600.0
"""How long the entities of a broker that is not read count as unknown."""
_Unknown: TypeAlias = tuple[QuotaType, str, str]
"""What is counted together that is unknown: a quota type on a broker, and the reason."""
_MUTATION: Final = QuotaType.CONTROLLER_MUTATION
_NOT_ITS_OWN: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)


class UnevaluatedReason(StrEnum):
    """Why it is unknown whether a shadow would throttle an entity; the value is the label ``reason``."""

    LIMITS_UNKNOWN = "limits_unknown"
    """The configured quotas are not known, or a custom quota callback decides instead of them."""
    UNMEASURED = "unmeasured"
    """No quota of this type is set, so that brokers measure no client: rules of the shadow are counted."""
    FINER = "finer"
    """The shadow divides what the brokers measure as one."""
    MUTATION = "mutation"
    """It changes a quota of controller mutations, which depends on the past of its token bucket."""
    STALE = "stale"
    """The numbers of the broker are old."""
    ABSENT = "absent"
    """There is no rate, or the broker could not be read."""
    CENSORED = "censored"
    """A stricter quota throttles it now: how much it would use without is not seen."""


_REASONS: Final = tuple(UnevaluatedReason)
_CODES: Final = {reason: code for code, reason in enumerate(_REASONS, start=1)}


def read_shadows(path: Path) -> tuple[Candidate, ...]:
    """The candidates in a file, ten at most. Raises ``ConfigError``, which names the file and each wrong line."""
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
        candidates: Those that list no quotas start from the cluster's own.
        most: Entities of each that are shown one by one.
        shows: Whether an entity of a user and a client-id may be shown.

    """

    def __init__(
        self,
        candidates: Iterable[Candidate] = (),
        most: int = 100,
        shows: Callable[[str, str], bool] = lambda _user, _client_id: True,
    ) -> None:
        self._each = [_Evaluation(each, most, shows) for each in candidates]

    def of(self, joined: Snapshot, late: AbstractSet[str]) -> tuple[Shadow, ...]:
        """What they would do; ``joined`` has all that is measured, and the numbers of ``late`` nodes are old."""
        limits = deciding(joined.limits, callback_seen=bool(joined.callbacks.labels))
        return tuple(each.of(joined, limits, late) for each in self._each)


class _Evaluation:
    """One shadow."""

    def __init__(self, candidate: Candidate, most: int, shows: Callable[[str, str], bool]) -> None:
        self._candidate, self._most, self._shows = candidate, most, shows
        self._limits: Limits | None = None
        self._grouping: Grouping | None = None
        self._shown: Mask = np.empty(0, np.bool_)
        self._measured: set[Pool] = set()
        """Where it had any entity under these rules."""
        self._last: dict[Pool, tuple[float, int]] = {}
        """When the broker was read last, and how many entities the shadow had there."""

    def of(self, joined: Snapshot, limits: Limits | None, late: AbstractSet[str]) -> Shadow:
        """What it would do now."""
        if limits is None:
            return self._unknown(joined)
        grouping = self._followed(joined.shown.layout, limits)
        answers = _answers(grouping, joined.shown, late)
        evaluated, throttled, unevaluated = _counted(grouping, answers)
        self._measured |= {pool for pool, number in evaluated.items() if number} | {pool[:2] for pool in unevaluated}
        places = _places(joined, limits, grouping.rules, self._measured)
        for kind, broker in places:
            if not grouping.enforced[kind].enabled:
                reason = UnevaluatedReason.MUTATION if kind is _MUTATION else UnevaluatedReason.UNMEASURED
                unevaluated[kind, broker, reason] += len(grouping.rules[kind])
        unevaluated |= self._absent(joined, places, evaluated, unevaluated)
        unclear = {pool[:2] for pool in unevaluated}
        known = [pool for pool in places if evaluated[pool] or pool not in unclear]
        return Shadow(
            name=self._candidate.name,
            entities=self._nearest(grouping, answers),
            evaluated={pool: evaluated[pool] for pool in known},
            throttled={pool: throttled[pool] for pool in known},
            unevaluated={key: unevaluated[key] for key in sorted(unevaluated, key=_in_order)},
        )

    def _followed(self, layout: Layout, limits: Limits) -> Grouping:
        """The entities under the rules of now, resolved again when any of these has changed."""
        grouping = self._grouping
        if grouping is None or grouping.crowded or not alike(limits, self._limits):
            candidate = self._candidate
            if not candidate.based:
                candidate = candidate.over(QuotaSet(limits.quotas()))
            grouping = self._grouping = Grouping(candidate.tables(), limits, candidate.windows, self._shows)
            self._shown, self._measured = np.empty(0, np.bool_), set()
        self._limits = limits
        grouping.follow(layout)
        return grouping

    def _absent(
        self, joined: Snapshot, places: Iterable[Pool], evaluated: Counter[Pool], unevaluated: Counter[_Unknown]
    ) -> Counter[_Unknown]:
        """Counts of what brokers had that are not read now."""
        taken_at, read = joined.taken_at, {broker for _, broker in places}
        away = {
            pool: (at, count)
            for pool, (at, count) in self._last.items()
            if pool[1] not in read and abs(taken_at - at) <= _AWAY_SECONDS
        }
        counts = evaluated.copy()
        for (kind, broker, _), count in unevaluated.items():
            counts[kind, broker] += count
        self._last = away | {pool: (taken_at, counts[pool]) for pool in places}
        return Counter({(*pool, UnevaluatedReason.ABSENT): max(1, count) for pool, (_, count) in away.items()})

    def _nearest(self, grouping: Grouping, answers: _Answers) -> tuple[EntityUsage, ...]:
        """Those that are shown one by one."""
        rank = answers.ratios + (answers.throttle_ms > 0) * _THROTTLED
        rank[: len(self._shown)][self._shown] *= _KEEP
        able = np.flatnonzero((answers.codes == 0) & ~grouping.hidden)
        if len(able) > self._most:
            able = able[np.argpartition(-rank[able], self._most)[: self._most]]
        self._shown = np.zeros(len(rank), np.bool_)
        self._shown[able] = True
        order = np.lexsort((-answers.ratios[able], -answers.throttle_ms[able]))
        return tuple(
            EntityUsage(
                entity=grouping.entities[number],
                usage=float(answers.usages[number]),
                throttle_time_seconds=float(answers.throttle_ms[number]) / 1000,
            )
            for number in able[order].tolist()
        )

    def _unknown(self, joined: Snapshot) -> Shadow:
        """Nothing is known without the configured quotas."""
        tables = self._candidate.tables()
        rows = Counter((entity.quota_type, entity.broker) for entity in joined.shown.layout.entities)
        unknown: dict[_Unknown, int] = {
            (kind, node.broker, UnevaluatedReason.LIMITS_UNKNOWN): max(1, rows[kind, node.broker])
            for kind in TYPES
            for node in joined.nodes
            if tables[kind].enabled or not self._candidate.based
        }
        return Shadow(name=self._candidate.name, unevaluated=unknown)


class _Answers(NamedTuple):
    """Of each entity of a grouping."""

    codes: NDArray[np.int8]
    """0 where the answer is known, else 1 + the place of the reason, -1 for an entity that is not there."""
    usages: Floats
    """Sums of what is measured."""
    ratios: Floats
    """Usage / limit."""
    throttle_ms: Floats
    """Kafka's throttle time, 0 within the limit."""


def _answers(grouping: Grouping, columns: Columns, late: AbstractSet[str]) -> _Answers:
    """
    What Kafka would answer each entity now.

    A rate is violated above its bound, and the throttle is (rate - bound) / bound x window (`ClientQuotaManager`, `QuotaUtils`): of
    request time one window at most, of bytes what fits into 31 bits, as since 4.4. The window is the one that is configured; a broker's
    own at an instant is up to one sample shorter or longer.
    """
    count, rows, of_row = len(grouping.entities), grouping.members, grouping.of_members
    limits, pools = grouping.limits, grouping.pool_of
    usages = np.bincount(of_row, columns.usage[rows], count).astype(np.float64)
    with np.errstate(all="ignore"):
        ratios = usages / limits
        times = np.floor((usages - limits) / limits * grouping.windows + 0.5)
        # NaN, of an infinite limit or of no usage of one of 0, is 0
        throttle_ms = np.minimum(np.fmax(times, 0.0), grouping.longest)
        strict = rows[grouping.stricter]
        delays = columns.throttle_time[strict]
        at_limit = columns.usage[strict] >= columns.layout.limits[strict]
        held = (delays > 0) | (np.isnan(delays) & at_limit)
        held &= columns.causes[strict] != _NOT_ITS_OWN
    codes = np.zeros(count, np.int8)
    codes[of_row[grouping.stricter[held]]] = _CODES[UnevaluatedReason.CENSORED]
    codes[np.isnan(usages)] = _CODES[UnevaluatedReason.ABSENT]
    mutating = np.flatnonzero([kind is _MUTATION for kind, _ in grouping.pools])
    mutations = np.isin(pools, mutating)
    if mutations.any():
        tokens = np.full(count, np.nan)
        tokens[of_row] = columns.tokens[rows]
        with np.errstate(all="ignore"):
            times = np.floor(-tokens[mutations] / limits[mutations] * 1000 + 0.5)
        throttle_ms[mutations] = np.clip(np.fmax(times, 0.0), 0.0, LONG_MAX)
        codes[mutations & np.isnan(tokens)] = _CODES[UnevaluatedReason.ABSENT]
        codes[mutations & ~grouping.kept] = _CODES[UnevaluatedReason.MUTATION]
    codes[grouping.unclear] = _CODES[UnevaluatedReason.FINER]
    old = np.flatnonzero([broker in late for _, broker in grouping.pools])
    codes[np.isin(pools, old)] = _CODES[UnevaluatedReason.STALE]
    codes[pools < 0] = -1
    return _Answers(codes, usages, ratios, throttle_ms)


def _counted(grouping: Grouping, answers: _Answers) -> tuple[Counter[Pool], Counter[Pool], Counter[_Unknown]]:
    """The entities by quota type and broker: those evaluated, of these those throttled, and the others by reason."""
    pools, codes = grouping.pool_of, answers.codes
    width, count = 1 + len(_REASONS), len(grouping.pools)
    throttled = np.bincount(pools[(codes == 0) & (answers.throttle_ms > 0)], minlength=count)
    numbers = np.bincount((pools * width + codes)[codes >= 0], minlength=count * width).reshape(count, width)
    numbers[:, _CODES[UnevaluatedReason.FINER]] += np.bincount(grouping.divided, minlength=count)
    unknown = Counter[_Unknown]()
    for pool, place in np.argwhere(numbers[:, 1:]).tolist():
        unknown[*grouping.pools[pool], _REASONS[place]] = int(numbers[pool, 1 + place])
    evaluated = dict(zip(grouping.pools, numbers[:, 0].tolist(), strict=True))
    return Counter(evaluated), Counter(dict(zip(grouping.pools, throttled.tolist(), strict=True))), unknown


def _places(
    joined: Snapshot, limits: Limits, rules: Mapping[QuotaType, RuleTable], measured: AbstractSet[Pool]
) -> Sequence[Pool]:
    """Where the shadow has rules: quota types with the nodes that enforce them. Settings are those of brokers, not of mere controllers."""
    nodes = {node.broker for node in joined.nodes}
    leads = {node.broker for node in joined.nodes if node.active_controller}
    brokers = nodes & limits.nodes.keys()
    found = {pool for pool in measured if pool[1] in nodes}
    for kind in TYPES:
        if rules[kind].enabled:
            enforcing = leads if kind is _MUTATION else brokers
            found |= {(kind, node) for node in enforcing or nodes}
    return sorted(found, key=_in_order)


def _in_order(key: tuple[QuotaType, str, *tuple[str, ...]]) -> tuple[object, ...]:
    return TYPES.index(key[0]), node_order(key[1]), key[2:]
