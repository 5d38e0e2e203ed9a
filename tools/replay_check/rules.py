"""The rules that were in force while a log was written: a file of quotas, and the changes that the log shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from quotascope.metrics.engine.quota_factory import QuotaConfig
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.quotas import QuotasError, QuotaSet, from_admin, load, quotas_in, read_quotas

from .log import Line, RequestLog

Key: TypeAlias = tuple[QuotaType, QuotaEntity]
"""Kind and entity of one quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesInForce:
    """Quotas by quota type and entity, and the windows that they are measured over."""

    quotas: Mapping[Key, float]
    config: QuotaConfig = field(default_factory=QuotaConfig)

    def under(self, release: KafkaRelease) -> RulesInForce:
        """Return the same rules as a release of Kafka follows them."""
        client, controller = (
            replace(windows, release=release) for windows in (self.config.client, self.config.controller)
        )
        return replace(self, config=QuotaConfig(client=client, controller=controller))


def read_rules(path: Path) -> RulesInForce:
    """Return the rules in a file of quotas (docs/guides/quotas.md). Raises `InvalidQuotas`."""
    return _rules(read_quotas(path))


def rules_of_text(text: str) -> RulesInForce:
    """Return the rules in a text of a file of quotas."""
    return _rules(quotas_in(load(text, "rules"), "rules"))


def _rules(quotas: QuotaSet) -> RulesInForce:
    """Return the rules that apply to requests; rules for addresses count connections, which no request log has."""
    rules = ((QuotaType.of_quota_key(key), entity, value) for entity, key, value in quotas.items_by_key())
    return RulesInForce(
        quotas={
            (kind, entity): value
            for kind, entity, value in rules
            if kind is not None and isinstance(entity, QuotaEntity)
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedChange:
    """A change of one quota of one entity, and its time."""

    at_ms: int
    """Epoch ms; brokers apply a change within milliseconds."""
    key: Key
    value: float | None
    """New value; None removes the rule."""


def changes_in(log: RequestLog) -> list[TimedChange]:
    """
    Return the changes of quotas by AlterClientQuotas in a log, in order of time.

    The two lines of a forwarded request give the same change twice, which has no effect.
    """
    changes = [
        change
        for request in log.requests
        if request.api_key == ApiKey.ALTER_CLIENT_QUOTAS
        for change in _changes(log.messages[request.line], request.completed_ms)
    ]
    return sorted(changes, key=lambda change: change.at_ms)


def timed(rules: RulesInForce, changes: list[TimedChange]) -> tuple[Mapping[Key, float], list[TimedChange]]:
    """
    Return the rules that were in force when the log begins, and the changes that are applied later.

    The file of quotas has no times. If the log shows that a quota was set to its value in the file, the quota did not
    exist before, and follows the changes of the log. Any other quota of the file is taken to have existed all the time,
    and a quota that is not in the file to have never existed.
    """
    changed_keys = {
        change.key for change in changes if change.value is not None and rules.quotas.get(change.key) == change.value
    }
    start = {key: value for key, value in rules.quotas.items() if key not in changed_keys}
    return start, [change for change in changes if change.key in changed_keys]


def _changes(message: Line, completed_ms: int) -> Iterator[TimedChange]:
    """Yield the changes of quotas that an AlterClientQuotas request made."""
    request, response = message.request, message.response
    if not request or not response or request.validate_only:
        return
    for entry, answer in zip(request.entries, response.entries, strict=False):
        try:
            entity = from_admin({part.entity_type: part.entity_name for part in entry.entity})
        except QuotasError:
            continue
        for operation in () if answer.error_code else entry.ops:
            kind = QuotaType.of_quota_key(operation.key)
            value = None if operation.remove else operation.value
            if kind is not None and isinstance(entity, QuotaEntity):
                yield TimedChange(at_ms=completed_ms, key=(kind, entity), value=value)
