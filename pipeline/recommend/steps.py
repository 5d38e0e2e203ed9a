"""The numbers that limits are made of."""

from __future__ import annotations

import math
from typing import Final

from quotascope.metrics import QuotaType

STEPS: Final = {
    QuotaType.PRODUCE: 1.0,
    QuotaType.FETCH: 1.0,
    QuotaType.REQUEST: 0.01,
    QuotaType.CONTROLLER_MUTATION: 0.01,
}
"""What limits are multiples of: Kafka takes whole bytes/s only; hundredths of a percent and of a mutation/s are fine enough."""
_DIGITS: Final = 3


def limit_of(kind: QuotaType, steps: int) -> float:
    """
    A number of steps as a limit.

    >>> limit_of(QuotaType.REQUEST, 105), limit_of(QuotaType.PRODUCE, 105)
    (1.05, 105.0)
    """
    return steps * STEPS[kind] if STEPS[kind] >= 1 else steps / round(1 / STEPS[kind])


def steps_of(kind: QuotaType, limit: float) -> int:
    """The least number of steps, and at least one, that reaches a limit."""
    return max(1, math.ceil(round(limit / STEPS[kind], 6)))


def rounded_up(steps: int) -> int:
    """
    The next number of three digits and zeros.

    >>> rounded_up(7), rounded_up(1_234_001), rounded_up(999_001)
    (7, 1240000, 1000000)
    """
    scale: int = 10 ** max(0, len(str(steps)) - _DIGITS)
    return -(-steps // scale) * scale
