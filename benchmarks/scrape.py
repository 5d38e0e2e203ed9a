"""
Times whole scrapes of one real broker by quotascope, jmx_exporter and Strimzi's reporter: `make bench-scrape`.

The broker has 5,000 pairs of user and client id, each with three quotas. jmx_exporter runs in it twice: `complete`
reads all beans, as it does with the rules of its examples, and `allowlisted` the beans that quotascope asks Jolokia
for. Strimzi's reporter has all metrics, without an allowlist. Before each round a tenth of the clients send something,
and a hundredth of them are new. All agents are scraped as Prometheus does it: for OpenMetrics, in gzip. CPU is that of
the broker's process and of the exporter's, from the request to the last byte.
"""

import argparse
import gzip
import http.client
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.broker import Broker
from benchmarks.output import write_json
from benchmarks.process import cpu_seconds
from benchmarks.timing import in_turns, ratios, spread
from rich.console import Console
from rich.table import Table
from tests.cluster.agents import RULES
from tests.cluster.ports import free_port

CLIENTS = 5_000
WARM_UP = 4
"""Rounds before any counts: a JVM compiles what it does often."""
HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
    "Accept-Encoding": "gzip",
}
GOALS = {"jmx_exporter, complete": 5.0, "jmx_exporter, allowlisted": 1.0}
OURS = "quotascope"
QUOTA_SERIES = (
    b"kafka_server_quota",
    b"kafka_quota_",
    b"kafka_server_produce_",
    b"kafka_server_fetch_",
    b"kafka_server_request_",
)
"""Beginnings of the names of quota series, of Strimzi's reporter the last ones."""
READY_SECONDS = 60
IDLE_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Scrape:
    """One scrape: seconds, CPU seconds of broker and exporter, size of the text, its quota series."""

    seconds: float
    broker: float
    exporter: float
    size: int
    series: int


@dataclass(slots=True)
class Rival:
    """Exporter under comparison, its client, and its scrapes."""

    url: str
    exporter: int | None = None
    """The process of an exporter that is not in the broker."""
    scrapes: list[Scrape] = field(default_factory=list)

    def median(self, figure: Callable[[Scrape], float]) -> float:
        """Return the median of one figure."""
        return statistics.median(map(figure, self.scrapes))


def fetch(url: str) -> tuple[float, bytes]:
    """Return the seconds of a request, and the text of the answer."""
    parts = urlsplit(url)
    start = time.perf_counter()
    link = http.client.HTTPConnection(parts.netloc, timeout=120)
    link.request("GET", parts.path, headers=HEADERS)
    answer = link.getresponse()
    body = answer.read()
    seconds = time.perf_counter() - start
    link.close()
    assert answer.status == http.HTTPStatus.OK, answer.status
    packed = answer.getheader("Content-Encoding") == "gzip"
    return seconds, gzip.decompress(body) if packed else body


def scrape(rival: Rival, broker: Broker) -> Scrape:
    """Ask one of them."""
    cpu_before = cpu_seconds(broker.pid), cpu_seconds(rival.exporter)
    seconds, text = fetch(rival.url)
    cpu_after = cpu_seconds(broker.pid), cpu_seconds(rival.exporter)
    series = sum(line.startswith(QUOTA_SERIES) for line in text.splitlines())
    assert series > CLIENTS, f"{rival.url} shows {series} quota series"
    return Scrape(seconds, cpu_after[0] - cpu_before[0], cpu_after[1] - cpu_before[1], len(text), series)


@contextmanager
def quotascope(broker: Broker, folder: Path) -> Iterator[Rival]:
    """Our exporter in a process of its own."""
    port = free_port()
    options = {
        "--source": f"jolokia={broker.agents.jolokia}",
        "--bootstrap-servers": broker.address,
        "--address": "127.0.0.1",
        "--port": str(port),
    }
    words = [word for option in options.items() for word in option]
    environment = {**os.environ, "QUOTASCOPE_COLLECTION__MAX_AGE_SECONDS": "0"}
    program = Path(sys.executable).with_name("quotascope")
    with (folder / "exporter.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", *words], stderr=log, env=environment)
    try:
        wait_until_ready(f"http://127.0.0.1:{port}/-/ready")
        yield Rival(f"http://127.0.0.1:{port}/metrics", process.pid)
    finally:
        process.terminate()
        process.wait(30)


