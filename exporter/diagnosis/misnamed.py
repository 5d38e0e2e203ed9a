"""
Finds the rules that apply to no client because of their name.

The name is nearly that of a measured client, or it is a name that hardly any client has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity, QuotaType, spelled, spelled_name
from quotascope.quotas import DEFAULT_TEXT, Names, bare, differences, oddities, remove_command, set_command
from quotascope.quotas import Entity as RuleEntity
from quotascope.quotas.quota_set import CLIENT_ID, USER, names_of

from ..snapshot import Snapshot
from ..snapshot.entity import Entity
from ..snapshot.layout import Layout

_Rules: TypeAlias = Mapping[RuleEntity, Mapping[str, float]]

_DEFAULTS: Final = frozenset({"default", "<default>"})
_MOST_MEANT: Final = 4
_IS_DEFAULT: Final = {
    USER: (
        "this is a user with the name {name}; the default of all users is <default> in files, --default-user on "
        "the command line"
    ),
    CLIENT_ID: (
        "this is a client-id with the name {name}; the default of all client-ids is <default> in files, "
        "--default-client-id on the command line"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """An entity that a misnamed rule may be meant for."""

    entity: QuotaEntity
    measured: tuple[str, str] | None = None
    """
    User and client-id of a client that is measured under it; None if no such client is.

    A name that the broker does not distinguish is empty.
    """
    under: QuotaEntity | None = None
    """The rule that applies to this client now; None if there is none, or it is unknown."""
    has_rule: bool = False
    """True if the entity has quotas with all keys of the misnamed rule already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misnamed:
    """A rule for names that no client has, and the entities that it may be meant for."""

    entity: QuotaEntity
    reasons: tuple[str, ...]
    """The oddities of its names, or their differences from measured ones."""
    meant: tuple[Meant, ...]
    """Entities that the rule may be meant for; never empty."""
    commands: tuple[str, ...]
    """
    Commands for bash without an address of Kafka.

    They set its quotas for the entities that are meant, and remove it if it is in force.
    """
    text: str
    """A sentence with the reasons and the entities that are meant."""


class MeasuredNames:
    """
    The names of the clients that are measured.

    Args:
        layout: the entities of a snapshot.

    """

    def __init__(self, layout: Layout) -> None:
        self._entities: Sequence[Entity] = layout.entities[layout.own].tolist()

    @cached_property
    def names(self) -> Mapping[str, Names]:
        """The measured names by kind: `user` and `client-id`."""
        users = (entity.user for entity in self._entities if entity.user)
        client_ids = (entity.client_id for entity in self._entities if entity.client_id)
        return {USER: Names(users, USER), CLIENT_ID: Names(client_ids, CLIENT_ID)}

    def client_of(self, entity: QuotaEntity, kind: QuotaType | None, at_least: Collection[str]) -> Entity | None:
        """
        Return the measured entity of a client with the literal names of a rule; None without one.

        A name that the broker does not distinguish matches any.

        Args:
            entity: The rule's entity.
            kind: The quota type that is preferred; None for any.
            at_least: The kinds of names that the client must have, if none has all of them.

        """
        literal_names = _literal(entity)
        required_names = {name_kind: name for name_kind, name in literal_names.items() if name_kind in at_least}
        if USER in required_names:
            candidates = self._by_user.get(required_names[USER], ())
        else:
            candidates = self._by_client_id.get(required_names.get(CLIENT_ID, ""), ())

        def suitability(candidate: Entity) -> tuple[bool, bool]:
            """Return whether a candidate has all names of the rule, and whether it has the preferred quota type."""
            return _agrees(candidate, literal_names), candidate.quota_type is kind

        best = max(candidates, key=suitability, default=None)
        return best if best is not None and _agrees(best, required_names) else None

    @cached_property
    def _by_user(self) -> Mapping[str, list[Entity]]:
        """The measured entities by user, "" for entities without one."""
        entities: dict[str, list[Entity]] = defaultdict(list)
        for entity in self._entities:
            entities[entity.user].append(entity)
        return entities

    @cached_property
    def _by_client_id(self) -> Mapping[str, list[Entity]]:
        """The measured entities by client-id, "" for entities without one."""
        entities: dict[str, list[Entity]] = defaultdict(list)
        for entity in self._entities:
            entities[entity.client_id].append(entity)
        return entities


