"""The coverage of a source's answer: the evidence without which no entity is called absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

from .untrusted import shown

_NONE: Final[frozenset[EntityKind]] = frozenset()


class EntityKind(StrEnum):
    """The kind of an entity by the names that it has. Agents have one rule for each kind, or lack it."""

    USER = "user"
    """Entities of users alone, under the rules of levels 3 and 6."""
    CLIENT_ID = "client-id"
    """Entities of client-ids alone, under the rules of levels 7 and 8."""
    PAIR = "user and client-id"
    """Entities of pairs, under all other rules."""

    @classmethod
    def of(cls, user: object, client_id: object) -> EntityKind | None:
        """
        Return the kind by which of the two names are there.

        Return None without any, as of the clients that send no client-id.
        """
        if user:
            return cls.PAIR if client_id else cls.USER
        return cls.CLIENT_ID if client_id else None

    @classmethod
    def of_rule(cls, rule: QuotaEntity) -> EntityKind:
        """Return the kind under which clients of a rule are measured; a default counts as a name."""
        if rule.user is None:
            return cls.CLIENT_ID
        return cls.USER if rule.client_id is None else cls.PAIR


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """The series of an answer that are named like quota metrics, but could not be read."""

    count: int
    example: str
    """One of them with its labels, as the agent writes it; untrusted."""
    labels: tuple[str, ...]
    """The names of its labels; untrusted."""
    expected: tuple[str, ...] = ()
    """The names of the labels that were looked for."""
    reason: str = ""
    """The fault of the example."""
    lost: str = ""
    """The lines left out of an answer that is too long, as a sentence without its end; empty where nothing was."""

    @property
    def text(self) -> str:
        """Return a sentence without its period, safe to be shown."""
        if self.lost:
            return self.lost
        lines = "1 line is" if self.count == 1 else f"{self.count:,} lines are"
        have = f"its labels are {', '.join(map(shown, self.labels))}" if self.labels else "it has no labels"
        expected = f"; expected are {', '.join(self.expected)}" if self.expected else ""
        reason = f": {self.reason}" if self.reason else ""
        return (
            f"{lines} named like quota metrics, but cannot be read, such as {shown(self.example)}{reason} "
            f"({have}{expected})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """
    The kinds of entities that an answer has, and the kinds that it would have if there were any.

    An answer without an entity proves that there is none only if the source leaves none out. A coverage is made once
    for each layout.
    """

    kinds: Mapping[QuotaType, frozenset[EntityKind]] = field(default_factory=dict)
    """The kinds of the entities, by quota type."""
    tagged: bool = False
    """True if there are entities under other names, such as the tags of a custom quota callback."""
    usages: frozenset[QuotaType] = frozenset()
    """The quota types with a usage of an entity."""
    throttle_times: frozenset[QuotaType] = frozenset()
    """The quota types with a throttle time of an entity."""
    tokens: bool = False
    """True if there are tokens of a bucket of controller mutations."""
    queues: frozenset[QuotaType] = frozenset()
    """The quota types with a delay queue."""
    connections: bool = False
    """True if there are rates of new connections, among which an agent shows those of limited addresses."""
    complete: bool = False
    """
    True if the source asks for beans by Kafka's own names: of a quota type whose delay queue it sees, it sees all
    entities.
    """
    alike: bool = False
    """
    True if the agent names all beans of a quota type by one rule: where it shows entities of one kind, it shows all.
    """
    unplaced: Unplaced | None = None
    """Series that could not be placed; None where there are none."""
    labels_of_page: tuple[str, ...] = ()
    """
    Labels that Kafka's own quotas do not have, with one value on the series of all clients: taken for labels of the
    agent, and left out; untrusted.
    """
    in_seconds: str = ""
    """
    A metric of throttle times that is read in seconds because its name says so, while Kafka's are milliseconds; empty
    where there is none, untrusted.
    """

    def without(self, unplaced: Unplaced | None) -> Coverage:
        """Return the coverage with further series that could not be placed; lost lines become the example."""
        if unplaced is None:
            return self
        main = self.unplaced or unplaced
        if unplaced.lost and not main.lost:
            main = unplaced
        count = unplaced.count + (0 if self.unplaced is None else self.unplaced.count)
        return replace(self, unplaced=replace(main, count=count))

    @property
    def has_entities(self) -> bool:
        """Return whether there is any entity."""
        return self.tagged or any(self.kinds.values())

    def would_show(self, quota_type: QuotaType, kind: EntityKind) -> bool:
        """Return whether it is certain that an entity of this kind would be in the answer if the node measured one."""
        if self.unplaced is not None:
            return False
        kinds = self.kinds.get(quota_type, _NONE)
        return kind in kinds or (self.alike and bool(kinds)) or (self.complete and quota_type in self.queues)
