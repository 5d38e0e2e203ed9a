"""One set of quotas that might be set, how its mutations are counted, and the windows that its quotas are measured by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from quotascope.metrics import InvalidConfig, QuotaType, RuleTable, WindowConfig
from quotascope.quotas import QuotaSet

from ..errors import PipelineError

MOST: Final = 10_000
"""Windows of each sensor, all of which are held in memory."""
LONGEST: Final = 86_400
"""Seconds: a day."""


class MutationPolicy(Enum):
    """What counts controller mutations; the value is what a file calls it."""

    TOKEN_BUCKET = "token-bucket"  # noqa: S105 - no password
    """What brokers have (KIP-599)."""

    BURST_SPREADING = "burst-spreading"
    """The windowed rate of an early draft of KIP-599, for comparison: no broker has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """All quotas that a replay applies: what is not in it is unlimited."""

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


class BadWindows(PipelineError):
    """No cluster has such windows, or a replay does not take them."""


def windows(num: int, size_seconds: int) -> WindowConfig:
    """A number of windows and their length. Raises `BadWindows`."""
    if num > MOST or size_seconds > LONGEST:
        raise BadWindows(f"a replay takes at most {MOST} windows of at most {LONGEST} s")  # fmt: skip
    try:
        return WindowConfig(samples=num, window_seconds=size_seconds)
    except InvalidConfig as error:
        raise BadWindows(str(error)) from None


def windows_of_text(text: str) -> WindowConfig:
    """Windows as a command line gives them, `11x1`: their number and their seconds. Raises `BadWindows`."""
    given = re.fullmatch(r"([0-9]{1,5})x([0-9]{1,5})", text)
    if given is None:
        raise BadWindows(f"windows are given as NUMxSECONDS, such as 11x1, not {text[:60]!r}")  # fmt: skip
    return windows(int(given[1]), int(given[2]))
