"""
Times our reader of Prometheus text beside those of its peers: `python -m benchmarks text-parser`.

One page of 30,000 samples, a tenth of them quotas of 600 entities as jmx_exporter writes them with the rules of
kafka-2_0_0.yml, the rest other metrics of a broker. All turn the same bytes into numbers, one after the other in each
round; figures are CPU time. Prometheus's parser is that of the newest release that tests run (Go, optimized, built once
into the cache). Both peers give every sample of the page, which is all that they can do; we give the columns of the
quotas. Beside it stands a page of nothing but quotas, where there is nothing to leave out. As in `quotascope serve`,
Python searches for cycles of garbage rarely.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.output import say
from benchmarks.timing import cpu_timed, in_turns, ratios, spread
from prometheus_client.parser import text_string_to_metric_families
from tests.collector.provision import go, run
from tests.prometheus.releases import HERE as PROMETHEUS
from tests.prometheus.releases import newest_version
from tests.provisioning import NotFetched, cached, fetched

from quotascope.exporter.process import collect_garbage_rarely
from quotascope.exporter.sources.prometheus_text import TextReader

LINES = 30_000
GOAL = 4.0
"""Goal of a first page's time by that of Prometheus's parser, with all lines quotas."""
PROGRAM: Final = Path(__file__).parent / "go" / "textparse.go"
_BUILD: Final = ("build", "-mod=readonly")
_TIMES: Final = 5
"""Parses of a page in one round of the Go program, of which the median counts."""

OTHERS = (
    'kafka_network_requestmetrics_totaltimems{{quantile="0.99",request="Fetch{0}"}} {0}.5',
    'kafka_log_log_size{{partition="{0}",topic="topic-{0}"}} 1.0{0}E7',
    'kafka_server_brokertopicmetrics_bytesin_total{{topic="topic-{0}"}} {0}.0',
    'kafka_cluster_partition_underreplicated{{partition="{0}",topic="topic-{0}"}} 0.0',
)
QUOTAS = (
    'kafka_server_quota_byte_rate{{clientId="app-{0}",resource="Produce",user="team%3A{0}"}} {1}',
    'kafka_server_quota_throttle_time{{clientId="app-{0}",resource="Produce",user="team%3A{0}"}} NaN',
    'kafka_server_quota_byte_rate{{clientId="app-{0}",resource="Fetch",user="team%3A{0}"}} {1}',
    'kafka_server_quota_throttle_time{{clientId="app-{0}",resource="Fetch",user="team%3A{0}"}} {1}',
    'kafka_server_quota_request_time{{clientId="app-{0}",resource="Request",user="team%3A{0}"}} {1}',
)
Read = Callable[[bytes], int]
PEER = "prometheus_client"
GO = "Prometheus (Go)"


def page(lines: int, quotas: int, moment: int) -> bytes:
    """
    Return a page with a number of samples, some of them quotas, whose numbers are those of one moment.

    The samples of a metric are one group after its help and type, as the format demands.
    """
    samples = [QUOTAS[line % len(QUOTAS)].format(line // len(QUOTAS), line * 1.37 + moment) for line in range(quotas)]
    samples += [OTHERS[line % len(OTHERS)].format(line) for line in range(lines - quotas)]
    groups: dict[str, list[str]] = {}
    for sample in samples:
        name = sample.partition("{")[0]
        groups.setdefault(name, [f"# HELP {name} Attribute exposed for management", f"# TYPE {name} gauge"]).append(
            sample
        )
    return "\n".join([*(line for group in groups.values() for line in group), ""]).encode()


def prometheus_parser() -> Path:
    """Return the Go program, built where it is not there yet. Raises `NotFetched`."""

    def build(target: Path) -> None:
        target.mkdir()
        for file in (PROGRAM, PROMETHEUS / "go.mod", PROMETHEUS / "go.sum"):
            shutil.copy(file, target)
        run([go(), *_BUILD, "-o", "textparse", "."], target)

    return (
        fetched(cached("textparse", PROGRAM, PROMETHEUS / "go.mod", PROMETHEUS / "go.sum", *_BUILD), build)
        / "textparse"
    )


def by_prometheus(program: Path, answer: bytes) -> tuple[int, float]:
    """Return the number of samples by Prometheus's parser, and its CPU seconds."""
    done = subprocess.run([program, str(_TIMES)], input=answer, capture_output=True, check=True)
    parses = [line.split() for line in done.stdout.decode().splitlines()]
    return int(parses[0][0]), statistics.median(float(seconds) for _, seconds in parses)


def peer(answer: bytes) -> int:
    """Return the number of samples by prometheus_client."""
    families = text_string_to_metric_families(answer.decode())
    return sum(len(family.samples) for family in families)


def first(answer: bytes) -> int:
    """Read an agent's first page: each series is new."""
    return len(TextReader().read(answer).values)


def following() -> Read:
    """Return a function that reads all its other pages."""
    reader = TextReader()
    return lambda answer: len(reader.read(answer).values)


def compare(quotas: int, rounds: int, program: Path | None) -> dict[str, list[float]]:
    """Return the CPU seconds of the peers, of our first read and of our later ones, round by round."""
    again = following()
    warm = page(LINES, quotas, 0)
    by_go = by_prometheus(program, warm)[0] if program else LINES
    if again(warm) != quotas or first(warm) != quotas or peer(warm) != LINES or by_go != LINES:
        raise SystemExit("the two sides do not read the same")
    answer = b""

    def renew(number: int) -> None:
        nonlocal answer
        answer = page(LINES, quotas, number + 1)

    def seconds(read: Read) -> float:
        return cpu_timed(lambda: read(answer))[0]

    sides: dict[str, Callable[[], float]] = {
        PEER: partial(seconds, peer),
        "first page": partial(seconds, first),
        "later pages": partial(seconds, again),
    }
    if program:
        sides = {GO: lambda: by_prometheus(program, answer)[1], **sides}
    return in_turns(sides, rounds, prepare=renew)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--without-go", action="store_true", help="leave Prometheus's parser out, which Go builds")


def main(options: argparse.Namespace) -> int:
    """Print CPU times per sample and ratios to both peers: min / median / max."""
    collect_garbage_rarely()
    try:
        program = None if options.without_go else prometheus_parser()
    except NotFetched as error:
        sys.stderr.write(f"text-parser: {error}; --without-go leaves Prometheus's parser out\n")
        return 1
    for quotas in (LINES // 10, LINES):
        say(f"{LINES} samples, {quotas} of them quotas: CPU ns per sample, times that of each peer")
        times = compare(quotas, options.rounds, program)
        for side, seconds in times.items():
            beside = [
                f"{peer_name} {spread(ratios(seconds, times[peer_name]), '.2f')}"
                for peer_name in (GO, PEER)
                if peer_name in times and peer_name != side
            ]
            say(f"  {side}: {spread(seconds, '.0f', 1e9 / LINES)}; times {', '.join(beside)}")
    if program:
        say(f"Prometheus {newest_version()}; goal of a first page of quotas alone: {GOAL:g} times its parser")
    return 0
