"""Evaluates shadows on one snapshot after the other, from the rates that the brokers measure: docs/shadow.md says what can be known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType
from quotascope.quotas import InvalidQuotas, QuotaSet, named
from quotascope.quotas.candidates import Candidate, read_candidates

from ..errors import ConfigError
from ..join.limiting import alike, deciding
from ..limits import Limits
from ..snapshot import (
    CAUSES,
    TYPES,
    Columns,
    EntityUsage,
    Floats,
    Layout,
    Shadow,
    Snapshot,
    ThrottleCause,
)
from ..snapshot.layout import node_order
from .grouping import Grouping, Mask, Pool

_MOST_SHADOWS: Final = 10
_KEEP: Final = 2.0
"""An entity that is shown stays so unless another one has more than this times its utilization: series do not come and go."""
_THROTTLED: Final = 1e12
"""What a throttle counts beside a utilization."""
_AWAY_SECONDS: Final = 3600.0
"""How long the entities of a broker that is not read count as unknown."""
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


_REASONS: Final = tuple(UnevaluatedReason)


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
        if not self._each:
            return ()
        callback_seen = bool(joined.callbacks.labels)
        limits = deciding(joined.limits, callback_seen=callback_seen)
        return tuple(each.of(joined, limits, late) for each in self._each)


class _Evaluation:
    """One shadow."""

    def __init__(self, candidate: Candidate, most: int, shows: Callable[[str, str], bool]) -> None:
        self._candidate, self._most, self._shows = candidate, most, shows
        self._limits: Limits | None = None
        self._grouping: Grouping | None = None
        self._shown: Mask = np.empty(0, np.bool_)
        self._last: dict[str, tuple[float, Counter[QuotaType]]] = {}
        """When each broker was read last, and how many entities the shadow had on it."""

    def of(self, joined: Snapshot, limits: Limits | None, late: AbstractSet[str]) -> Shadow:
        """What it would do now."""
        if limits is None:
            return self._unknown(joined)
        grouping = self._followed(joined.shown.layout, limits)
        answers = _answers(grouping, joined.shown, late)
        evaluated, throttled, unevaluated = _counted(grouping, answers)
        places = _places(joined, limits, grouping)
        for pool in places:
            if not grouping.enforced[pool[0]].enabled:
                reason = UnevaluatedReason.MUTATION if pool[0] is _MUTATION else UnevaluatedReason.UNMEASURED
                unevaluated[*pool, reason] += len(grouping.rules[pool[0]])
        self._note_absent(joined, places, evaluated, unevaluated)
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
            rules, windows = candidate.tables(), candidate.windows
            grouping = Grouping(rules, limits, windows, self._shows)
            self._grouping, self._shown = grouping, np.empty(0, np.bool_)
        self._limits = limits
        grouping.follow(layout)
        return grouping

    def _note_absent(
        self,
        joined: Snapshot,
        places: Sequence[Pool],
        evaluated: Counter[Pool],
        unevaluated: Counter[tuple[QuotaType, str, str]],
    ) -> None:
        """Count what brokers had that are not read now."""
        now = {broker: Counter[QuotaType]() for _, broker in places}
        for kind, broker in places:
            now[broker][kind] = evaluated[kind, broker]
        for (kind, broker, _), count in unevaluated.items():
            if broker in now:
                now[broker][kind] += count
        self._last |= {broker: (joined.taken_at, counts) for broker, counts in now.items()}
        for broker, (at, counts) in tuple(self._last.items()):
            if abs(joined.taken_at - at) > _AWAY_SECONDS:
                del self._last[broker]
            elif broker not in now:
                for kind, count in counts.items():
                    unevaluated[kind, broker, UnevaluatedReason.ABSENT] = max(1, count)

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
        entities = joined.shown.layout.entities
        rows = Counter((entity.quota_type, entity.broker) for entity in entities)
        unknown: dict[tuple[QuotaType, str, str], int] = {
            (kind, node.broker, UnevaluatedReason.LIMITS_UNKNOWN): max(1, rows[kind, node.broker])
            for kind in TYPES
            for node in joined.nodes
            if tables[kind].enabled or not self._candidate.based
        }  # fmt: skip
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
    limits = grouping.limits
    usages = np.bincount(of_row, columns.usage[rows], count).astype(np.float64)
    with np.errstate(all="ignore"):
        ratios = usages / limits
        throttle_ms = np.zeros(count)
        over = np.flatnonzero(usages > limits)
        excess = (usages - limits)[over] / limits[over]
        times = np.floor(excess * grouping.windows[over] + 0.5)
        throttle_ms[over] = np.minimum(times, grouping.longest[over])
        strict = rows[grouping.stricter]
        delays, usage = columns.throttle_time[strict], columns.usage[strict]
        at_limit = usage >= columns.layout.limits[strict]
        held = (delays > 0) | (np.isnan(delays) & at_limit)
        held &= columns.causes[strict] != _NOT_ITS_OWN
    buckets = np.array([kind is _MUTATION for kind, _ in grouping.pools], np.bool_)
    old = np.array([broker in late for _, broker in grouping.pools], np.bool_)
    codes = np.zeros(count, np.int8)
    codes[of_row[grouping.stricter[held]]] = _code(UnevaluatedReason.CENSORED)
    codes[np.isnan(usages)] = _code(UnevaluatedReason.ABSENT)
    if buckets.any():
        mutations = buckets[grouping.pool_of]
        tokens = np.full(count, np.nan)
        tokens[of_row] = columns.tokens[rows]
        times = np.floor(-tokens[mutations] / limits[mutations] * 1000 + 0.5)
        throttle_ms[mutations] = np.maximum(times, 0.0)
        codes[mutations & np.isnan(tokens)] = _code(UnevaluatedReason.ABSENT)
        codes[mutations & ~grouping.kept] = _code(UnevaluatedReason.MUTATION)
    codes[grouping.unclear] = _code(UnevaluatedReason.FINER)
    if old.any():
        codes[old[grouping.pool_of]] = _code(UnevaluatedReason.STALE)
    codes[grouping.gone] = -1
    return _Answers(codes, usages, ratios, throttle_ms)


def _code(reason: UnevaluatedReason) -> int:
    return 1 + _REASONS.index(reason)


def _counted(
    grouping: Grouping, answers: _Answers
) -> tuple[Counter[Pool], Counter[Pool], Counter[tuple[QuotaType, str, str]]]:
    """The entities by quota type and broker: those evaluated, of these those throttled, and the others by reason."""
    pools, codes = grouping.pool_of, answers.codes
    known = codes == 0
    evaluated, throttled = Counter[Pool](), Counter[Pool]()
    for counts, where in (
        (evaluated, known),
        (throttled, known & (answers.throttle_ms > 0)),
    ):
        for pool, number in enumerate(np.bincount(pools[where]).tolist()):
            if number:
                counts[grouping.pools[pool]] = number
    unknown = Counter[tuple[QuotaType, str, str]]()
    width = 1 + len(_REASONS)
    numbers = np.bincount(pools[codes > 0] * width + codes[codes > 0])
    for place in np.flatnonzero(numbers).tolist():
        reason = _REASONS[place % width - 1]
        unknown[*grouping.pools[place // width], reason] = int(numbers[place])
    for pool, number in enumerate(np.bincount(grouping.divided).tolist()):
        if number:
            unknown[*grouping.pools[pool], UnevaluatedReason.FINER] += number
    return evaluated, throttled, unknown


def _places(joined: Snapshot, limits: Limits, grouping: Grouping) -> Sequence[Pool]:
    """Where the shadow has rules: quota types with the nodes that enforce them. Settings are those of brokers, not of mere controllers."""
    nodes = {node.broker for node in joined.nodes}
    leads = {node.broker for node in joined.nodes if node.active_controller}
    brokers = nodes & limits.nodes.keys()
    found = {pool for pool in grouping.pools if pool[1] in nodes}
    for kind in TYPES:
        if grouping.rules[kind].enabled:
            enforcing = leads if kind is _MUTATION else brokers
            found |= {(kind, node) for node in enforcing or nodes}
    return sorted(found, key=_in_order)


def _in_order(key: tuple[QuotaType, str, *tuple[str, ...]]) -> tuple[object, ...]:
    return TYPES.index(key[0]), node_order(key[1]), key[2:]
