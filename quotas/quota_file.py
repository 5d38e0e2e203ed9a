"""
Quotas in a YAML file, read and written (docs/quotas.md describes the format).

::

    quotas:
      - user: alice
        client-id: <default>
        producer_byte_rate: 1048576
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import yaml

from quotascope.metrics import CLIENT_QUOTA_KEYS, DEFAULT, IP_QUOTA_KEYS, QuotaEntity
from quotascope.metrics.entities import Name

from .errors import InvalidQuotas
from .quota_set import (
    CLIENT_ID,
    IP,
    STORES_INFINITY,
    USER,
    Entity,
    IpEntity,
    QuotaSet,
    names_of,
    number,
    number_text,
    problems_of,
    to_admin,
)
from .yaml_file import Located, load_file, named

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
        f"line {item.line}: unknown key {key[:60]!r}; known: {QUOTAS}" for key, item in content.items() if key != QUOTAS
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
            again = f"{entity} is there already in line {lines[entity]}"
            problems.append(f"line {rule.line}: {again}")
        lines.setdefault(entity, rule.line)
        quotas.setdefault(entity, values)
    return QuotaSet(quotas)


def _rule(rule: Located, problems: list[str]) -> tuple[Entity, Mapping[str, float]] | None:
    """One item of the list, None when something is wrong with it."""
    before = len(problems)
    if rule.mapping is None:
        problems.append(f"line {rule.line}: expected keys and values, such as `user:`")
        return None
    names = {kind: _name(kind, rule.mapping[kind], problems) for kind in _KINDS if kind in rule.mapping}
    values = {key: _number(key, item, problems) for key, item in rule.mapping.items() if key not in _KINDS}
    if len(problems) > before:
        return None
    entity: Entity | None = None
    if names.keys() == {IP}:
        entity = IpEntity(names[IP])
    elif names and IP not in names:
        entity = QuotaEntity(names.get(USER), names.get(CLIENT_ID))
    if entity is None:
        wrong = ["needs a user, a client-id, both, or an ip alone"]
    elif not values:
        wrong = [f"{entity} has no quota"]
    else:
        found = problems_of(to_admin(entity), values, STORES_INFINITY)
        wrong = [f"{entity}: {problem}" for problem in found]
    problems += [f"line {rule.line}: {text}" for text in wrong]
    return None if entity is None or wrong else (entity, values)


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
    try:
        item.value.encode()
    except UnicodeEncodeError:
        problems.append(f"line {item.line}: {kind} contains an incomplete Unicode character")
        return ""
    return item.value


def _number(key: str, item: Located, problems: list[str]) -> float:
    value = None if item.quoted else number(item.text)
    if value is not None:
        return value
    if key in _QUOTA_KEYS:
        wrong = f"{key!r} must be a plain number"
    else:
        close = get_close_matches(key, (*_KINDS, *_QUOTA_KEYS), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(_KINDS)} and quota keys"
        wrong = f"unknown key {key[:60]!r}; {hint}"
    problems.append(f"line {item.line}: {wrong}")
    return 0.0


def quotas_yaml(quotas: QuotaSet) -> str:
    """A document that `quotas_in` reads back as the same quotas: always in the same order, one line for each value."""
    if not quotas:
        return f"{QUOTAS}: []\n"
    lines = [f"{QUOTAS}:"]
    for entity, values in quotas.items():
        pairs = [f"{kind}: {_written(name)}" for kind, name in names_of(entity).items()]
        pairs += [f"{key}: {number_text(value)}" for key, value in values.items()]
        lines += [f"  - {pairs[0]}", *(f"    {pair}" for pair in pairs[1:])]
    return "\n".join((*lines, ""))


def _written(name: Name) -> str:
    if not isinstance(name, str):
        return DEFAULT_TEXT
    return f"{{{NAME}: {quoted(name)}}}" if name == DEFAULT_TEXT else quoted(name)


def quoted(text: str) -> str:
    r"""
    A text in double quotes, on one line, with all that is unprintable escaped: the same text in YAML 1.1 and 1.2.

    >>> print(quoted('a "b"\n'))
    "a \"b\"\n"
    """
    if text.isascii() and text.isprintable():
        return json.dumps(text)
    dumped: str = yaml.safe_dump(text, default_style='"', allow_unicode=text.isprintable(), width=float("inf"))
    return dumped.rstrip("\n")