def wait_until_ready(url: str) -> None:
    """Wait for an answer that is no error."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            fetch(url)
        except (OSError, AssertionError):
            assert time.monotonic() < deadline, f"{url} does not get ready"
            time.sleep(0.2)
        else:
            return


def run(rounds: int, rules: Path) -> tuple[dict[str, Rival], float]:
    """
    Let all agents scrape the same broker in turns.

    Returns also the CPU seconds that it uses in a second by itself.
    """
    chance = random.Random(7)  # noqa: S311 - no secrets here
    names = [f"client-{number:06d}" for number in range(CLIENTS)]
    with tempfile.TemporaryDirectory(prefix="quotascope-bench-") as name:
        folder = Path(name)
        with Broker(folder, rules).running() as broker:
            broker.use(names)
            with quotascope(broker, folder) as ours:
                rivals = {
                    OURS: ours,
                    "jmx_exporter, complete": Rival(broker.agents.complete),
                    "jmx_exporter, allowlisted": Rival(broker.agents.listed),
                    "Strimzi's reporter": Rival(broker.agents.strimzi),
                }

                def use(step: int) -> None:
                    fresh = [f"fresh-{step}-{number}" for number in range(CLIENTS // 100)]
                    broker.use([*chance.sample(names, CLIENTS // 10), *fresh])

                sides = {name: partial(scrape, rival, broker) for name, rival in rivals.items()}
                for rival, scrapes in in_turns(sides, rounds, warm_up=WARM_UP, title="scraping", prepare=use).items():
                    rivals[rival].scrapes = scrapes
                idle = -cpu_seconds(broker.pid)
                time.sleep(IDLE_SECONDS)
                idle = (idle + cpu_seconds(broker.pid)) / IDLE_SECONDS
    return rivals, idle


def table(rivals: dict[str, Rival]) -> Table:
    """Return the results as people read them."""
    result_table = Table(title=f"One scrape of {CLIENTS:,} clients with three quotas each")
    result_table.add_column("")
    for heading in (
        "seconds",
        "times ours: min / median / max",
        "goal",
        "broker CPU s",
        "exporter CPU s",
        "series",
        "MB",
    ):
        result_table.add_column(heading, justify="right")
    ours = rivals[OURS]
    for name, rival in rivals.items():
        seconds, our_seconds = ([scrape.seconds for scrape in side.scrapes] for side in (rival, ours))
        result_table.add_row(
            name,
            f"{rival.median(lambda scrape: scrape.seconds):.3f}",
            "" if rival is ours else spread(ratios(seconds, our_seconds), ".1f"),
            f"{GOALS[name]:g}" if name in GOALS else "",
            f"{rival.median(lambda scrape: scrape.broker):.2f}",
            f"{rival.median(lambda scrape: scrape.exporter):.2f}",
            f"{rival.median(lambda scrape: scrape.series):,.0f}",
            f"{rival.median(lambda scrape: scrape.size) / 1e6:.1f}",
        )
    return result_table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rules", type=Path, default=RULES, help="rules of jmx_exporter")
    parser.add_argument("--json", type=Path, help="file to write the results to")


def main(options: argparse.Namespace) -> int:
    """Print the table and perhaps write it as JSON."""
    rivals, idle = run(options.rounds, options.rules)
    Console().print(table(rivals))
    Console().print(f"Without a scrape, the broker uses {idle:.2f} CPU s in a second.")
    write_json(options.json, {name: asdict(rival) for name, rival in rivals.items()})
    return 0