def _agrees(measured: Entity, names: Mapping[str, str]) -> bool:
    """Return whether a measured entity has the names, by kind; a name that the broker does not distinguish matches."""
    measured_names = {USER: measured.user, CLIENT_ID: measured.client_id}
    return all(measured_names[kind] in {"", name} for kind, name in names.items())


_MEASURED: Final = WeakKeyDictionary[Layout, MeasuredNames]()
"""Cache of measured names, which are the same as long as the layout is."""


def measured_names(snapshot: Snapshot | None) -> MeasuredNames:
    """Return the names of the clients in a snapshot, shown or not; no name without a snapshot."""
    layout = Layout([]) if snapshot is None else snapshot.measured.columns.layout
    names = _MEASURED.get(layout)
    if names is None:
        names = _MEASURED[layout] = MeasuredNames(layout)
    return names


def misnamed(
    idle: _Rules, measured: MeasuredNames, present: _Rules, *, in_force: bool = True
) -> Mapping[RuleEntity, Misnamed]:
    """
    Return the misnamed rules, by their entity.

    A rule for an address or with names that clients have is never misnamed.

    Args:
        idle: The rules to examine, which apply to no client or are to be set.
        measured: The names of clients.
        present: The rules of the cluster.
        in_force: False for rules that are to be set.

    """
    misnamed_rules: dict[RuleEntity, Misnamed] = {}
    for entity, values in idle.items():
        if isinstance(entity, QuotaEntity):
            doubtful = _Doubtful(entity, values, measured, present, in_force=in_force)
            if doubtful.kinds:
                misnamed_rules[entity] = doubtful.misnamed()
    return misnamed_rules


