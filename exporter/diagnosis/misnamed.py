"""
Rules that apply to no client by their name.

A client that is measured has nearly the same one, or hardly any client is called so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity, QuotaType, spelled
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
    User and client-id of a client that is measured under it, empty for a dimension that is not separated; None where no
    such client is.
    """
    under: QuotaEntity | None = None
    """The rule that applies to this client now; None where there is none, or it is unknown."""
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
    Commands for bash that set its quotas for the entities that are meant, and remove it where it is in force; without
    an address of Kafka.
    """
    text: str
    """The same in a sentence."""


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
        Return a client with the literal names of an entity, preferably one under a quota of this type.

        Without such a client, it is one that has at least the names of the kinds in ``at_least``. A name that the
        broker does not tell apart matches any.
        """
        literal = {kind_of_name: name for kind_of_name, name in names_of(entity).items() if isinstance(name, str)}
        required = {kind_of_name: name for kind_of_name, name in literal.items() if kind_of_name in at_least}
        user, client_id = required.get(USER), required.get(CLIENT_ID)
        rows = self._by_user.get(user, ()) if user is not None else self._by_client_id.get(client_id or "", ())
        best = max(rows, key=lambda row: (_agrees(row, literal), row.quota_type is kind), default=None)
        return best if best is not None and _agrees(best, required) else None

    @cached_property
    def _by_user(self) -> Mapping[str, list[Entity]]:
        entities: dict[str, list[Entity]] = defaultdict(list)
        for entity in self._entities:
            entities[entity.user].append(entity)
        return entities

    @cached_property
    def _by_client_id(self) -> Mapping[str, list[Entity]]:
        entities: dict[str, list[Entity]] = defaultdict(list)
        for entity in self._entities:
            entities[entity.client_id].append(entity)
        return entities


