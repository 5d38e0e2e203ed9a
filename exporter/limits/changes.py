"""What changed between two reads of the configured limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from quotascope.metrics import QuotaEntity, QuotaType

from .model import CONNECTION_KEY, Limits

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChange:
    """One limit that was set, changed or removed."""

    quota_key: str
    entity: str
    """The entity in words, such as ``user 'alice', default client-id``."""
    old: float | None
    """In Kafka's unit; None when there was none."""
    new: float | None
    """In Kafka's unit; None when it was removed."""


def limit_changes(old: Limits, new: Limits) -> list[LimitChange]:
    """The differences between two reads, by quota key."""
    found = list(
        _differences(
            "ip ", CONNECTION_KEY, old.connection_limits, new.connection_limits
        )
    )
    for kind in QuotaType:
        before: Mapping[QuotaEntity, float] = old.rules.get(kind, {})
        after: Mapping[QuotaEntity, float] = new.rules.get(kind, {})
        found.extend(_differences("", kind.quota_key, before, after))
    return found


def _differences(
    prefix: str, key: str, old: Mapping[_Key, float], new: Mapping[_Key, float]
) -> Iterator[LimitChange]:
    if old is new:
        return
    for entity in {**old, **new}:
        before, after = old.get(entity), new.get(entity)
        if before != after:
            yield LimitChange(
                quota_key=key, entity=f"{prefix}{entity}", old=before, new=after
            )


def keep_unchanged(old: Limits, new: Limits) -> Limits:
    """The new limits with the old objects wherever nothing changed, so that what was derived from them holds."""
    rules = {
        kind: old.rules[kind] if old.rules.get(kind) == table else table
        for kind, table in new.rules.items()
    }
    return replace(new, rules=rules)
