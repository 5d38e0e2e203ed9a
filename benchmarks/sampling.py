"""
Short bursts that a scrape sees: `python -m benchmarks sampling`.

A client uses twice its limit for 5 s, once in 60 s, and nothing else; the engine's own Rate of Kafka's default window
(11 x 1 s) measures it. For each pace the phase between bursts and reads is drawn again for every burst.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from typing import Final

from benchmarks.output import say

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.rate import Rate

_BURSTS: Final = 1000
_BURST_MS: Final = 5_000
_PERIOD_MS: Final = 60_000
_STEP_MS: Final = 100
_LIMIT: Final = 1000.0
_CONFIG: Final = MetricConfig(samples=11, time_window_ms=1000)


def utilizations() -> list[float]:
    """Return the utilization every 100 ms of one period, once the rate has settled."""
    rate = Rate()
    values: list[float] = []
    for now_ms in range(0, 3 * _PERIOD_MS, _STEP_MS):
        if now_ms % _PERIOD_MS < _BURST_MS:
            rate.record(_CONFIG, 2 * _LIMIT * _STEP_MS / 1000, now_ms)
        if now_ms >= 2 * _PERIOD_MS:
            values.append(rate.measure(_CONFIG, now_ms) / _LIMIT)
    return values


def greatest_seen(values: list[float], every_s: float, chance: random.Random) -> Iterator[float]:
    """Yield the greatest value of each burst that reads at this pace see."""
    step = int(every_s * 1000 / _STEP_MS)
    for _ in range(_BURSTS):
        yield max(values[chance.randrange(step) :: step])


def add_options(_: argparse.ArgumentParser) -> None:
    """Declare no options."""


def main(_: argparse.Namespace) -> int:
    """Print a line for each pace."""
    values = utilizations()
    chance = random.Random(1)  # noqa: S311 - phases, not secrets
    say(f"greatest utilization of a burst: {max(values):.2f}")
    say("a read every | bursts seen at all | seen at 0.8 or above | median of what is seen")
    for every_s in (60.0, 30.0, 15.0, 10.0, 5.0, 1.0):
        greatest = sorted(greatest_seen(values, every_s, chance))
        at_all = sum(value > 0 for value in greatest) / len(greatest)
        high = sum(value >= 0.8 for value in greatest) / len(greatest)  # noqa: PLR2004 - a usual alert
        say(f"{every_s:10.0f} s | {at_all:18.0%} | {high:20.0%} | {greatest[len(greatest) // 2]:.2f}")
    return 0
