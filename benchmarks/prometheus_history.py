"""
What `recommend --prometheus` costs a Prometheus server: `python -m benchmarks prometheus-history`.

A server with hours of samples of many clients on several brokers is asked for the limits of all of them. Queries are
divided by time, so the cost of 14 days is that of these hours times their number, and memory is that of one query.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.output import say
from benchmarks.process import cpu_seconds, peak_mib
from tests.integration.backfilled import HOUR_S, Backfill, backfilled
from tests.prometheus.releases import NEWEST, OLDEST

from quotascope.cli.past import PrometheusOptions, open_past
from quotascope.exporter.config import Config
from quotascope.pipeline.prometheus.advice import advise
from quotascope.pipeline.prometheus.past import Answer, Server, Store
from quotascope.pipeline.recommend.policy import Policy

_BROKERS: Final = 10
_SERIES: Final = 10_000
_DAYS: Final = 14


class _Counting:
    """Counts queries and the series of their answers."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.queries, self.series = 0, 0
        self.longest_s = 0.0

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        started = time.perf_counter()
        answers = self._server.ask(promql, at)
        self.longest_s = max(self.longest_s, time.perf_counter() - started)
        self.queries += 1
        self.series += len(answers)
        return answers


def series_of(count: int, hours: int, every_s: int, begin: float) -> Iterator[Backfill]:
    """Yield rates and throttle times of clients, in turn on each broker."""
    times = range(every_s, hours * HOUR_S + 1, every_s)
    for number in range(count):
        labels = {"job": "kafka", "instance": f"broker-{number % _BROKERS}:9404", "user": f"user-{number}"}
        chance = random.Random(number)  # noqa: S311 - a load, no secret
        rates = (
            (begin + at, round(1e6 * (1.1 + math.sin(at / 600 + number)) * chance.uniform(0.9, 1.1))) for at in times
        )
        yield Backfill("kafka_server_Produce_byte_rate", labels, rates)
        yield Backfill("kafka_server_Produce_throttle_time", labels, ((begin + at, 0.0) for at in times))
    for broker in range(_BROKERS):
        labels = {"job": "kafka", "instance": f"broker-{broker}:9404", "id": str(broker)}
        yield Backfill("kafka_server_app_info_StartTimeMs", labels, ((begin + at, 1.7e12) for at in times))


def add_options(parser: argparse.ArgumentParser, clients: int = 2_000) -> None:
    """Declare the size of the history, by default of this number of clients."""
    parser.add_argument("--clients", type=int, default=clients, help="entities, each on one broker")
    parser.add_argument("--hours", type=int, default=6, help="hours of samples")
    parser.add_argument("--every", type=int, default=10, help="scrape interval in seconds")
    parser.add_argument("--newest", action="store_true", help="the newest Prometheus instead of the oldest")


def main(options: argparse.Namespace) -> int:
    """Print the cost, and what 14 days of 10,000 entities cost at that rate."""
    begin = time.time() // HOUR_S * HOUR_S - options.hours * HOUR_S
    series = list(series_of(options.clients, options.hours, options.every, begin))
    release = NEWEST if options.newest else OLDEST
    with (
        tempfile.TemporaryDirectory() as folder,
        backfilled(Path(folder) / "prometheus", series, release) as prometheus,
        open_past(PrometheusOptions(prometheus=f"http://{prometheus.address}"), Config()) as asked,
    ):
        pid = prometheus.child.pid
        idle_mib, used_s = peak_mib(pid), cpu_seconds(pid)
        assert not isinstance(asked.past.server, Store)
        server = _Counting(asked.past.server)
        started = time.perf_counter()
        advice = advise(replace(asked.past, server=server), Policy(short_log=True))
        took_s, cpu_s = time.perf_counter() - started, cpu_seconds(pid) - used_s
        assert len(advice.limits) == options.clients
        samples = 2 * options.clients * asked.past.seconds / options.every
        all_samples = 2 * _SERIES * _DAYS * 24 * HOUR_S / options.every
        say(
            f"{options.clients:,} entities, {options.hours} h, every {options.every} s: {samples / 1e6:.1f} million samples"
        )
        say(
            f"{server.queries} queries, {server.series:,} numbers in their answers; the longest took {server.longest_s:.2f} s"
        )
        say(
            f"{took_s:.1f} s, {cpu_s:.1f} s of the server's CPU; its peak memory {idle_mib:.0f} -> {peak_mib(pid):.0f} MiB"
        )
        factor = all_samples / samples
        say(
            f"14 days of {_SERIES:,} entities: {all_samples / 1e6:,.0f} million samples, "
            f"{cpu_s * factor / 60:.0f} minutes of the server's CPU, {took_s * factor / 60:.0f} minutes"
        )
    return 0