class _Doubtful:
    """The names of a rule that are in doubt, by a comparison with the names of measured clients."""

    def __init__(
        self,
        entity: QuotaEntity,
        values: Mapping[str, float],
        measured: MeasuredNames,
        present: _Rules,
        *,
        in_force: bool,
    ) -> None:
        self._entity, self._values, self._measured, self._present = entity, values, measured, present
        self._in_force = in_force
        self._similar: dict[str, list[str]] = {}
        """Measured names that are similar to a name of the rule, by kind of name."""
        self._odd: dict[str, list[str]] = {}
        """Oddities of a name of the rule, by kind of name."""
        self._defaults: dict[str, str] = {}
        """Names of the rule that look like the default, by kind of name."""
        for kind, name in names_of(entity).items():
            if not isinstance(name, str) or name in measured.names[kind]:
                continue
            if similar := measured.names[kind].similar(name):
                self._similar[kind] = similar
            elif not in_force and name == DEFAULT_TEXT:
                continue  # files have another form for the default, and options refuse this name: it is meant literally
            elif bare(name, kind).casefold() in _DEFAULTS:
                self._defaults[kind] = name
            elif odd := oddities(name, kind):
                self._odd[kind] = odd
        self.kinds = {*self._similar, *self._odd, *self._defaults}
        """The kinds of names in doubt: `user`, `client-id`."""

    def misnamed(self) -> Misnamed:
        """Return why the rule applies to no client, and the entities that may be meant."""
        meant = tuple(self._meant())
        reasons = tuple(dict.fromkeys(self._reasons(meant)))
        return Misnamed(
            entity=self._entity,
            reasons=reasons,
            meant=meant,
            commands=tuple(self._commands(meant)),
            text=self._text(meant, reasons),
        )

    def _meant(self) -> Iterator[Meant]:
        """Yield the entities that may be meant: those of measured clients with all their names, if there are any."""
        own_names = names_of(self._entity)
        choices = [[*self._choices(kind, name)] for kind, name in own_names.items()]
        entities = [QuotaEntity(**_arguments(own_names, names)) for names in product(*choices)]
        quota_types = filter(None, map(QuotaType.of_quota_key, self._values))
        quota_type = next(quota_types, None)
        clients = {entity: self._client(entity, quota_type) for entity in entities}
        with_client = [entity for entity, client in clients.items() if client and _agrees(client, _literal(entity))]
        for entity in (with_client or entities)[:_MOST_MEANT]:
            client = clients[entity]
            rule = None if client is None else client.resolution
            yield Meant(
                entity=entity,
                measured=None if client is None else (client.user, client.client_id),
                under=None if rule is None else rule.entity,
                has_rule=self._values.keys() <= self._present.get(entity, {}).keys(),
            )

    def _choices(self, kind: str, name: Name) -> Iterable[Name]:
        """Return the names that may be meant by a name of the rule."""
        if kind in self._similar:
            return self._similar[kind]
        if kind in self._defaults:
            return [DEFAULT]
        if kind in self._odd and isinstance(name, str):
            return [bare(name, kind) or name]
        return [name]

    def _client(self, entity: QuotaEntity, quota_type: QuotaType | None) -> Entity | None:
        """Return a measured client of an entity; None without one, or if no measured name is similar to the rule's."""
        return self._measured.client_of(entity, quota_type, self._similar) if self._similar else None

    def _reasons(self, meant: Sequence[Meant]) -> Iterator[str]:
        """Yield the differences from the entities that are meant, and the oddities of the names."""
        own_names = _literal(self._entity)
        for kind in self._similar:
            for candidate in meant:
                yield from differences(own_names[kind], _literal(candidate.entity)[kind], kind)
        for kind, name in self._defaults.items():
            yield _IS_DEFAULT[kind].format(name=spelled_name(name))
        for odd in self._odd.values():
            yield from odd

    def _commands(self, meant: Sequence[Meant]) -> Iterator[str]:
        """Yield the commands that set the quotas for the entities that are meant, and remove the rule."""
        for candidate in meant:
            if not candidate.has_rule and _is_text(candidate.entity):
                yield set_command(candidate.entity, self._values)
        if (self._in_force or self._entity in self._present) and _is_text(self._entity):
            keys = self._values.keys() & self._present.get(self._entity, self._values).keys()
            yield remove_command(self._entity, keys)

    def _text(self, meant: Sequence[Meant], reasons: Sequence[str]) -> str:
        """Return a sentence with the reasons and the entities that are meant."""
        is_measured = all(self._measured.names[kind] for kind in self.kinds)
        if self._in_force:
            applies = "applies"
        else:
            applies = "would apply" if is_measured else "may apply"
        begin = f"`{self._entity.rule}` {applies} to no client"
        if self._similar:
            verb = "differs" if len(meant) == 1 else "differ"
            differing = f"{verb} in {' and '.join(reasons)}"
            if len(meant) == 1:
                return f"{begin}; {_measured(meant[0])}, and {differing}: is it meant?"
            return f"{begin}; {'; '.join(map(_measured, meant))}; they {differing}: is one of them meant?"
        if self._defaults:
            remark = ", and has such a quota already" if meant[0].has_rule else ""
            return f"{begin}: {' and '.join(reasons)}{remark}: is it meant?"
        entities = " or ".join(str(candidate.entity) for candidate in meant)
        return f"{begin}; its name {' and '.join(reasons)}: is {entities} meant?"


def _measured(meant: Meant) -> str:
    """Return a clause on the client that is measured under an entity that is meant, and its rule."""
    if meant.measured is None:
        return f"{meant.entity} is not measured"
    user, client_id = meant.measured
    client = spelled(user or None, client_id or None)
    rule_text = "" if meant.under is None else f" under `{meant.under.rule}`"
    remark = ", has a rule of its own" if meant.has_rule and meant.under != meant.entity else ""
    return f"{client} is measured{rule_text}{remark}"


def _literal(entity: QuotaEntity) -> dict[str, str]:
    """Return the names of a rule that are no defaults, by kind."""
    return {kind: name for kind, name in names_of(entity).items() if isinstance(name, str)}


def _is_text(entity: QuotaEntity) -> bool:
    """Return whether a command can hold the names: an agent may report halves of surrogate pairs."""
    try:
        "".join(_literal(entity).values()).encode()
    except UnicodeEncodeError:
        return False
    return True


def _arguments(kinds: Iterable[str], names: Iterable[Name]) -> dict[str, Name]:
    """Return names as the arguments of `QuotaEntity`."""
    return {kind.replace("-", "_"): name for kind, name in zip(kinds, names, strict=True)}
