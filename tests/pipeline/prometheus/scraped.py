"""A server that has the scrapes of nodes at chosen times, and counts and adds them up as Prometheus does."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.prometheus.nodes import nodes_of
from quotascope.pipeline.prometheus.past import Answer, Past
from quotascope.pipeline.prometheus.promql import HOUR_S

_RANGE: Final = re.compile(r"\[(\d+)ms(?::(\d+)s)?\]")
_WINDOW_S: Final = 600


@dataclass(frozen=True)
class Usage:
    """The produce rate of alice on a node, as one server scraped it."""

    node: str = "1"
    replica: str = ""
    name: str = "kafka_x"
    quota_type: QuotaType = QuotaType.PRODUCE
    is_throttle: bool = False
    user: str = "alice"
    client_id: str = ""
    factor: float = 1.0
    user_label: str | None = "user"
    client_label: str | None = None
    part_labels: tuple[str, ...] = ("instance", "replica")

    @property
    def labels(self) -> Mapping[str, str]:
        return {"instance": f"broker-{self.node}", "replica": self.replica, "user": self.user}


@dataclass
class Scrapes:
    """A server with the times of scrapes of each series, at which its rate was 1 MB/s; also the beat of the nodes."""

    times: Mapping[Usage, Sequence[float]]
    rate: float = 1e6
    selectors: Sequence[str] = ("{beat}",)
    by: tuple[str, ...] = ("instance", "replica")

    @property
    def count(self) -> int:
        return len(self.times)

    @property
    def node_of(self) -> Mapping[tuple[str, ...], str]:
        return {(f"broker-{one.node}", one.replica): one.node for one in self.times}

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        (length_ms, _) = _RANGE.findall(promql)[-1]
        begin = at - (int(length_ms) + 1) / 1_000
        hours = [begin + HOUR_S * number for number in range(1, round((at - begin) / HOUR_S) + 1)]
        answers = []
        for one, times in self.times.items():
            if promql.startswith("(max by (instance,replica) (max_over_time"):
                windows = range(0, HOUR_S, _WINDOW_S)
                samples = [
                    (hour, max(_count(times, hour - ago - _WINDOW_S, hour - ago) for ago in windows)) for hour in hours
                ]
            elif promql.startswith("(max by (instance,replica) (count_over_time"):
                samples = [(hour, _count(times, hour - HOUR_S, hour)) for hour in hours]
            elif promql.startswith("changes"):
                samples = [(at, 0.0)]
            else:
                factor = self.rate if promql.startswith("sum_over_time") else 1.0
                samples = [(at, _count(times, begin, at) * factor)]
            samples = [(hour, value) for hour, value in samples if value or promql.startswith("changes")]
            if samples:
                answers.append(Answer(one.labels, samples))
        return answers


def _count(times: Sequence[float], begin: float, end: float) -> float:
    return float(bisect_right(times, end) - bisect_right(times, begin))


def every(interval_s: float, begin: float, end: float, phase_s: float = 1.0) -> list[float]:
    """Return the times of scrapes between two times."""
    count = int((end - begin - phase_s) // interval_s) + 1
    return [begin + phase_s + interval_s * number for number in range(count)]


def past_of(hours: float, times: Mapping[Usage, Sequence[float]], rate: float = 1e6) -> Past:
    """Return the past of so many hours that a server of these scrapes has."""
    server = Scrapes(times, rate)
    nodes = nodes_of(server, server, 0.0, hours * HOUR_S)
    return Past(server=server, address="", selector="", begin=0.0, end=hours * HOUR_S, series=[*times], nodes=nodes)
