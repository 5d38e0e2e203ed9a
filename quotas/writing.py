"""Quotas as a YAML document that can be kept under version control: always in the same order, one line for each value."""

from __future__ import annotations

import json
from collections.abc import Iterator

import yaml

from quotascope.metrics.entities import Name

from .entity import Entity, names_of
from .number import number_text
from .quota_set import QuotaSet
from .reading import DEFAULT_TEXT, NAME, QUOTAS


def quotas_yaml(quotas: QuotaSet) -> str:
    """A document that `quotas_in` reads back as the same quotas."""
    if not quotas:
        return f"{QUOTAS}: []\n"
    lines = (line for entity in quotas for line in _rule(entity, quotas))
    return "\n".join((f"{QUOTAS}:", *lines, ""))


def _rule(entity: Entity, quotas: QuotaSet) -> Iterator[str]:
    pairs = [f"{kind}: {_name(name)}" for kind, name in names_of(entity).items()]
    pairs += [f"{key}: {number_text(value)}" for key, value in quotas[entity].items()]
    for position, pair in enumerate(pairs):
        yield f"  {'  ' if position else '- '}{pair}"


def _name(name: Name) -> str:
    if not isinstance(name, str):
        return DEFAULT_TEXT
    if name == DEFAULT_TEXT:
        return f"{{{NAME}: {quoted(name)}}}"
    return quoted(name)


def quoted(text: str) -> str:
    r"""
    A text in double quotes, on one line, with all that is unprintable escaped: the same text in YAML 1.1 and 1.2.

    >>> print(quoted('a "b"\n'))
    "a \"b\"\n"
    """
    if text.isascii() and text.isprintable():
        return json.dumps(text)
    dumped: str = yaml.safe_dump(
        text, default_style='"', allow_unicode=text.isprintable(), width=float("inf")
    )
    return dumped.rstrip("\n")
