"""
From the quotas in a file to what they mean (docs/quotas.md describes the format).

::

    quotas:
      - user: alice
        client-id: <default>
        producer_byte_rate: 1048576
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from quotascope.metrics import CLIENT_QUOTA_KEYS, DEFAULT, IP_QUOTA_KEYS, QuotaEntity
from quotascope.metrics.entities import Name

from .entity import CLIENT_ID, IP, USER, Entity, IpEntity, described, to_admin
from .errors import InvalidQuotas
from .located import Located, load_file
from .number import number
from .quota_set import QuotaSet
from .validation import problems_of
from .yaml_file import named

QUOTAS: Final = "quotas"
"""The key of the list."""
DEFAULT_TEXT: Final = "<default>"
"""How a file writes the default entity."""
NAME: Final = "name"
"""The key that says that a name is literal, whatever it looks like."""

_KINDS: Final = (USER, CLIENT_ID, IP)
_QUOTA_KEYS: Final = (*CLIENT_QUOTA_KEYS, *IP_QUOTA_KEYS)


def read_quotas(path: Path) -> QuotaSet:
    """The quotas in a file, or on standard input for `-`. Raises `InvalidQuotas` with all that is wrong in it."""
    return quotas_in(load_file(path), named(path))


def quotas_in(document: Located, subject: str) -> QuotaSet:
    """The quotas of a document with nothing but the key `quotas`. Raises `InvalidQuotas`, which calls it `subject`."""
    content = document.mapping
    problems: list[str] = []
    if content is None or QUOTAS not in content:
        raise InvalidQuotas(subject, ["line 1: expected the key `quotas`"])
    problems += [
        f"line {item.line}: unknown key {key[:60]!r}; known: {QUOTAS}"
        for key, item in content.items()
        if key != QUOTAS
    ]
    quotas = rules_of(content[QUOTAS], problems)
    if problems:
        raise InvalidQuotas(subject, problems)
    return quotas


def rules_of(rules: Located, problems: list[str]) -> QuotaSet:
    """
    The quotas of a list of rules, wherever in a document it stands.

    What is wrong is appended to `problems`, a sentence for each that begins with its line; the rule is then left out.
    """
    if rules.value is None:
        return QuotaSet()
    if rules.items is None:
        problems.append(f"line {rules.line}: expected a list of quotas")
        return QuotaSet()
    lines: dict[Entity, int] = {}
    quotas: dict[Entity, Mapping[str, float]] = {}
    for rule in rules.items:
        found = _rule(rule, problems)
        if found is None:
            continue
        entity, values = found
        if entity in lines:
            again = f"{described(entity)} is there already in line {lines[entity]}"
            problems.append(f"line {rule.line}: {again}")
        lines.setdefault(entity, rule.line)
        quotas.setdefault(entity, values)
    return QuotaSet(quotas)


def _rule(
    rule: Located, problems: list[str]
) -> tuple[Entity, Mapping[str, float]] | None:
    """One item of the list, None when something is wrong with it."""
    before = len(problems)
    if rule.mapping is None:
        problems.append(f"line {rule.line}: expected keys and values, such as `user:`")
        return None
    names = {
        kind: _name(kind, rule.mapping[kind], problems)
        for kind in _KINDS
        if kind in rule.mapping
    }
    values = {
        key: _number(key, item, problems)
        for key, item in rule.mapping.items()
        if key not in _KINDS
    }
    if len(problems) > before:
        return None
    return _checked(rule, names, values, problems)


def _checked(
    rule: Located,
    names: Mapping[str, Name],
    values: Mapping[str, float],
    problems: list[str],
) -> tuple[Entity, Mapping[str, float]] | None:
    entity = _entity(names)
    if entity is None:
        wrong = ["needs a user, a client-id, both, or an ip alone"]
    elif not values:
        wrong = [f"{described(entity)} has no quota"]
    else:
        wrong = problems_of(to_admin(entity), values)
    problems += [f"line {rule.line}: {text}" for text in wrong]
    return None if entity is None or wrong else (entity, values)


def _entity(names: Mapping[str, Name]) -> Entity | None:
    if names.keys() == {IP}:
        return IpEntity(names[IP])
    if not names or IP in names:
        return None
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID))


def _name(kind: str, item: Located, problems: list[str]) -> Name:
    if item.mapping is not None and item.mapping.keys() == {NAME}:
        return _literal(kind, item.mapping[NAME], problems)
    if item.value == DEFAULT_TEXT:
        return DEFAULT
    return _literal(kind, item, problems)


def _literal(kind: str, item: Located, problems: list[str]) -> str:
    if not isinstance(item.value, str):
        hint = f'"{item.text}"' if item.text else DEFAULT_TEXT
        problems.append(f"line {item.line}: {kind} must be text, such as {hint}")
        return ""
    if not _encodable(item.value):
        problems.append(f"line {item.line}: {kind} holds half a character")
        return ""
    return item.value


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(key: str, item: Located, problems: list[str]) -> float:
    value = None if item.quoted else number(item.text)
    if value is None:
        problems.append(f"line {item.line}: {_no_number(key)}")
        return 0.0
    return value


def _no_number(key: str) -> str:
    if key in _QUOTA_KEYS:
        return f"{key!r} must be a plain number"
    close = get_close_matches(key, (*_KINDS, *_QUOTA_KEYS), n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(_KINDS)} and quota keys"  # fmt: skip
    return f"unknown key {key[:60]!r}; {hint}"
