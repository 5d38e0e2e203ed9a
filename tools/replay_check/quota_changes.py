"""Quotas that were set or removed while the log was written: AlterClientQuotas is a request, too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.quotas import QuotasError, from_admin

from .apis import ALTER_CLIENT_QUOTAS
from .log import RequestLog, rows
from .rules import Key, Rules

Json: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """One quota of one entity from a moment on."""

    at_ms: int
    """Epoch ms; brokers apply a change within milliseconds."""
    key: Key
    value: float | None
    """None removes it."""


def quota_changes(log: RequestLog) -> list[QuotaChange]:
    """The changes that a log shows, in their order; a forwarded request shows them twice, which changes nothing."""
    found = [
        change
        for line, completed_ms, api_key in rows(
            log.requests, "line", "completed", "api_key"
        )
        if api_key == ALTER_CLIENT_QUOTAS
        for change in _changes(log.messages[line], completed_ms)
    ]
    return sorted(found, key=lambda change: change.at_ms)


def timed(
    rules: Rules, changes: list[QuotaChange]
) -> tuple[Mapping[Key, float], list[QuotaChange]]:
    """
    The rules that were in force when the log begins, and what became of them since.

    The file says which rules, the log since when: a quota that the log shows being set to the file's value was not there before, and
    follows the log. Any other quota of the file was there all the time, whatever the log says, and a quota that is not in the file never.
    """
    shown = [
        change
        for change in changes
        if change.value is not None and rules.quotas.get(change.key) == change.value
    ]
    known = {change.key for change in shown}
    start = {key: value for key, value in rules.quotas.items() if key not in known}
    return start, [change for change in changes if change.key in known]


def _changes(message: Json, completed_ms: int) -> Iterator[QuotaChange]:
    request, response = message["request"], message["response"]
    if not request or not response or request["validateOnly"]:
        return
    for entry, answer in zip(request["entries"], response["entries"], strict=False):
        entity = _entity(entry["entity"])
        if answer["errorCode"] or not isinstance(entity, QuotaEntity):
            continue
        for operation in entry["ops"]:
            kind = QuotaType.of_quota_key(operation["key"])
            value = None if operation["remove"] else operation["value"]
            if kind is not None:
                yield QuotaChange(at_ms=completed_ms, key=(kind, entity), value=value)


def _entity(parts: Json) -> object:
    try:
        return from_admin({part["entityType"]: part["entityName"] for part in parts})
    except QuotasError:
        return None