def _agrees(row: Entity, names: Mapping[str, str]) -> bool:
    """Return whether a client has these names, as far as the broker separates clients by them."""
    names_of_row = {USER: row.user, CLIENT_ID: row.client_id}
    return all(names_of_row[kind] in {"", name} for kind, name in names.items())


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
    Return the rules among some that apply to no client by their name.

    Rules for names that clients have and rules for addresses are left out.

    Args:
        idle: rules that apply to no client, or may come to.
        measured: the names of clients.
        present: the rules of the cluster.
        in_force: False for rules that are to be set.

    """
    misnamed_rules: dict[RuleEntity, Misnamed] = {}
    for entity, values in idle.items():
        if isinstance(entity, QuotaEntity):
            doubtful = _Doubtful(entity, values, measured, present, in_force)
            if doubtful.kinds:
                misnamed_rules[entity] = doubtful.misnamed()
    return misnamed_rules


class _Doubtful:
    """One rule, compared with the names that are measured."""

    def __init__(
        self,
        entity: QuotaEntity,
        values: Mapping[str, float],
        measured: MeasuredNames,
        present: _Rules,
        in_force: bool,  # noqa: FBT001 - as it is given
    ) -> None:
        self._entity, self._values, self._measured, self._present = entity, values, measured, present
        self._in_force = in_force
        self._similar: dict[str, list[str]] = {}
        self._odd: dict[str, list[str]] = {}
        self._defaults: dict[str, str] = {}
        for kind, name in names_of(entity).items():
            if not isinstance(name, str) or name in measured.names[kind]:
                continue
            if similar := measured.names[kind].similar(name):
                self._similar[kind] = similar
            elif not in_force and name == DEFAULT_TEXT:
                continue  # files have a separate form for this name, and options refuse it: so it is meant
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
        own_names = names_of(self._entity)
        choices = [[*self._choices(kind, name)] for kind, name in own_names.items()]
        entities = [QuotaEntity(**_dimensions(own_names, names)) for names in product(*choices)]
        kind = next((kind for key in self._values if (kind := QuotaType.of_quota_key(key))), None)
        clients = {entity: self._client(entity, kind) for entity in entities}
        full = [entity for entity, client in clients.items() if client and _agrees(client, _literal(entity))]
        for entity in (full or entities)[:_MOST_MEANT]:
            client = clients[entity]
            rule = None if client is None else client.resolution
            yield Meant(
                entity=entity,
                measured=None if client is None else (client.user, client.client_id),
                under=None if rule is None else rule.entity,
                has_rule=self._values.keys() <= self._present.get(entity, {}).keys(),
            )

    def _choices(self, kind: str, name: Name) -> Iterable[Name]:
        if kind in self._similar:
            return self._similar[kind]
        if kind in self._defaults:
            return [DEFAULT]
        return [bare(name, kind) or name] if kind in self._odd and isinstance(name, str) else [name]

    def _client(self, entity: QuotaEntity, kind: QuotaType | None) -> Entity | None:
        return self._measured.client_of(entity, kind, self._similar) if self._similar else None

    def _reasons(self, meant: Sequence[Meant]) -> Iterator[str]:
        own_names = names_of(self._entity)
        for kind in self._similar:
            for candidate in meant:
                meant_name, name = names_of(candidate.entity)[kind], own_names[kind]
                if isinstance(meant_name, str) and isinstance(name, str):
                    yield from differences(name, meant_name, kind)
        for kind, name in self._defaults.items():
            yield _IS_DEFAULT[kind].format(name=spelled(name, None).removeprefix("user "))
        for odd in self._odd.values():
            yield from odd

    def _commands(self, meant: Sequence[Meant]) -> Iterator[str]:
        for candidate in meant:
            if not candidate.has_rule and _is_text(candidate.entity):
                yield set_command(candidate.entity, self._values)
        if (self._in_force or self._entity in self._present) and _is_text(self._entity):
            keys = self._values.keys() & self._present.get(self._entity, self._values).keys()
            yield remove_command(self._entity, keys)

    def _text(self, meant: Sequence[Meant], reasons: Sequence[str]) -> str:
        is_measured = all(self._measured.names[kind] for kind in self.kinds)
        applies = "applies" if self._in_force else "would apply" if is_measured else "may apply"
        begin = f"`{self._entity.rule}` {applies} to no client"
        if self._similar:
            differing = f"differ{'s' if len(meant) == 1 else ''} in {' and '.join(reasons)}"
            if len(meant) == 1:
                return f"{begin}; {_measured(meant[0])}, and {differing}: is it meant?"
            return f"{begin}; {'; '.join(map(_measured, meant))}; they {differing}: is one of them meant?"
        if self._defaults:
            remark = ", and has such a quota already" if meant[0].has_rule else ""
            return f"{begin}: {' and '.join(reasons)}{remark}: is it meant?"
        entities = " or ".join(str(candidate.entity) for candidate in meant)
        return f"{begin}; its name {' and '.join(reasons)}: is {entities} meant?"


def _measured(meant: Meant) -> str:
    if meant.measured is None:
        return f"{meant.entity} is not measured"
    user, client_id = meant.measured
    client = spelled(user or None, client_id or None)
    rule_text = "" if meant.under is None else f" under `{meant.under.rule}`"
    remark = ", has a rule of its own" if meant.has_rule and meant.under != meant.entity else ""
    return f"{client} is measured{rule_text}{remark}"


def _literal(entity: QuotaEntity) -> dict[str, str]:
    return {kind: name for kind, name in names_of(entity).items() if isinstance(name, str)}


def _is_text(entity: QuotaEntity) -> bool:
    """Return whether a command can hold the names: an agent may report halves of surrogate pairs."""
    try:
        "".join(_literal(entity).values()).encode()
    except UnicodeEncodeError:
        return False
    return True


def _dimensions(kinds: Iterable[str], names: Iterable[Name]) -> dict[str, Name]:
    """Return names as a `QuotaEntity` takes them."""
    return {kind.replace("-", "_"): name for kind, name in zip(kinds, names, strict=True)}
