"""Changes from one set of quotas to another, applied to a cluster and read back until they are in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isnan
from typing import Final

from quotascope.clients.errors import AdminRequestFailed
from quotascope.clients.quota_admin import QuotaAdmin, QuotaChange
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

from .errors import InvalidQuotas, NotApplied
from .quota_set import Entity, QuotaSet, in_order, number_text, overruled_by, problems_of, shown, to_admin

UNREACHED: Final[Mapping[str, float]] = {quota_type.quota_key: quota_type.unit.unreached for quota_type in QuotaType}
"""Limits far above what a broker can do: 1 TB/s, 10,000 threads, 1,000,000,000 partitions/s."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """One quota of one entity that is set, changed or removed."""

    entity: Entity
    key: str
    old: float | None
    """Value before; None when there was none."""
    new: float | None
    """Value after; None when the quota is removed."""

    def __str__(self) -> str:
        """Return the change in words: `user alice: producer_byte_rate 1024 -> 2048`."""
        old, new = ("none" if value is None else number_text(value) for value in (self.old, self.new))
        return f"{self.entity}: {self.key} {old} -> {new}"

    def as_json(self) -> dict[str, object]:
        """
        Return the change for programs: the entity as in the Admin API, null for the default.

        An old value that is no number, which Kafka up to 4.3 stores, is `"NaN"`.
        """
        old = "NaN" if self.old is not None and isnan(self.old) else self.old
        return {"entity": to_admin(self.entity), "key": self.key, "old": old, "new": self.new}

    @property
    def for_admin(self) -> QuotaChange:
        """The change as a value of the Admin API."""
        return QuotaChange(entity=to_admin(self.entity), key=self.key, value=self.new)


def difference(old: QuotaSet, new: QuotaSet) -> tuple[RuleChange, ...]:
    """Return the changes from the old quotas to the new ones; none when they are the same."""
    changes = []
    for entity in sorted({*old, *new}, key=in_order):
        before, after = old.get(entity, {}), new.get(entity, {})
        changes += [
            RuleChange(entity=entity, key=key, old=before.get(key), new=after.get(key))
            for key in sorted({*before, *after})
            if before.get(key) != after.get(key)
        ]
    return tuple(changes)


def altered(quotas: QuotaSet, entity: Entity, values: Mapping[str, float | None]) -> QuotaSet:
    """
    Return the quotas with some of one entity set, or removed where the value is None; all others stay.

    Raises `InvalidQuotas` when a controller would refuse it.
    """
    problems = problems_of(to_admin(entity), values)
    if problems:
        raise InvalidQuotas(str(entity), problems)
    merged_values = {**quotas.get(entity, {}), **values}
    present = {key: value for key, value in merged_values.items() if value is not None}
    return QuotaSet({**quotas, entity: present})


def measure_only(quotas: QuotaSet, entity: QuotaEntity, keys: Collection[str]) -> QuotaSet:
    """
    Return the quotas with limits for one entity that no client reaches, so that Kafka measures its usage.

    Existing quotas of the entity stay.

    Kafka measures clients only under types of quota of which there is at least one rule
    (`ClientQuotaManager.quotasEnabled`).

    Raises `InvalidQuotas` for a key that is none of a client's, and when a rule that is there would decide for fewer
    clients.
    """
    problems = []
    tables = quotas.tables()
    present = quotas.get(entity, {})
    for key in keys:
        kind = QuotaType.of_quota_key(key)
        if kind is None:
            close = get_close_matches(key[:60], UNREACHED, n=1)
            suggestion = f"; did you mean {close[0]!r}?" if close else ""
            problems.append(f"{shown(key)} is none of {', '.join(UNREACHED)}{suggestion}")
        elif key not in present and (lost := overruled_by(tables[kind], entity)):
            named = ", ".join(map(str, lost[:_MOST_NAMED]))
            remainder = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
            problems.append(
                f"{key} would overrule the limit of {named}{remainder}, and its clients would be unlimited; "
                f"as there is such a rule, "
                f"Kafka measures every client under {key} already: name the other keys only"
            )
    if problems:
        raise InvalidQuotas(str(entity), problems)
    added = {key: UNREACHED[key] for key in keys if key not in present}
    return altered(quotas, entity, added)


def without(quotas: QuotaSet, entity: Entity, keys: Collection[str] | None) -> QuotaSet:
    """
    Return the quotas without some keys of one entity, or without all of them when `keys` is None.

    Raises `InvalidQuotas` when the entity lacks one of them: most likely another entity was meant.
    """
    present = quotas.get(entity, {})
    absent = [key for key in keys or () if key not in present]
    if absent or not present:
        keys_text = ", ".join(map(shown, absent)) or "quota"
        raise InvalidQuotas(str(entity), [f"has no {keys_text} to remove"])
    remaining = {} if keys is None else {key: value for key, value in present.items() if key not in keys}
    return QuotaSet({**quotas, entity: remaining})


def without_all(quotas: QuotaSet, removed: QuotaSet) -> QuotaSet:
    """
    Return the quotas without the entities and keys of others, whatever their values.

    Raises `InvalidQuotas` when one of them is not there.
    """
    problems = []
    for entity, values in removed.items():
        try:
            quotas = without(quotas, entity, values.keys())
        except InvalidQuotas as error:
            problems.append(f"{entity} {error.problems[0]}")
    if problems:
        raise InvalidQuotas("to remove", problems)
    return quotas


def by_entity(changes: Iterable[RuleChange]) -> dict[Entity, list[RuleChange]]:
    """Group changes by entity, as every tool expects them."""
    groups: dict[Entity, list[RuleChange]] = {}
    for change in changes:
        groups.setdefault(change.entity, []).append(change)
    return groups


_WITHIN_SECONDS = 10.0
_PAUSE_SECONDS = 0.1


def apply_changes(
    admin: QuotaAdmin,
    changes: Sequence[RuleChange],
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """
    Send all changes in one request, each entity once, and read them back.

    The controller stores each entity separately, and the broker that answers learns of it a moment later.

    Raises `NotApplied`, which lists what is in force and what is not, and `ClientError` when the cluster cannot be
    asked.

    Args:
        admin: of the cluster.
        changes: what to set, change and remove.
        clock: seconds that never go back.
        pause: waits for a number of seconds.

    """
    try:
        admin.alter_quotas([change.for_admin for change in changes])
    except AdminRequestFailed as error:
        missing = _missing(admin, changes)
        raise _not_applied(str(error), changes, missing) from error
    deadline = clock() + _WITHIN_SECONDS
    while missing := _missing(admin, changes):
        if clock() >= deadline:
            raise _not_applied("the cluster shows something else", changes, missing)
        pause(_PAUSE_SECONDS)


def _not_applied(reason: str, changes: Sequence[RuleChange], missing: Sequence[RuleChange]) -> NotApplied:
    """Return the error for changes of which some are not in force."""
    applied = len(changes) - len(missing)
    return NotApplied(reason, [str(change) for change in missing], applied)


def _missing(admin: QuotaAdmin, changes: Sequence[RuleChange]) -> list[RuleChange]:
    """Return the changes that the cluster does not show."""
    quotas = QuotaSet.of(admin.describe_quotas())
    return [change for change in changes if quotas.get(change.entity, {}).get(change.key) != change.new]
