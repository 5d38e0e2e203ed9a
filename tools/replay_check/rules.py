"""
The rules that were in force while a log was written, as a JSON file.

::

    {"rules": [{"entity": {"user": "alice", "client-id": null}, "values": {"producer_byte_rate": 1048576}}],
     "config": {"quota.window.num": 11}}

An entity's `null` is its default; `config` holds the windows where they are not Kafka's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
import orjson

from quotascope.metrics import (
    InvalidConfig,
    KafkaRelease,
    QuotaConfig,
    QuotaEntity,
    QuotaType,
)
from quotascope.metrics.manager_config import ManagerConfig
from quotascope.pipeline.errors import InvalidRules
from quotascope.quotas import QuotasError, QuotaSet, from_admin, problems_of

Key: TypeAlias = tuple[QuotaType, QuotaEntity]
"""One quota: of what kind, for whom."""

_WRONG: Final = (ValueError, OverflowError, InvalidConfig, QuotasError)
_HELP: Final = "docs/whatif.md shows such a file"
_WINDOWS: Final = ("quota.window.num", "quota.window.size.seconds")


class Rule(msgspec.Struct):
    """What is set for one entity; null is its default."""

    entity: dict[str, str | None]
    values: dict[str, float]


class Document(msgspec.Struct):
    """The whole file; what else it holds is passed over."""

    rules: list[Rule]
    config: dict[str, Annotated[int, msgspec.Meta(lt=1 << 31)]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Quotas by kind and entity, and the windows they are measured over."""

    quotas: Mapping[Key, float]
    config: QuotaConfig = field(default_factory=QuotaConfig)

    def under(self, release: KafkaRelease) -> Rules:
        """The same as a release of Kafka follows them."""
        return replace(
            self,
            config=QuotaConfig(
                client=replace(self.config.client, release=release),
                controller=replace(self.config.controller, release=release),
            ),
        )


def read_rules(path: Path) -> Rules:
    """The rules in a file. Raises `InvalidRules` when it cannot be read, or holds what no cluster would."""
    try:
        return rules_of_text(path.read_bytes())
    except OSError as error:
        raise InvalidRules(f"{path}: {error}") from error
    except _WRONG as error:
        raise InvalidRules(f"{path}: {error}; {_HELP}") from error


def rules_of_text(text: str | bytes) -> Rules:
    """The rules in JSON of that shape. Raises one of `_WRONG`."""
    document = msgspec.convert(orjson.loads(text), Document)
    quotas: dict[Key, float] = {}
    for rule in document.rules:
        problems = problems_of(rule.entity, rule.values)
        if problems:
            raise ValueError("; ".join(problems))
        quotas |= quotas_of(QuotaSet({from_admin(rule.entity): rule.values}))
    return Rules(quotas=quotas, config=_windows(document.config))


def quotas_of(quotas: QuotaSet) -> dict[Key, float]:
    """What of some quotas a request meets: those of addresses count connections, which no request log tells of."""
    found = (
        (QuotaType.of_quota_key(key), entity, value)
        for entity, key, value in quotas.items_by_key()
    )
    return {
        (kind, entity): value
        for kind, entity, value in found
        if kind is not None and isinstance(entity, QuotaEntity)
    }


def _windows(config: Mapping[str, int]) -> QuotaConfig:
    client, controller = (
        ManagerConfig(
            samples=config.get(prefix + _WINDOWS[0], 11),
            window_seconds=config.get(prefix + _WINDOWS[1], 1),
        )
        for prefix in ("", "controller.")
    )
    for windows in (client, controller):
        windows.metric_config(None)
    return QuotaConfig(client=client, controller=controller)
