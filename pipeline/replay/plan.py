"""
What the candidates mean for a frame: which rule limits which entity, and which requests share a sensor.

Which rule decides for an entity depends on which entities have rules, not on their values: candidates that differ in values only are
resolved once, and compared with the same measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.metrics import NEWEST_RELEASE, KafkaRelease, Level, QuotaEntity, QuotaType, RuleTable
from quotascope.quotas.candidates import Candidate

from ..columns import array
from .algorithms import Buckets, Spreads, new_buckets, new_spreads
from .compiled import Codes, Floats, Ints
from .frame import (
    FETCH,
    KINDS,
    MUTATION,
    PRODUCE,
    REQUEST,
    Entities,
    Frame,
    TableSizes,
    dense,
    entities_of,
    frame_of,
    in_order,
    needed,
)

TYPES = {
    PRODUCE: QuotaType.PRODUCE,
    FETCH: QuotaType.FETCH,
    REQUEST: QuotaType.REQUEST,
    MUTATION: QuotaType.CONTROLLER_MUTATION,
}
"""The quota types by the numbers of the kernels."""
MEASURED = (PRODUCE, FETCH, REQUEST)
"""The quota types with a windowed rate."""
_UNLIMITED = 2.0**63
LEVELS = tuple(Level)
"""The levels of rules, by the numbers of `ResolvedRules.levels`."""


class Mode(Enum):
    """
    How arrivals react to throttles.

    Both charge what a broker charges, at the time of the decision, and the network thread's time at completion.
    """

    OPEN_LOOP = "open_loop"
    """
    Every request arrives and is answered as logged; only the throttle is the candidate's.

    Clients do not slow down, so the figures are upper bounds: throttles grow while the excess lasts. What a windowed rate measures
    does not depend on the limit. A Fetch that the log shows as answered empty was charged and given back, here as well; one that was
    answered keeps its charge. A mutation that the log shows as refused is checked and not charged, except for the partitions that it was
    granted before: its retry is in the log, too.
    """

    CLOSED_LOOP = "closed_loop"
    """
    A throttled connection's next request comes later, as behind a muted channel (KIP-219).

    The gap to the next request of a connection is max(think time, mute + reaction). The think time is the logged gap, less the throttle
    that was reported in the log; the reaction is the shortest time that a connection took after a reported throttle, or 1 ms. Requests
    keep their size and order, and no request is dropped: a delayed request delays all that follow it. A Fetch that is throttled is
    answered empty, given back, and sent again when the mute is over; a refused mutation likewise (the Admin client's default). Repeated
    requests are measured, but their thread time is not charged again: the log does not show what a repetition takes, which is mostly
    little. A Fetch above what all whole windows allow is fetched in parts of that size, as brokers cut it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What a replay takes beside history and candidates."""

    per_broker: bool = False
    """Whether results are kept apart by broker rather than added up."""

    drain_ms: int = 3_600_000
    """Closed loop: how long after its last logged request on a broker the replay of an entity may continue, in ms."""

    release: KafkaRelease = NEWEST_RELEASE
    """Of the brokers: how long throttles above 24.8 days are."""

    rows_at_once: int = 1 << 20
    """About how many requests are replayed at once, in 0.65 to 1 kB of memory each; more where a group has more."""

    cells_at_once: int = 1 << 18
    """About how many clients times candidates are replayed at once, in 1 kB of memory each; more where a group has more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedRules:
    """Which rule of one quota type limits which entity, whatever its value."""

    tags: Codes
    """By entity: number of the tags that it is measured under, negative where no rule limits it."""
    rules: Codes
    """By entity: number of the rule that decides, negative for none."""
    deciding: list[QuotaEntity]
    """The rules."""
    names: list[tuple[str, str]]
    """By number of tags: the user and the client id that they name, "" for an absent one."""

    def only(self, entities: Ints | Codes) -> ResolvedRules:
        """The same for some of the entities."""
        return ResolvedRules(
            tags=self.tags[entities], rules=self.rules[entities], deciding=self.deciding, names=self.names
        )

    def limits(self, table: RuleTable) -> Floats:
        """By entity: what the values of one candidate allow, infinite for unlimited."""
        bounds = np.array([*(table[rule] for rule in self.deciding), np.inf])
        limits: Floats = bounds[self.rules]
        return limits

    def levels(self) -> Codes:
        """By entity: the place of its rule's level among `LEVELS`."""
        deciding = (*(rule.level for rule in self.deciding), Level.NONE)
        places = np.array([LEVELS.index(level) for level in deciding], np.int32)
        levels: Codes = places[self.rules]
        return levels


class CandidateRules:
    """The rules of all candidates; those with rules for the same entities are resolved once."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        self.tables: list[dict[int, RuleTable]] = []
        """By candidate and kind."""
        self.resolution_of: list[dict[int, int]] = []
        """By candidate and kind: its place among what `resolve` returns."""
        self._ruled: dict[frozenset[QuotaEntity], tuple[int, RuleTable]] = {}
        for candidate in candidates:
            by_type = candidate.tables()
            tables = {kind: by_type[quota_type] for kind, quota_type in TYPES.items()}
            self.tables.append(tables)
            self.resolution_of.append(
                {
                    kind: self._ruled.setdefault(frozenset(table), (len(self._ruled), table))[0]
                    for kind, table in tables.items()
                }
            )

    @property
    def across_users(self) -> bool:
        """Whether a rule for client ids alone lets users share a limit."""
        return any(rule.user is None for entities in self._ruled for rule in entities)

    @cached_property
    def ranks(self) -> Codes:
        """The candidates by the mean of their limits' logarithms: that puts a grid in its order, the strictest first, and any order does."""
        limits = [[bound for table in tables.values() for bound in table.values()] for tables in self.tables]
        means = [np.log1p(np.minimum(each or [np.inf], _UNLIMITED)).mean() for each in limits]
        return np.argsort(means, kind="stable").astype(np.int32)

    def resolve(self, entities: Entities) -> list[ResolvedRules]:
        """Which of the rules limit these entities by Kafka's precedence, for each set of entities that has rules."""
        names = entities.names()
        resolved: list[ResolvedRules] = []
        for _, table in self._ruled.values():
            tags: dict[tuple[str, str], tuple[int, int]] = {}
            deciding: dict[QuotaEntity, int] = {}
            places = np.full((len(names), 2), -1, np.int32)
            for number, (user, client_id) in enumerate(names if table.enabled else ()):
                tag = table.metric_tags(user, client_id)
                if tag not in tags:
                    found = table.limit(*tag)
                    rule = None if found is None else found.entity
                    place = -1 if rule is None else deciding.setdefault(rule, len(deciding))
                    tags[tag] = len(tags), place
                if tags[tag][1] >= 0:
                    places[number] = tags[tag]
            resolved.append(
                ResolvedRules(tags=places[:, 0], rules=places[:, 1], deciding=list(deciding), names=list(tags))
            )
        return resolved


def groups_of(resolved: Sequence[ResolvedRules], entities: int) -> Ints:
    """
    Group the entities that can meet in a sensor under some candidate: a group is replayed together.

    Returns, by entity, the smallest number of an entity of its group (connected components over all resolutions).
    """
    roots = list(range(entities))

    def root(entity: int) -> int:
        while roots[entity] != entity:
            roots[entity] = roots[roots[entity]]
            entity = roots[entity]
        return entity

    for each in resolved:
        first: dict[int, int] = {}
        for entity, tag in enumerate(each.tags.tolist()):
            if tag >= 0:
                one, other = root(entity), root(first.setdefault(tag, entity))
                roots[max(one, other)] = min(one, other)
    return np.array([root(entity) for entity in range(entities)], np.int64)


_Slot = tuple[int, int, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayPlan:
    """A frame, and the candidates resolved for it."""

    frame: Frame
    rules: CandidateRules
    resolved: list[ResolvedRules]
    settings: ReplaySettings
    limits: Floats
    """By candidate, kind and pair; infinite for unlimited."""
    slots: dict[_Slot, int]
    """The tables of measurements: by kind, resolution, and number and length in ms of the windows."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """In their order."""
        return self.rules.candidates

    @property
    def steps(self) -> int:
        """Requests times candidates: about how many steps a replay takes."""
        return len(self.frame.groups) * len(self.candidates)

    def slot(self, candidate: int, kind: int) -> int:
        """Which table of measurements a candidate compares with."""
        return self.slots[_slot(self.rules, candidate, kind)]

    def resolution(self, candidate: int, kind: int) -> ResolvedRules:
        """Which rules of a candidate limit which entities, for one quota type."""
        return self.resolved[self.rules.resolution_of[candidate][kind]]

    def sensors(self, resolved: ResolvedRules, limited: NDArray[np.bool_]) -> Codes:
        """By pair: number of the sensor, one for each tags on each broker; negative where no candidate limits it."""
        frame = self.frame
        tags = resolved.tags[frame.pair_entities].astype(np.int64)
        _, sensors = dense(tags * max(1, len(frame.brokers)) + frame.pair_brokers)
        numbers: Codes = np.where(limited & (tags >= 0), sensors, -1).astype(np.int32)
        return numbers

    def sizes(self) -> TableSizes:
        """The sizes of the kernels' tables; the number of mutations is not known here."""
        return TableSizes(
            candidates=len(self.candidates),
            pairs=self.frame.pairs,
            connections=self.frame.connections,
            slots=max(1, len(self.slots)),
            mutations=0,
            longest_ms=self.settings.release.longest_rate_ms,
        )


def plans(history: pa.Table, candidates: Sequence[Candidate], settings: ReplaySettings) -> Iterator[ReplayPlan]:
    """The plans for the parts of a history: each is complete in its groups, its requests in the order of groups and times."""
    table, rules = needed(history), CandidateRules(candidates)
    if not len(table):
        return
    entities, codes = entities_of(table)
    resolved = rules.resolve(entities)
    groups = groups_of(resolved, len(entities.users))
    order = in_order(table, groups[codes])
    codes = codes[order]
    clients = max(1, settings.cells_at_once // len(rules.candidates))
    for start, stop in _cuts(groups[codes], groups, settings.rows_at_once, clients):
        numbers, local = np.unique(codes[start:stop], return_inverse=True)
        part = table.take(array(order[start:stop]))
        frame = frame_of(part, entities.only(numbers), local.astype(np.int32), groups[codes[start:stop]])
        yield plan_of(frame, rules, [each.only(numbers) for each in resolved], settings)


def _cuts(rows: Ints, entities: Ints, most_rows: int, most_entities: int) -> Iterator[tuple[int, int]]:
    """Where to cut rows, given by their groups in order, so that no piece exceeds either number unless it is one group."""
    borders = [*np.flatnonzero(rows[1:] != rows[:-1]) + 1, len(rows)]
    counts = np.unique(entities, return_counts=True)[1]
    start = stop = held = 0
    for border, count in zip(borders, counts.tolist(), strict=True):
        full = border - start > most_rows or held + count > most_entities
        if full and stop > start:
            yield start, stop
            start, held = stop, 0
        stop = int(border)
        held += count
    yield start, stop


def plan_of(frame: Frame, rules: CandidateRules, resolved: list[ResolvedRules], settings: ReplaySettings) -> ReplayPlan:
    """The plan for a frame; the rules are resolved for its entities."""
    limits = np.full((len(rules.candidates), KINDS, frame.pairs), np.inf)
    slots: dict[_Slot, int] = {}
    for candidate, resolutions in enumerate(rules.resolution_of):
        for kind, number in resolutions.items():
            by_entity = resolved[number].limits(rules.tables[candidate][kind])
            limits[candidate, kind] = by_entity[frame.pair_entities]
            if kind != MUTATION:
                slots.setdefault(_slot(rules, candidate, kind), len(slots))
    return ReplayPlan(frame=frame, rules=rules, resolved=resolved, settings=settings, limits=limits, slots=slots)


def _slot(rules: CandidateRules, candidate: int, kind: int) -> _Slot:
    windows = rules.candidates[candidate].windows
    number = rules.resolution_of[candidate][kind]
    return kind, number, (windows.samples, windows.window_ms)


def memory_ms(candidate: Candidate) -> int:
    """How long a candidate's sensors and buckets know of a request: all windows together, after which a bucket at zero is full again."""
    return max(each.samples * each.window_ms for each in (candidate.windows, candidate.controller_windows))


def buckets_of(plan: ReplayPlan, candidates: Sequence[int]) -> tuple[Codes, Buckets, Spreads]:
    """By candidate and entity the number of its bucket or rate, negative for none; and all of these, unused."""
    chosen = [plan.candidates[candidate].controller_windows for candidate in candidates]
    numbers = np.full((len(candidates), len(plan.frame.entities.users)), -1, np.int32)
    limits: list[Floats] = [np.zeros(0)]
    samples: list[Ints] = [np.zeros(0, np.int64)]
    windows: list[Ints] = [np.zeros(0, np.int64)]
    first = 0
    for place, candidate in enumerate(candidates):
        resolved = plan.resolution(candidate, MUTATION)
        limited = np.flatnonzero(resolved.tags >= 0)
        tags, places = np.unique(resolved.tags[limited], return_inverse=True)
        numbers[place, limited] = places + first
        bounds = np.zeros(len(tags))
        by_entity = resolved.limits(plan.rules.tables[candidate][MUTATION])
        bounds[places] = by_entity[limited]
        limits.append(bounds)
        samples.append(np.full(len(tags), chosen[place].samples))
        windows.append(np.full(len(tags), chosen[place].window_ms))
        first += len(tags)
    given = np.concatenate(limits), np.concatenate(samples), np.concatenate(windows)
    most = max((each.samples for each in chosen), default=0)
    return numbers.ravel(), new_buckets(*given), new_spreads(*given, most)
