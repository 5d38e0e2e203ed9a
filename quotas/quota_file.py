"""
Quotas in a YAML file, read and written (docs/guides/quotas.md describes the format).

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

from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity
from quotascope.metrics.kafka.validation import CLIENT_QUOTA_KEYS, IP_QUOTA_KEYS

from .errors import InvalidQuotas
from .foreign import format_of, format_of_text
from .manifests import is_manifest, levels_of, quotas_of_manifests
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
from .yaml_file import Located, load_all, named, quoted, refusing, text_of

QUOTAS: Final = "quotas"
"""The key of the list."""
DEFAULT_TEXT: Final = "<default>"
"""Text of the default entity in a file."""
NAME: Final = "name"
"""Key that makes a name literal, even if it looks like the default."""

_KINDS: Final = (USER, CLIENT_ID, IP)
_QUOTA_KEYS: Final = (*CLIENT_QUOTA_KEYS, *IP_QUOTA_KEYS)


def read_quotas(path: Path) -> QuotaSet:
    """
    Return the quotas in a file, or on standard input for `-`.

    A document with the key `quotas`, or manifests of Strimzi's `KafkaUser`.

    Raises `InvalidQuotas` with all that is wrong in it, or with the format that it has instead.
    """
    subject = named(path)
    with refusing(lambda problem: InvalidQuotas(subject, [problem])):
        text = text_of(path)
    try:
        documents = load_all(text, subject, levels_of)
    except InvalidQuotas as error:
        if (description := format_of_text(text)) is not None:
            raise InvalidQuotas(subject, [f"is {description}"]) from error
        raise
    # also as `kubectl get -o json | jq .items` lists them
    resources = [item for document in documents for item in document.items or (document,)]
    if any(item.mapping is not None and is_manifest(item.mapping) for item in resources):
        return quotas_of_manifests(resources, subject)
    if len(documents) > 1:
        line = documents[1].line
        raise InvalidQuotas(subject, [f"line {line}: a second document; put all rules below one `{QUOTAS}`"])
    document = documents[0] if documents else Located(value={}, line=1)
    return quotas_in(document, subject, text)


def quotas_in(document: Located, subject: str, text: str = "") -> QuotaSet:
    """
    Return the quotas of a document that has only the key `quotas`.

    Raises `InvalidQuotas`, which calls it `subject`; the text serves to recognize other formats.
    """
    content = document.mapping
    problems: list[str] = []
    lacks_key = content is None or QUOTAS not in content
    description = format_of(document)
    if description is None and lacks_key:
        description = format_of_text(text)
    # lacks_key includes that there is no content, which mypy does not see
    if description is not None or content is None or lacks_key:
        hint = "" if description is None else f"; this is {description}"
        raise InvalidQuotas(subject, [f"line 1: expected the key `{QUOTAS}`{hint}"])
    problems += [
        f"line {item.line}: unknown key {key[:60]!r}; known: {QUOTAS}" for key, item in content.items() if key != QUOTAS
    ]
    quotas = rules_of(content[QUOTAS], problems)
    if problems:
        raise InvalidQuotas(subject, problems)
    return quotas


def rules_of(rules: Located, problems: list[str]) -> QuotaSet:
    """
    Return the quotas of a list of rules, at any place of a document.

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
        entity_values = _rule(rule, problems)
        if entity_values is None:
            continue
        entity, values = entity_values
        if entity in lines:
            again = f"{entity} is there already in line {lines[entity]}"
            problems.append(f"line {rule.line}: {again}")
        lines.setdefault(entity, rule.line)
        quotas.setdefault(entity, values)
    return QuotaSet(quotas)


def _rule(rule: Located, problems: list[str]) -> tuple[Entity, Mapping[str, float]] | None:
    """Return the entity and values of one item of the list, None when something is wrong with it."""
    problems_before = len(problems)
    if rule.mapping is None:
        problems.append(f"line {rule.line}: expected keys and values, such as `user:`")
        return None
    names = {kind: _name(kind, rule.mapping[kind], problems) for kind in _KINDS if kind in rule.mapping}
    values = {key: _number(key, item, problems) for key, item in rule.mapping.items() if key not in _KINDS}
    if len(problems) > problems_before:
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
        rule_problems = problems_of(to_admin(entity), values, STORES_INFINITY)
        wrong = [f"{entity}: {problem}" for problem in rule_problems]
    problems += [f"line {rule.line}: {text}" for text in wrong]
    return None if entity is None or wrong else (entity, values)


def _name(kind: str, item: Located, problems: list[str]) -> Name:
    """Return the name or default in a file; record a problem and return an empty name if it is neither."""
    if item.mapping is not None and item.mapping.keys() == {NAME}:
        return _literal(kind, item.mapping[NAME], problems)
    if item.value == DEFAULT_TEXT:
        return DEFAULT
    return _literal(kind, item, problems)


def _literal(kind: str, item: Located, problems: list[str]) -> str:
    """Return a name as it is written; record a problem and return an empty name if it is no text."""
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
    """Return the value of a quota; record a problem and return 0 if it is no number, or the key is unknown."""
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
    """
    Return a document that `quotas_in` reads back as the same quotas.

    Always in the same order, one line for each value.
    """
    if not quotas:
        return f"{QUOTAS}: []\n"
    lines = [f"{QUOTAS}:"]
    for entity, values in quotas.items():
        pairs = [f"{kind}: {_written(name)}" for kind, name in names_of(entity).items()]
        pairs += [f"{key}: {number_text(value)}" for key, value in values.items()]
        lines += [f"  - {pairs[0]}", *(f"    {pair}" for pair in pairs[1:])]
    return "\n".join((*lines, ""))


def _written(name: Name) -> str:
    """Return a name or default as YAML, which `_name` reads."""
    if not isinstance(name, str):
        return DEFAULT_TEXT
    return f"{{{NAME}: {quoted(name)}}}" if name == DEFAULT_TEXT else quoted(name)
