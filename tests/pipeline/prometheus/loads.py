"""Loads of one client, the rates that Kafka's own Rate makes of them, and the limit that the request log gives."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from tests.pipeline.recommend.rows import MONDAY, history, produced

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.recommend.need import needs
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, limit_of

STEP_MS: Final = 500
HOURS: Final = 6
_CONFIG: Final = MetricConfig(samples=11, time_window_ms=1000)
_MEAN: Final = 1_000_000.0
"""Bytes/s of a load while it is on."""

Load = Callable[[float, random.Random], float]
"""Bytes/s at a time in seconds."""


def _spikes(at: float, chance: random.Random) -> float:
    """Return the load of a client with a spike of 30 s at a drawn time of each 10 minutes."""
    start = random.Random(int(at // 600) + 7).uniform(0, 570)  # noqa: S311 - a load, no secret
    return _MEAN * (5.0 if start <= at % 600 < start + 30 else 0.5) * chance.uniform(0.95, 1.05)


LOADS: Final[dict[str, Load]] = {
    "steady": lambda _, chance: _MEAN * chance.uniform(0.95, 1.05),
    "sine": lambda at, _: _MEAN * (1.1 + math.sin(2 * math.pi * at / 1800)),
    "ramp": lambda at, _: _MEAN * (0.1 + at / (HOURS * 3600)),
    "batch": lambda at, _: _MEAN if at % 3600 < 1200 else 0.0,
    "lognormal": lambda _, chance: _MEAN * chance.lognormvariate(0.0, 0.8),
    "spikes": _spikes,
    "5 s a minute": lambda at, _: 4 * _MEAN if at % 60 < 5 else 0.0,
    "micro-batch": lambda at, _: 4 * _MEAN if at % 30 < 1 else 0.0,
}


@cache
def requests(name: str, seed: int, hours: int = HOURS) -> Sequence[tuple[int, int]]:
    """Return the requests of a load: ms after `MONDAY`, and bytes."""
    chance, load = random.Random(seed), LOADS[name]  # noqa: S311 - a load, no secret
    offset = chance.uniform(0, 60)
    sizes = (
        (at, round(load(at / 1_000 + offset, chance) * STEP_MS / 1_000)) for at in range(0, hours * 3_600_000, STEP_MS)
    )
    return [(at, size) for at, size in sizes if size]


@cache
def rates(name: str, seed: int, hours: int = HOURS) -> Sequence[float]:
    """Return the byte rate that a broker shows at the end of each second."""
    rate, sent, values, place = Rate(), requests(name, seed, hours), [], 0
    for now_ms in range(1_000, hours * 3_600_000 + 1, 1_000):
        while place < len(sent) and sent[place][0] < now_ms:
            rate.record(_CONFIG, float(sent[place][1]), sent[place][0])
            place += 1
        values.append(rate.measure(_CONFIG, now_ms) if place else 0.0)
    return values


@cache
def limit_by_log(name: str, seed: int, hours: int = HOURS) -> float:
    """Return the lowest limit that `recommend` finds in the request log of the load."""
    rows = history(produced(at, size) for at, size in requests(name, seed, hours))
    policy = Policy(share=0.01, kinds=[QuotaType.PRODUCE])
    (need,) = needs(rows, policy, ClusterWindows())
    return limit_of(need.kind, need.steps)


def scraped(name: str, seed: int, every_s: int, phase_s: int = 0) -> list[tuple[float, float]]:
    """Return the samples of a Prometheus: Unix time in seconds, and bytes/s."""
    values = rates(name, seed)
    return [(MONDAY / 1_000 + at + 1, values[at]) for at in range(phase_s, len(values), every_s)]
