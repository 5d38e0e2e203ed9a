"""
What a table of the samples of a Prometheus costs: `python -m benchmarks prometheus-samples`.

`ingest-prometheus` copies hours of samples of many clients on several brokers from a server into a table, of which
`recommend` then finds the limits; both are commands of their own in one process each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.output import say
from benchmarks.process import cpu_seconds
from benchmarks.prometheus_history import add_options as size_options
from benchmarks.prometheus_history import series_of
from tests.commands import COMMAND
from tests.integration.backfilled import HOUR_S, backfilled
from tests.prometheus.releases import NEWEST, OLDEST


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    seconds: float
    cpu_s: float
    peak_mib: float
    output: str


def cost_of(*words: object) -> Cost:
    """Return the cost of a command, which has to succeed."""
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen([str(COMMAND), *map(str, words)], stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        assert status == 0, words
        output.seek(0)
        return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output.read())


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the size of the history."""
    size_options(parser, clients=1_000)


def main(options: argparse.Namespace) -> int:
    """Print samples per second, their size, and the peak memory of both commands."""
    begin = time.time() // HOUR_S * HOUR_S - options.hours * HOUR_S
    series = list(series_of(options.clients, options.hours, options.every, begin))
    release = NEWEST if options.newest else OLDEST
    with (
        tempfile.TemporaryDirectory() as folder,
        backfilled(Path(folder) / "prometheus", series, release) as prometheus,
    ):
        table = Path(folder) / "samples"
        pid = prometheus.child.pid
        used_s = cpu_seconds(pid)
        server = ("--prometheus", f"http://{prometheus.address}", "--days", options.hours / 24)
        ingest = cost_of("ingest-prometheus", *server, "--into", table, "--engine", "local", "--json")
        server_s = cpu_seconds(pid) - used_s
        samples = json.loads(ingest.output)["samples"]
        recommend = cost_of("recommend", "--samples", table, "--short-log", "--samples-engine", "local", "--json")
        assert len(json.loads(recommend.output)["recommended"]) == options.clients
        # what was merged stays for a day
        merged = [file.stat().st_size for file in table.rglob("*.parquet")]
        say(
            f"{options.clients:,} entities, {options.hours} h, every {options.every} s: {samples / 1e6:.1f} million samples"
        )
        say(f"{sum(merged) / samples:.1f} bytes a sample, with those of files that were merged")
        for name, cost in (("ingest-prometheus", ingest), ("recommend", recommend)):
            say(
                f"{name}: {cost.seconds:.1f} s, {cost.cpu_s:.1f} s of CPU ({samples / cost.cpu_s / 1e3:,.0f} thousand "
                f"samples a second of it), peak memory {cost.peak_mib:.0f} MiB"
            )
        say(f"the server's CPU: {server_s:.1f} s")
    return 0
