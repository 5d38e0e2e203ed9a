"""
Values for quotas.

Entities as all of Kafka's tools know them (users, client-ids, pairs, addresses, defaults), numbers as text, sets of
quotas.

And which of a set's rules leave others without effect by Kafka's precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count
from math import inf, isnan
from typing import Final, TypeAlias

from quotascope.clients.quota_admin import ConfiguredQuota
from quotascope.metrics.kafka.entities import DEFAULT, DefaultType, Name, QuotaEntity, QuotaType, spelled_name
from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable
from quotascope.metrics.kafka.validation import is_address, validate_alteration

from .errors import QuotasError

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_LONGEST = 120


@dataclass(frozen=True, slots=True)
class IpEntity:
    """An IP address, or the default of all addresses without a quota of their own (KIP-612)."""

    ip: str | DefaultType
    """Address as configured; Kafka also takes the name of a host, which its nodes look up."""

    @property
    def rule(self) -> str:
        """The rule for the address; addresses have no levels."""
        return str(self)

    def __str__(self) -> str:
        return f"ip {spelled_name(self.ip)}"


Entity: TypeAlias = QuotaEntity | IpEntity


def shown(name: str) -> str:
    """Return a name in quotes, with unprintable characters escaped, cut if it is long."""
    return repr(name if len(name) <= _LONGEST else name[:_LONGEST] + "…")


def names_of(entity: Entity) -> dict[str, Name]:
    """Return the names of an entity by kind: `user`, `client-id` or `ip`."""
    if isinstance(entity, IpEntity):
        return {IP: entity.ip}
    names = {USER: entity.user, CLIENT_ID: entity.client_id}
    return {kind: name for kind, name in names.items() if name is not None}


def to_admin(entity: Entity) -> dict[str, str | None]:
    """Return the entity as in the Admin API: None is the default (KIP-546)."""
    return {kind: name if isinstance(name, str) else None for kind, name in names_of(entity).items()}


def from_admin(entity: Mapping[str, str | None]) -> Entity:
    """
    Return the entity of an answer of the Admin API.

    Raises `QuotasError` for a kind of entity that this version does not know.
    """
    names: dict[str, Name] = {kind: DEFAULT if name is None else name for kind, name in entity.items()}
    if names.keys() == {IP}:
        return IpEntity(names[IP])
    if names and names.keys() <= {USER, CLIENT_ID}:
        return QuotaEntity(names.get(USER), names.get(CLIENT_ID))
    kinds = ", ".join(shown(kind) for kind in entity)
    raise QuotasError(f"the cluster has a quota for a kind unknown here: {kinds}")


def in_order(entity: Entity) -> tuple[object, ...]:
    """
    Return a key that sorts entities for people: of the rules that fit a client, the first is the one that applies.

    Users with their client-ids, the default of users, client-ids, addresses; a name before the default, a pair before
    its user. Numbers in names count: ``etl-2`` comes before ``etl-10``.
    """
    if isinstance(entity, IpEntity):
        return 2, _rank(entity.ip)
    return 0 if entity.user is not None else 1, _rank(entity.user), _rank(entity.client_id)


def _rank(name: Name | None) -> tuple[object, ...]:
    """Return the key of `in_order` for one name of an entity."""
    if not isinstance(name, str):
        return (2,) if name is None else (1,)
    # text and digits by turns; a name may have more digits than `int` reads
    parts: list[object] = list(re.split("([0-9]+)", name.casefold()))
    parts[1::2] = ((len(digits), digits) for digits in (str(part).lstrip("0") for part in parts[1::2]))
    return 0, parts, name


_NUMBER: Final = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INFINITY: Final = "Infinity"
STORES_INFINITY: Final = KafkaRelease(4, 3)
"""Last release that stores infinity: a file with the quotas of its cluster has to be read back."""


def number_text(value: float) -> str:
    """
    Return the shortest text that is read back as the same number, without an exponent where it is whole and not huge.

    Infinity is spelled as by Kafka's tools.

    >>> number_text(1048576.0), number_text(0.5), number_text(9.223372036854776e18), number_text(inf)
    ('1048576', '0.5', '9.223372036854776e+18', 'Infinity')
    """
    return _INFINITY if value == inf else repr(value).removesuffix(".0")


def number(text: str) -> float | None:
    """
    Return the number that a text stands for, None when it is no number: plain decimals and `Infinity`, no NaN.

    Not read by YAML, because YAML 1.1 takes 0100 for 64, 1:30 for 90 and 1e6 for a text.

    >>> number("1_000_000"), number("1e6"), number("0100"), number("nan")
    (1000000.0, 1000000.0, None, None)
    """
    if text == _INFINITY:
        return inf
    return float(text.replace("_", "")) if _NUMBER.fullmatch(text) else None


_LONGEST_HOST: Final = 253
_HOST: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?"
)


def problems_of(
    entity: Mapping[str, str | None], values: Mapping[str, float | None], release: KafkaRelease = NEWEST_RELEASE
) -> list[str]:
    """
    Return all problems of quotas for an entity, as in the Admin API; None among the values is a removal.

    Controllers up to 4.3 store infinity, too.
    """
    problems = validate_alteration(entity, values.items(), is_host=may_be_host, release=release)
    return [problem.message for problem in problems]


def may_be_host(text: str) -> bool:
    """Return whether a text is an address, or could be the name of a host: only the controller's name service knows."""
    if is_address(text):
        return True
    return len(text) <= _LONGEST_HOST and _HOST.fullmatch(text) is not None


