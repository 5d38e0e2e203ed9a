"""
Who is measured together under which candidate, and against which limit: Kafka's precedence over the entities of a history.

Which rule decides for an entity depends on which entities have rules, not on their values: candidates that differ in values only are
resolved once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quotascope.metrics import Level, QuotaEntity, QuotaType, RuleTable

from ..candidates import Candidate
from ..kernels.compiled import Codes, Floats, Ints
from ..kernels.requests import FETCH, MUTATION, PRODUCE, REQUEST
from .frame import Entities

TYPES = {
    PRODUCE: QuotaType.PRODUCE,
    FETCH: QuotaType.FETCH,
    REQUEST: QuotaType.REQUEST,
    MUTATION: QuotaType.CONTROLLER_MUTATION,
}
"""The quota types by the numbers of the kernels."""
LEVELS = tuple(Level)
"""The levels of rules, by the numbers of `Shape.levels`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """What rules of some entities mean, whatever their values."""

    tags: Codes
    """By entity: number of the tags that it is measured under, negative where nothing limits it."""
    rules: Codes
    """By entity: number of the rule that decides, negative for none."""
    deciding: list[QuotaEntity]
    """The rules."""

    def only(self, entities: Ints | Codes) -> Shape:
        """The same for some of the entities."""
        return Shape(
            tags=self.tags[entities],
            rules=self.rules[entities],
            deciding=self.deciding,
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


class Rules:
    """The rules of all candidates; those with the same entities are told apart by their values only."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        self.tables = [_by_kind(candidate) for candidate in candidates]
        self._shapes: list[frozenset[QuotaEntity]] = []
        self.shape_of: list[dict[int, int]] = [
            {kind: self._number(table) for kind, table in tables.items()}
            for tables in self.tables
        ]
        """By candidate and kind: number of the shape."""

    @property
    def across_users(self) -> bool:
        """Whether a rule for client ids alone lets users share a limit."""
        return any(rule.user is None for shape in self._shapes for rule in shape)

    def resolve(self, entities: Entities) -> list[Shape]:
        """What each shape means for these entities."""
        names = entities.names()
        samples: dict[int, RuleTable] = {}
        for tables, numbers in zip(self.tables, self.shape_of, strict=True):
            for kind, number in numbers.items():
                samples.setdefault(number, tables[kind])
        return [
            _resolved(samples[number], names) for number in range(len(self._shapes))
        ]

    def _number(self, table: RuleTable) -> int:
        shape = frozenset(table)
        if shape not in self._shapes:
            self._shapes.append(shape)
        return self._shapes.index(shape)


def _by_kind(candidate: Candidate) -> dict[int, RuleTable]:
    tables = candidate.tables()
    return {kind: tables[quota_type] for kind, quota_type in TYPES.items()}


def _resolved(table: RuleTable, names: Sequence[tuple[str, str]]) -> Shape:
    tags: dict[tuple[str, str], tuple[int, int]] = {}
    deciding: dict[QuotaEntity, int] = {}
    places = np.full((len(names), 2), -1, np.int32)
    if table.enabled:
        for number, (user, client_id) in enumerate(names):
            tag = table.metric_tags(user, client_id)
            if tag not in tags:
                tags[tag] = len(tags), _rule_number(table, tag, deciding)
            place, rule = tags[tag]
            if rule >= 0:
                places[number] = place, rule
    return Shape(tags=places[:, 0], rules=places[:, 1], deciding=list(deciding))


def _rule_number(
    table: RuleTable, tag: tuple[str, str], deciding: dict[QuotaEntity, int]
) -> int:
    found = table.limit(*tag)
    if found is None or found.entity is None:
        return -1
    return deciding.setdefault(found.entity, len(deciding))
