"""
Plan of a replay: the rules that limit the entities of a frame, and the requests that share a sensor.

The rule that decides for an entity depends on the entities that have rules, not on the values of the rules. So
candidates that differ in values only are resolved once, and compared with the same measurements.
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
"""Limit that an infinite one counts as when candidates are put in order: its logarithm is finite."""
LEVELS = tuple(Level)
"""Levels of rules, by the numbers of `ResolvedRules.levels`."""


class Mode(Enum):
    """
    Reaction of arrivals to throttles.

    In both modes a request is charged at the time of the broker's decision, and the network thread's time when the
    response has left.
    """

    OPEN_LOOP = "open_loop"
    """
    Every request arrives and is answered as logged. Only the throttle is the candidate's.

    Clients do not slow down, so throttles grow while the excess lasts. Under a lower limit than the log's the replay
    has too many throttles. Under a higher one it has too few, for clients that were throttled while logged. A windowed
    rate does not depend on the limit.

    A Fetch that the log shows as answered empty is charged and given back, as on the broker. A mutation that the log
    shows as refused is checked and not charged, because its retry is in the log. The partitions that it was granted
    before are charged.
    """

    CLOSED_LOOP = "closed_loop"
    """
    The next request of a throttled connection arrives later, as behind a muted channel (KIP-219).

    The gap to the next request of a connection is max(think time, mute + reaction). The think time is the logged gap,
    less the throttle that was reported in the log. The reaction is the shortest time that a connection took after a
    reported throttle, or 1 ms. Requests keep their size and order, and no request is dropped: a delayed request delays
    all later requests of its connection.

    A throttled Fetch is answered empty, given back, and sent again when the mute is over. A refused mutation is sent
    again, too (the Admin client's default). Repeated requests are measured, but their thread time is not charged again:
    the log does not show the thread time of a repetition, which is mostly short. A Fetch that is larger than all whole
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
    """Release of the controller, and of all brokers that `releases` does not name."""

    releases: Mapping[str, KafkaRelease] = field(default_factory=dict)
    """Releases of brokers, by name, where they differ from `release`."""

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
    """The deciding rule of every entity for one quota type. It does not depend on the values of the rules."""

    tags: Codes
    """Index in `names` of the tags under which an entity is measured, by entity; negative if no rule limits it."""
    rules: Codes
    """Index in `deciding` of the deciding rule, by entity; negative if no rule limits it."""
    deciding: list[QuotaEntity]
    """Deciding rules."""
    names: list[tuple[str, str]]
    """Tags as user and client id, "" for an absent one."""

    def only(self, entities: Ints | Codes) -> ResolvedRules:
        """Return the deciding rules of some entities, which are named by their indices."""
        return ResolvedRules(
            tags=self.tags[entities], rules=self.rules[entities], deciding=self.deciding, names=self.names
        )

    def limits(self, table: RuleTable) -> Floats:
        """Return the limit by entity under one candidate, whose rules are `table`; infinite for unlimited."""
        # the index of "no rule" is -1, the last element
        bounds = np.array([*(table[rule] for rule in self.deciding), np.inf])
        limits: Floats = bounds[self.rules]
        return limits

    def levels(self) -> Codes:
        """Return the index in `LEVELS` of the deciding rule's level, by entity."""
        # the index of "no rule" is -1, the last element
        levels = (*(rule.level for rule in self.deciding), Level.NONE)
        level_by_rule = np.array([LEVELS.index(level) for level in levels], np.int32)
        level_by_entity: Codes = level_by_rule[self.rules]
        return level_by_entity


class CandidateRules:
    """
    The rules of all candidates.

    Two tables of rules for the same entities have the same deciding rules, and are resolved once.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        self.tables: list[dict[int, RuleTable]] = []
        """Rules by candidate and kind."""
        self.resolution_of: list[dict[int, int]] = []
        """Index of the resolution in the result of `resolve`, by candidate and kind."""
        self._distinct: dict[frozenset[QuotaEntity], RuleTable] = {}
        """A table of rules for each set of entities that has rules."""
        numbers: dict[frozenset[QuotaEntity], int] = {}
        for candidate in candidates:
            by_type = candidate.tables()
            tables = {kind: by_type[quota_type] for kind, quota_type in TYPES.items()}
            resolutions: dict[int, int] = {}
            for kind, table in tables.items():
                entities = frozenset(table)
                self._distinct.setdefault(entities, table)
                resolutions[kind] = numbers.setdefault(entities, len(numbers))
            self.tables.append(tables)
            self.resolution_of.append(resolutions)

    @property
    def across_users(self) -> bool:
        """True if users may share a limit, because a rule is for client ids alone."""
        return any(rule.user is None for entities in self._distinct for rule in entities)

    @property
    def key(self) -> GroupKey:
        """Key that divides requests into groups; requests of two groups never share a limit."""
        if self.across_users:
            return GroupKey(columns=("user", "client_id"), numbers=self._numbers)
        return GroupKey(columns=("user",))

    def _numbers(self, clients: pa.Table) -> Sequence[int]:
        """Return the number of the group of each client."""
        users, client_ids = (clients[name].combine_chunks() for name in ("user", "client_id"))
        numbers: list[int] = groups_of(
            self.resolve(Entities(users=users, client_ids=client_ids)), len(clients)
        ).tolist()
        return numbers

    @cached_property
    def ranks(self) -> Codes:
        """
        Numbers of the candidates, about from the strictest to the least strict.

        Any order gives the same results. They are in the order of the mean logarithm of their limits.
        """
        limits = [[bound for table in tables.values() for bound in table.values()] for tables in self.tables]
        means = [np.log1p(np.minimum(candidate_limits or [np.inf], _UNLIMITED)).mean() for candidate_limits in limits]
        return np.argsort(means, kind="stable").astype(np.int32)

    def resolve(self, entities: Entities) -> list[ResolvedRules]:
        """Return the deciding rules of entities by Kafka's precedence, for each distinct set of entities with rules."""
        names = entities.names()
        return [_resolved(table, names) for table in self._distinct.values()]


def _resolved(table: RuleTable, names: Sequence[tuple[str, str]]) -> ResolvedRules:
    """Return the deciding rules of entities, which are pairs of user and client id."""
    tag_numbers: dict[tuple[str, str], int] = {}
    rule_numbers: dict[QuotaEntity, int] = {}
    rule_by_tag: list[int] = []
    tags, rules = np.full(len(names), -1, np.int32), np.full(len(names), -1, np.int32)
    for entity, (user, client_id) in enumerate(names if table.enabled else ()):
        pair = table.metric_tags(user, client_id)
        if pair not in tag_numbers:
            tag_numbers[pair] = len(tag_numbers)
            decision = table.limit(*pair)
            rule = None if decision is None else decision.entity
            rule_by_tag.append(-1 if rule is None else rule_numbers.setdefault(rule, len(rule_numbers)))
        tag = tag_numbers[pair]
        if rule_by_tag[tag] >= 0:
            tags[entity], rules[entity] = tag, rule_by_tag[tag]
    return ResolvedRules(tags=tags, rules=rules, deciding=list(rule_numbers), names=list(tag_numbers))


def groups_of(resolved: Sequence[ResolvedRules], entities: int) -> Ints:
    """
    Return the group of each entity: the smallest number of an entity in it.

    Two entities are in one group if some candidate measures them with one sensor, directly or through other entities
    (connected components). A group is replayed as a whole.
    """
    roots = list(range(entities))

    def root(entity: int) -> int:
        """Return the smallest entity of the group so far, and shorten the way to it."""
        while roots[entity] != entity:
            roots[entity] = roots[roots[entity]]
            entity = roots[entity]
        return entity

    for rules in resolved:
        first_of_tag: dict[int, int] = {}
        for entity, tag in enumerate(rules.tags.tolist()):
            if tag >= 0:
                root_of_entity, root_of_tag = root(entity), root(first_of_tag.setdefault(tag, entity))
                # join both groups under the smaller root; nothing changes if they are one group already
                roots[max(root_of_entity, root_of_tag)] = min(root_of_entity, root_of_tag)
    return np.array([root(entity) for entity in range(entities)], np.int64)


_SlotKey = tuple[int, int, tuple[int, int]]
"""Kind, number of the resolution, and the number of the windows with their length in ms."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayPlan:
    """
    A frame, and the candidates resolved for it.

    A *slot* is the number of a table of measurements. Candidates with the same resolution and windows share slots.
    """

    frame: Frame
    rules: CandidateRules
    resolved: list[ResolvedRules]
    """Resolutions, as `CandidateRules.resolution_of` numbers them, for the entities of the frame."""
    settings: ReplaySettings
    limits: Floats
    """Limit by candidate, kind and pair; infinite for unlimited."""
    slots: dict[_SlotKey, int]
    """Slots of all kinds with a windowed rate."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Candidates in their order."""
        return self.rules.candidates

    @property
    def steps(self) -> int:
        """Requests times candidates, the approximate number of steps of a replay."""
        return len(self.frame.groups) * len(self.candidates)

    def slot(self, candidate: int, kind: int) -> int:
        """Return the slot whose measurements are compared with a candidate's limits."""
        return self.slots[_slot_key(self.rules, candidate, kind)]

    def resolution(self, candidate: int, kind: int) -> ResolvedRules:
        """Return the rules of a candidate for one quota type."""
        return self.resolved[self.rules.resolution_of[candidate][kind]]

    def sensors(self, resolved: ResolvedRules, limited: NDArray[np.bool_]) -> Codes:
        """
        Return the number of the sensor by pair, negative for a pair without a limit.

        Entities with the same tags on the same broker share a sensor.

        Args:
            resolved: deciding rules of the entities.
            limited: mask of the pairs that have a limit.

        """
        frame = self.frame
        tags = resolved.tags[frame.pair_entities].astype(np.int64)
        # one number for each tag and broker; those of the tag -1 are masked below
        _, sensors = dense(tags * max(1, len(frame.brokers)) + frame.pair_brokers)
        numbers: Codes = np.where(limited & (tags >= 0), sensors, -1).astype(np.int32)
        return numbers

    def sizes(self) -> TableSizes:
        """Return the sizes of the kernels' tables, with 0 mutations: the plan does not know their number."""
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
        """Return by pair the longest throttle time of a rate, ms, before it is cut to 32 bits."""
        longest = np.array([release.longest_rate_ms for release in self.releases], np.int64)
        stops: Ints = longest[self.frame.pair_brokers]
        return stops


def plans(history: pa.Table, candidates: Sequence[Candidate], settings: ReplaySettings) -> Iterator[ReplayPlan]:
    """
    Divide a history into parts of whole groups, and yield the plan of each.

    The requests of a part are sorted by group, and then by time.
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
        yield plan_of(frame, rules, [resolution.only(numbers) for resolution in resolved], settings)


def _cuts(row_groups: Ints, entity_groups: Ints, most_rows: int, most_entities: int) -> Iterator[tuple[int, int]]:
    """
    Yield the first row of each part, and the row after its last one.

    A part consists of whole groups. It has at most `most_rows` rows and `most_entities` entities, unless it is one
    group.

    Args:
        row_groups: group by row, in order.
        entity_groups: group by entity.
        most_rows: largest number of rows.
        most_entities: largest number of entities.

    """
    group_ends = [*np.flatnonzero(row_groups[1:] != row_groups[:-1]) + 1, len(row_groups)]
    # `np.unique` sorts, so the counts are in the order of the rows' groups; every entity has a row
    entities_by_group = np.unique(entity_groups, return_counts=True)[1]
    start = stop = entities = 0
    for group_end, count in zip(group_ends, entities_by_group.tolist(), strict=True):
        is_full = group_end - start > most_rows or entities + count > most_entities
        if is_full and stop > start:
            yield start, stop
            start, entities = stop, 0
        stop = int(group_end)
        entities += count
    yield start, stop


def plan_of(frame: Frame, rules: CandidateRules, resolved: list[ResolvedRules], settings: ReplaySettings) -> ReplayPlan:
    """Return the plan for a frame; `resolved` has the deciding rules of its entities."""
    limits = np.full((len(rules.candidates), KINDS, frame.pairs), np.inf)
    slots: dict[_SlotKey, int] = {}
    for candidate, resolutions in enumerate(rules.resolution_of):
        for kind, number in resolutions.items():
            by_entity = resolved[number].limits(rules.tables[candidate][kind])
            limits[candidate, kind] = by_entity[frame.pair_entities]
            if kind != MUTATION:
                slots.setdefault(_slot_key(rules, candidate, kind), len(slots))
    return ReplayPlan(frame=frame, rules=rules, resolved=resolved, settings=settings, limits=limits, slots=slots)


def _slot_key(rules: CandidateRules, candidate: int, kind: int) -> _SlotKey:
    """Return the key under which `ReplayPlan.slots` has the slot of a candidate for one kind."""
    windows = rules.candidates[candidate].windows
    return kind, rules.resolution_of[candidate][kind], (windows.samples, windows.window_ms)


def memory_ms(candidate: Candidate) -> int:
    """
    Return the time in ms for which a candidate's sensors and buckets depend on a request: all windows together.

    In that time a bucket fills from zero.
    """
    return max(windows.samples * windows.window_ms for windows in (candidate.windows, candidate.controller_windows))


def buckets_of(plan: ReplayPlan, candidates: Sequence[int]) -> tuple[Codes, Buckets, Spreads]:
    """
    Return the unused token buckets, and burst-spreading rates, of some candidates for mutations.

    Each limit has a bucket and a rate of the same number; the policy of its candidate decides which of them is used.
    The first array has that number by candidate and entity; negative without a limit.
    """
    numbers = np.full((len(candidates), len(plan.frame.entities.users)), -1, np.int32)
    # the columns of the buckets, in one array for each candidate; `concatenate` needs a first one
    limits: list[Floats] = [np.zeros(0)]
    samples: list[Ints] = [np.zeros(0, np.int64)]
    window_ms: list[Ints] = [np.zeros(0, np.int64)]
    count = most_samples = 0
    for row, candidate in enumerate(candidates):
        windows = plan.candidates[candidate].controller_windows
        most_samples = max(most_samples, windows.samples)
        resolved = plan.resolution(candidate, MUTATION)
        enforced = plan.settings.release.enforces_controller_mutations
        limited_entities = np.flatnonzero((resolved.tags >= 0) & enforced)
        # entities with the same tags share a bucket, and have the same limit
        tags, tag_places = np.unique(resolved.tags[limited_entities], return_inverse=True)
        numbers[row, limited_entities] = tag_places + count
        limit_by_entity = resolved.limits(plan.rules.tables[candidate][MUTATION])
        limit_by_tag = np.zeros(len(tags))
        limit_by_tag[tag_places] = limit_by_entity[limited_entities]
        limits.append(limit_by_tag)
        samples.append(np.full(len(tags), windows.samples))
        window_ms.append(np.full(len(tags), windows.window_ms))
        count += len(tags)
    settings = np.concatenate(limits), np.concatenate(samples), np.concatenate(window_ms)
    return numbers.ravel(), new_buckets(*settings), new_spreads(*settings, most_samples)
