"""The lowest limit that is good enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

Good = Callable[[Sequence[int]], Sequence[bool]]
"""Which of some limits (in steps of their unit) are good enough; if one is, every higher one is."""

AT_ONCE: Final = 15
"""Limits that are tried in one pass: each pass leaves a sixteenth."""


def lowest(good: Good, high: int) -> int:
    """
    Return the lowest whole number from 1 to `high` that is good; `high` is taken to be.

    It is found exactly, in as many passes as `high` has hexadecimal digits, since goodness does not end as limits rise.

    >>> lowest(lambda limits: [limit >= 1_234 for limit in limits], 1_000_000)
    1234
    """
    bad, best = 0, high
    while best - bad > 1:
        tried = _between(bad, best)
        verdicts = good(tried)
        bad = max((each for each, ok in zip(tried, verdicts, strict=True) if not ok), default=bad)  # fmt: skip
        best = min((each for each, ok in zip(tried, verdicts, strict=True) if ok and each > bad), default=best)  # fmt: skip
    return best


def _between(bad: int, best: int) -> Sequence[int]:
    inner = range(bad + 1, best)
    if len(inner) <= AT_ONCE:
        return inner
    return [
        bad + (best - bad) * part // (AT_ONCE + 1) for part in range(1, AT_ONCE + 1)
    ]