class QuotaSet(Mapping[Entity, Mapping[str, float]]):
    """
    Quotas by entity and key, in Kafka's units; immutable, and always in the same order.

    Args:
        quotas: values by key (`producer_byte_rate`, …) by entity; an entity without any is left out.

    """

    __slots__ = ("_quotas",)

    def __init__(self, quotas: Mapping[Entity, Mapping[str, float]] | None = None) -> None:
        mapping = quotas or {}
        self._quotas = {
            entity: dict(sorted(mapping[entity].items())) for entity in sorted(mapping, key=in_order) if mapping[entity]
        }

    @classmethod
    def of(cls, configured: Iterable[ConfiguredQuota]) -> QuotaSet:
        """Return the quotas of a cluster. Raises `QuotasError` for a kind of entity unknown here."""
        quotas: dict[Entity, dict[str, float]] = {}
        for quota in configured:
            entity = from_admin(quota.entity)
            quotas.setdefault(entity, {})[quota.key] = quota.value
        return cls(quotas)

    def __getitem__(self, entity: Entity) -> Mapping[str, float]:
        return self._quotas[entity]

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._quotas)

    def __len__(self) -> int:
        return len(self._quotas)

    def __repr__(self) -> str:
        return f"QuotaSet({self._quotas!r})"

    def items_by_key(self) -> Iterator[tuple[Entity, str, float]]:
        """Yield every single quota."""
        for entity, values in self._quotas.items():
            for key, value in values.items():
                yield entity, key, value

    def tables(self) -> dict[QuotaType, QuotaRules]:
        """Return the rules of each quota type, ready to be resolved; addresses and unknown keys are left out."""
        tables = {kind: QuotaRules() for kind in QuotaType}
        for entity, key, value in self.items_by_key():
            kind = QuotaType.of_quota_key(key)
            if kind is not None and isinstance(entity, QuotaEntity):
                tables[kind].set(entity, value)
        return tables

    def of_entities(self, entities: Iterable[Entity]) -> QuotaSet:
        """Return the quotas of some entities only."""
        return QuotaSet({entity: self[entity] for entity in entities if entity in self._quotas})


def storable(quotas: QuotaSet) -> tuple[QuotaSet, list[str]]:
    """
    Return the quotas that a file can have and a controller stores, and a sentence for each quota that is left out.

    A cluster may have others from an earlier release: NaN (Kafka up to 4.3), or 0 (ZooKeeper).
    """
    accepted: dict[Entity, dict[str, float]] = {}
    refused = []
    for entity, key, value in quotas.items_by_key():
        # no file has NaN, which newer controllers refuse
        release = NEWEST_RELEASE if isnan(value) else STORES_INFINITY
        problems = problems_of(to_admin(entity), {key: value}, release)
        if problems:
            refused.append(f"{entity}: {', '.join(problems)}; no controller would store it again")
        else:
            accepted.setdefault(entity, {})[key] = value
    return QuotaSet(accepted), refused


def merged(quotas: QuotaSet, additions: QuotaSet) -> QuotaSet:
    """Return the quotas with the additions set as well; nothing is removed."""
    united = {entity: {**quotas.get(entity, {}), **additions.get(entity, {})} for entity in (*quotas, *additions)}
    return QuotaSet(united)


def overruling_rules(rules: RuleTable) -> Mapping[QuotaEntity, QuotaEntity]:
    """
    Return, for each rule that decides for no client that sends a client-id, the rule that decides in its place.

    In this way ``<default>/<default>`` overrules the rule for the default user, and all rules for client-ids. It is
    enough to ask for names without a rule of their own: a rule for a name only takes further clients away.
    """
    unnamed_client = unnamed(rules)
    decisions = ((entity, _decided(rules, entity.user, entity.client_id, unnamed_client)) for entity in rules)
    return {entity: decided for entity, decided in decisions if decided is not None and decided != entity}


def overruled_by(rules: RuleTable, added: QuotaEntity) -> list[QuotaEntity]:
    """
    Return the rules that would lose some clients, or all of them, to an added rule.

    A rule is asked about the clients that the added one is for, too. It loses none if a third rule decides for these.
    """
    rules_after = QuotaRules(rules)
    rules_after.set(added, 1.0)
    unnamed_client = unnamed(rules_after)
    lost = []
    for entity in rules:
        user = _narrower(entity.user, added.user)
        client_id = _narrower(entity.client_id, added.client_id)
        decided_before = _decided(rules, user, client_id, unnamed_client)
        if decided_before == entity and _decided(rules_after, user, client_id, unnamed_client) != entity:
            lost.append(entity)
    return lost


def unnamed(*tables: RuleTable) -> str:
    """Return a name that no rule of any of these tables has, neither for a user nor for a client-id."""
    entities = chain.from_iterable(tables)
    names = {name for entity in entities for name in (entity.user, entity.client_id)}
    candidates = (f"any-other-{number}" for number in count())
    return next(name for name in candidates if name not in names)


def _decided(rules: RuleTable, user: Name | None, client_id: Name | None, placeholder: str) -> QuotaEntity | None:
    """
    Return the rule that decides for clients of these names.

    The placeholder, a name without a rule of its own, stands in for a default or a missing name.
    """
    return rules.decide(
        user if isinstance(user, str) else placeholder, client_id if isinstance(client_id, str) else placeholder
    ).entity


def _narrower(name: Name | None, fallback: Name | None) -> Name | None:
    """Return the name that clients of both rules have: the first if it is exact, else the second."""
    return name if isinstance(name, str) else fallback
