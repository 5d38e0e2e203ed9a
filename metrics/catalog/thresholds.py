"""Thresholds that an alert shares with findings, pages and tables; `quotascope.alerts.thresholds` has all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A number that decides whether an alert fires."""

    value: float
    unit: str
    """s, bytes/s, ratio, and so on."""
    meaning: str
    """What is compared with it."""
    reason: str
    """What it means that a value has reached this one: a phrase."""
    change: str
    """Which other value to choose, and when: a phrase."""
    above_one: bool = False
    """True if a ratio is no part of a whole, so that more than 1 can be chosen."""


NEAR_LIMIT: Final = Threshold(
    value=0.9,
    unit="ratio",
    meaning="average utilization of 30 minutes on the busiest broker",
    reason="normal variation needs the last tenth",
    change="0.8 if raising a limit takes days",
)
HANDLERS_IDLE: Final = Threshold(
    value=0.1,
    unit="ratio",
    meaning="share of 5 minutes in which the request handlers of a broker or controller were idle",
    reason="every request waits for a handler",
    change="0.3 for clients that need answers within milliseconds",
)
HEAVY_BYTES: Final = Threshold(
    value=10_000_000.0,
    unit="bytes/s",
    meaning="traffic from which shares are compared",
    reason="a tenth of a 1 Gbit/s network",
    change="a tenth of your network or disk rate",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedThresholds:
    """The values of these thresholds at an installation."""

    near_limit: float = NEAR_LIMIT.value
    handlers_idle: float = HANDLERS_IDLE.value
    heavy_bytes: float = HEAVY_BYTES.value


DEFAULTS: Final = SharedThresholds()
"""The values without a configuration of the alerts."""
