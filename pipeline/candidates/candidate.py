"""One set of quotas that might be set, and how its mutations are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from quotascope.metrics import QuotaType, RuleTable, WindowConfig
from quotascope.quotas import QuotaSet


class MutationPolicy(Enum):
    """What counts controller mutations; the value is what a file calls it."""

    TOKEN_BUCKET = "token-bucket"  # noqa: S105 - no password
    """What brokers have (KIP-599)."""

    BURST_SPREADING = "burst-spreading"
    """The windowed rate of an early draft of KIP-599, for comparison: no broker has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Quotas to be replayed, all of them: what is not in it is unlimited."""

    name: str
    """What results call it."""

    quotas: QuotaSet
    """By entity and key, as `kafka-configs` would set them. Quotas on addresses have no part in a replay."""

    windows: WindowConfig = field(default_factory=WindowConfig)
    """The brokers' `quota.window.num` and `quota.window.size.seconds`."""

    controller_windows: WindowConfig = field(default_factory=WindowConfig)
    """The controllers' `controller.quota.window.num` and `controller.quota.window.size.seconds`."""

    mutation_policy: MutationPolicy = MutationPolicy.TOKEN_BUCKET

    def tables(self) -> Mapping[QuotaType, RuleTable]:
        """The rules of each quota type, to be resolved by Kafka's precedence."""
        return self.quotas.tables()
