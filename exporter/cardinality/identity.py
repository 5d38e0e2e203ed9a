"""Entities as a user thinks of them: the same user and client id on all brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quotascope.metrics import QuotaType

from ..snapshot import EntityUsage

Name = tuple[str, str]
"""User and client id."""
Rows = list[EntityUsage]
"""One identity on all of its nodes."""
Names = dict[Name, Rows]
"""The identities of one quota type."""

HOLD_SECONDS: Final = 300.0
"""How long what was decided of an identity holds against what would change it soon again."""

AWAY_SECONDS: Final = 60.0
"""How long what is known of a name is kept while nobody is called so."""


def identities(usages: Iterable[EntityUsage]) -> dict[QuotaType, Names]:
    """The usages of each identity, by quota type."""
    found: dict[QuotaType, Names] = {kind: {} for kind in QuotaType}
    for usage in usages:
        entity = usage.entity
        names = found[entity.quota_type]
        name = (entity.user, entity.client_id)
        rows = names.get(name)
        if rows is None:
            names[name] = [usage]
        else:
            rows.append(usage)
    return found


def names_of(kind: QuotaType, usages: Iterable[EntityUsage]) -> list[Name]:
    """The identities of one quota type, without their usages."""
    entities = (usage.entity for usage in usages)
    names = (
        (each.user, each.client_id) for each in entities if each.quota_type is kind
    )
    return list(dict.fromkeys(names))
