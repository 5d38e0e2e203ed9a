"""
Times whole scrapes of one real broker by quotascope and by jmx_exporter, side by side: `make bench-scrape`.

The broker has 5,000 pairs of user and client id, each with three quotas. jmx_exporter runs in it twice: `complete` reads
all beans, as it does with the rules of its examples, and `allowlisted` the beans that quotascope asks Jolokia for. Before
each round a tenth of the clients send something, and a hundredth of them are new. All agents are scraped as Prometheus does it:
for OpenMetrics, in gzip. CPU is that of the broker's process and of the exporter's, from the request to the last byte.
"""

import argparse
import gzip
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.broker import Broker
from rich.console import Console
from rich.progress import track
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
TICKS = os.sysconf("SC_CLK_TCK")
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
    """Who is asked, by whom it is answered, and how that went."""

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


def cpu(pid: int | None) -> float:
    """Return the CPU seconds that a process has used."""
    if pid is None:
        return 0.0
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / TICKS


def scrape(rival: Rival, broker: Broker) -> Scrape:
    """Ask one of them."""
    before = cpu(broker.pid), cpu(rival.exporter)
    seconds, text = fetch(rival.url)
    after = cpu(broker.pid), cpu(rival.exporter)
    names = (b"kafka_server_quota", b"kafka_quota_")
    series = sum(line.startswith(names) for line in text.splitlines())
    assert series > CLIENTS, f"{rival.url} shows {series} quota series"
    return Scrape(seconds, after[0] - before[0], after[1] - before[1], len(text), series)


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
    """Let all agents scrape the same broker in turns. Returns also the CPU seconds that it uses in a second by itself."""
    chance = random.Random(7)  # noqa: S311 - no secrets here
    names = [f"client-{at:06d}" for at in range(CLIENTS)]
    with tempfile.TemporaryDirectory(prefix="quotascope-bench-") as name:
        folder = Path(name)
        with Broker(folder, rules).running() as broker:
            broker.use(names)
            with quotascope(broker, folder) as ours:
                rivals = {
                    OURS: ours,
                    "jmx_exporter, complete": Rival(broker.agents.complete),
                    "jmx_exporter, allowlisted": Rival(broker.agents.listed),
                }
                steps = range(WARM_UP + rounds)
                for step in track(steps, "scraping", console=Console(stderr=True)):
                    fresh = [f"fresh-{step}-{at}" for at in range(CLIENTS // 100)]
                    broker.use([*chance.sample(names, CLIENTS // 10), *fresh])
                    one_round(list(rivals.values()), broker, step)
                idle = -cpu(broker.pid)
                time.sleep(IDLE_SECONDS)
                idle = (idle + cpu(broker.pid)) / IDLE_SECONDS
    for rival in rivals.values():
        del rival.scrapes[:WARM_UP]
    return rivals, idle


def one_round(rivals: Sequence[Rival], broker: Broker, step: int) -> None:
    """Ask each of them once; another one begins in the next round."""
    first = step % len(rivals)
    for rival in (*rivals[first:], *rivals[:first]):
        rival.scrapes.append(scrape(rival, broker))


def table(rivals: dict[str, Rival]) -> Table:
    """Return the results as people read them."""
    shown = Table(title=f"One scrape of {CLIENTS:,} clients with three quotas each")
    shown.add_column("")
    for heading in (
        "seconds",
        "times ours (min - max)",
        "goal",
        "broker CPU s",
        "exporter CPU s",
        "series",
        "MB",
    ):
        shown.add_column(heading, justify="right")
    ours = rivals[OURS]
    for name, rival in rivals.items():
        pairs = zip(rival.scrapes, ours.scrapes, strict=True)
        ratios = sorted(their.seconds / our.seconds for their, our in pairs)
        times = f"{statistics.median(ratios):.1f} ({ratios[0]:.1f} - {ratios[-1]:.1f})"
        shown.add_row(
            name,
            f"{rival.median(lambda each: each.seconds):.3f}",
            "" if rival is ours else times,
            f"{GOALS[name]:g}" if name in GOALS else "",
            f"{rival.median(lambda each: each.broker):.2f}",
            f"{rival.median(lambda each: each.exporter):.2f}",
            f"{rival.median(lambda each: each.series):,.0f}",
            f"{rival.median(lambda each: each.size) / 1e6:.1f}",
        )
    return shown


def main() -> int:
    """Print the table and perhaps write it as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rules", type=Path, default=RULES, help="rules of jmx_exporter")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    options = parser.parse_args()
    rivals, idle = run(options.rounds, options.rules)
    Console().print(table(rivals))
    Console().print(f"Without a scrape, the broker uses {idle:.2f} CPU s in a second.")
    if options.json:
        content = {name: asdict(rival) for name, rival in rivals.items()}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
