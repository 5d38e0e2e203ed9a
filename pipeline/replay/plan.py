"""
Plan of a replay: the rules that limit the entities of a frame, and the requests that share a sensor.

Which rule decides for an entity depends on which entities have rules, not on their values: candidates that differ in
values only are resolved once, and compared with the same measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import Level, QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.quotas.candidates import Candidate

from ..columns import GroupKey, array
from .algorithms import Buckets, SensorRings, Spreads, new_buckets, new_spreads, rings_of
from .compiled import Codes, Floats, Ints
from .frame import (
    KINDS,
    MUTATION,
    Entities,
    Frame,
    TableSizes,
    dense,
    entities_of,
    frame_of,
    in_order,
    needed,
)

TYPES = dict(enumerate(QuotaType))
"""Quota types by the numbers of the kernels."""
MEASURED = tuple(number for number, kind in TYPES.items() if not kind.token_bucket)
"""Quota types with a windowed rate."""
_UNLIMITED = 2.0**63
LEVELS = tuple(Level)
"""Levels of rules, by the numbers of `ResolvedRules.levels`."""


class Mode(Enum):
    """
    Reaction of arrivals to throttles.

    Both charge what a broker charges, at the time of the decision, and the network thread's time at completion.
    """

    OPEN_LOOP = "open_loop"
    """
    Every request arrives and is answered as logged; only the throttle is the candidate's.

    Clients do not slow down, so throttles grow while the excess lasts: too many under a lower limit than the log's, and
    too few under a higher one for clients that were throttled while logged. What a windowed rate measures does not
    depend on the limit. A Fetch that the log shows as answered empty was charged and given back,
    here as well; one that was answered keeps its charge. A mutation that the log shows as refused is checked and not
    charged, except for the partitions that it was granted before: its retry is in the log, too.
    """

    CLOSED_LOOP = "closed_loop"
    """
    A throttled connection's next request comes later, as behind a muted channel (KIP-219).

    The gap to the next request of a connection is max(think time, mute + reaction). The think time is the logged gap,
    less the throttle that was reported in the log; the reaction is the shortest time that a connection took after a
    reported throttle, or 1 ms. Requests keep their size and order, and no request is dropped: a delayed request delays
    all that follow it. A Fetch that is throttled is answered empty, given back, and sent again when the mute is over; a
    refused mutation likewise (the Admin client's default). Repeated requests are measured, but their thread time is not
    charged again: the log does not show what a repetition takes, which is mostly little. A Fetch above what all whole
    windows allow is fetched in parts of that size, as brokers cut it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Settings of a replay beside history and candidates."""

    per_broker: bool = False
    """True if results are by broker instead of sums."""

    drain_ms: int = 3_600_000
    """Time in ms for which a closed loop may continue after an entity's last logged request on a broker."""

    release: KafkaRelease = NEWEST_RELEASE
    """Release of the controller, and of the brokers that are not named below."""

    releases: Mapping[str, KafkaRelease] = field(default_factory=dict)
    """Releases of brokers that differ from it, by name."""

    rows_at_once: int = 1 << 20
    """
    Approximate number of requests that are replayed at once, in 0.65 to 1 kB of memory each.

    A larger group is replayed as one.
    """

    cells_at_once: int = 1 << 18
    """
    Approximate number of clients times candidates that are replayed at once, in 1 kB of memory each.

    A larger group is replayed as one.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedRules:
    """Rules of one quota type that limit entities, whatever their values."""

    tags: Codes
    """Number of the tags that an entity is measured under, by entity; negative if no rule limits it."""
    rules: Codes
    """Number of the deciding rule by entity, negative for none."""
    deciding: list[QuotaEntity]
    """Rules by number."""
    names: list[tuple[str, str]]
    """User and client id of tags by number, "" for an absent one."""

    def only(self, entities: Ints | Codes) -> ResolvedRules:
        """Return the same for some of the entities."""
        return ResolvedRules(
            tags=self.tags[entities], rules=self.rules[entities], deciding=self.deciding, names=self.names
        )

    def limits(self, table: RuleTable) -> Floats:
        """Return the limit of one candidate by entity, infinite for unlimited."""
        bounds = np.array([*(table[rule] for rule in self.deciding), np.inf])
        limits: Floats = bounds[self.rules]
        return limits

    def levels(self) -> Codes:
        """Return the place of the rule's level among `LEVELS` by entity."""
        deciding = (*(rule.level for rule in self.deciding), Level.NONE)
        places = np.array([LEVELS.index(level) for level in deciding], np.int32)
        levels: Codes = places[self.rules]
        return levels


class CandidateRules:
    """The rules of all candidates; those with rules for the same entities are resolved once."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        self.tables: list[dict[int, RuleTable]] = []
        """Rules by candidate and kind."""
        self.resolution_of: list[dict[int, int]] = []
        """Place of the resolution among those of `resolve`, by candidate and kind."""
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
        """True if a rule for client ids alone lets users share a limit."""
        return any(rule.user is None for entities in self._ruled for rule in entities)

    @property
    def key(self) -> GroupKey:
        """Key of groups of requests that share no limit with those of others."""
        if self.across_users:
            return GroupKey(columns=("user", "client_id"), numbers=self._numbers)
        return GroupKey(columns=("user",))

    def _numbers(self, clients: pa.Table) -> Sequence[int]:
        users, client_ids = (clients[name].combine_chunks() for name in ("user", "client_id"))
        numbers: list[int] = groups_of(
            self.resolve(Entities(users=users, client_ids=client_ids)), len(clients)
        ).tolist()
        return numbers

    @cached_property
    def ranks(self) -> Codes:
        """
        Numbers of candidates in the order of their limits' mean logarithms, the strictest first in a grid.

        Any order is right.
        """
        limits = [[bound for table in tables.values() for bound in table.values()] for tables in self.tables]
        means = [np.log1p(np.minimum(candidate_limits or [np.inf], _UNLIMITED)).mean() for candidate_limits in limits]
        return np.argsort(means, kind="stable").astype(np.int32)

    def resolve(self, entities: Entities) -> list[ResolvedRules]:
        """Return the rules that limit entities by Kafka's precedence, for each set of entities that has rules."""
        names = entities.names()
        resolved: list[ResolvedRules] = []
        for _, table in self._ruled.values():
            tags: dict[tuple[str, str], tuple[int, int]] = {}
            deciding: dict[QuotaEntity, int] = {}
            places = np.full((len(names), 2), -1, np.int32)
            for number, (user, client_id) in enumerate(names if table.enabled else ()):
                tag = table.metric_tags(user, client_id)
                if tag not in tags:
                    decision = table.limit(*tag)
                    rule = None if decision is None else decision.entity
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

    Return for each entity the smallest number of an entity in its group (connected components of all resolutions).
    """
    roots = list(range(entities))

    def root(entity: int) -> int:
        while roots[entity] != entity:
            roots[entity] = roots[roots[entity]]
            entity = roots[entity]
        return entity

    for rules in resolved:
        first_of_tag: dict[int, int] = {}
        for entity, tag in enumerate(rules.tags.tolist()):
            if tag >= 0:
                root_of_entity, root_of_tag = root(entity), root(first_of_tag.setdefault(tag, entity))
                roots[max(root_of_entity, root_of_tag)] = min(root_of_entity, root_of_tag)
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
    """Limit by candidate, kind and pair; infinite for unlimited."""
    slots: dict[_Slot, int]
    """Tables of measurements by kind, resolution, and number and length in ms of the windows."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Candidates in their order."""
        return self.rules.candidates

    @property
    def steps(self) -> int:
        """Requests times candidates, the approximate number of steps of a replay."""
        return len(self.frame.groups) * len(self.candidates)

    def slot(self, candidate: int, kind: int) -> int:
        """Return the table of measurements that a candidate compares with."""
        return self.slots[_slot(self.rules, candidate, kind)]

    def resolution(self, candidate: int, kind: int) -> ResolvedRules:
        """Return the rules of a candidate for one quota type."""
        return self.resolved[self.rules.resolution_of[candidate][kind]]

    def sensors(self, resolved: ResolvedRules, limited: NDArray[np.bool_]) -> Codes:
        """
        Return the number of the sensor by pair, one for each tags on each broker.

        It is negative if no candidate limits the pair.
        """
        frame = self.frame
        tags = resolved.tags[frame.pair_entities].astype(np.int64)
        _, sensors = dense(tags * max(1, len(frame.brokers)) + frame.pair_brokers)
        numbers: Codes = np.where(limited & (tags >= 0), sensors, -1).astype(np.int32)
        return numbers

    def sizes(self) -> TableSizes:
        """Return the sizes of the kernels' tables; the number of mutations is not known here."""
        return TableSizes(
            candidates=len(self.candidates),
            pairs=self.frame.pairs,
            connections=self.frame.connections,
            slots=max(1, len(self.slots)),
            mutations=0,
        )

    @property
    def releases(self) -> list[KafkaRelease]:
        """Release by broker of the frame."""
        settings = self.settings
        return [settings.releases.get(str(name), settings.release) for name in self.frame.brokers.to_pylist()]

    @property
    def rings(self) -> SensorRings:
        """Rings of the sensors by broker."""
        return rings_of(self.releases)

    def stops(self) -> Ints:
        """Return by pair the time where throttle times of rates stop before they are cut to 32 bits."""
        longest = np.array([release.longest_rate_ms for release in self.releases], np.int64)
        stops: Ints = longest[self.frame.pair_brokers]
        return stops


def plans(history: pa.Table, candidates: Sequence[Candidate], settings: ReplaySettings) -> Iterator[ReplayPlan]:
    """
    Yield the plans for the parts of a history.

    Each is complete in its groups, its requests in the order of groups and times.
    """
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
        yield plan_of(frame, rules, [rules_of_set.only(numbers) for rules_of_set in resolved], settings)


def _cuts(rows: Ints, entities: Ints, most_rows: int, most_entities: int) -> Iterator[tuple[int, int]]:
    """
    Yield begin and end of parts of rows, given by their groups in order.

    A part exceeds neither number unless it is one group.
    """
    borders = [*np.flatnonzero(rows[1:] != rows[:-1]) + 1, len(rows)]
    counts = np.unique(entities, return_counts=True)[1]
    start = stop = row_count = 0
    for border, count in zip(borders, counts.tolist(), strict=True):
        full = border - start > most_rows or row_count + count > most_entities
        if full and stop > start:
            yield start, stop
            start, row_count = stop, 0
        stop = int(border)
        row_count += count
    yield start, stop


def plan_of(frame: Frame, rules: CandidateRules, resolved: list[ResolvedRules], settings: ReplaySettings) -> ReplayPlan:
    """Return the plan for a frame; the rules are resolved for its entities."""
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
    """
    Return the time for which a candidate's sensors and buckets depend on a request: all windows together.

    After it a bucket at zero is full again.
    """
    return max(windows.samples * windows.window_ms for windows in (candidate.windows, candidate.controller_windows))


def buckets_of(plan: ReplayPlan, candidates: Sequence[int]) -> tuple[Codes, Buckets, Spreads]:
    """Return the number of the bucket by candidate and entity, negative for none; and unused buckets and rates."""
    chosen = [plan.candidates[candidate].controller_windows for candidate in candidates]
    numbers = np.full((len(candidates), len(plan.frame.entities.users)), -1, np.int32)
    limits: list[Floats] = [np.zeros(0)]
    samples: list[Ints] = [np.zeros(0, np.int64)]
    windows: list[Ints] = [np.zeros(0, np.int64)]
    count = 0
    for place, candidate in enumerate(candidates):
        resolved = plan.resolution(candidate, MUTATION)
        enforced = plan.settings.release.enforces_controller_mutations
        limited = np.flatnonzero((resolved.tags >= 0) & enforced)
        tags, places = np.unique(resolved.tags[limited], return_inverse=True)
        numbers[place, limited] = places + count
        bounds = np.zeros(len(tags))
        by_entity = resolved.limits(plan.rules.tables[candidate][MUTATION])
        bounds[places] = by_entity[limited]
        limits.append(bounds)
        samples.append(np.full(len(tags), chosen[place].samples))
        windows.append(np.full(len(tags), chosen[place].window_ms))
        count += len(tags)
    settings = np.concatenate(limits), np.concatenate(samples), np.concatenate(windows)
    most_samples = max((windows_of_one.samples for windows_of_one in chosen), default=0)
    return numbers.ravel(), new_buckets(*settings), new_spreads(*settings, most_samples)
