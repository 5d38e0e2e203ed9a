"""
The demo with a Prometheus beside it, which has our rules, and the dashboards in a folder: `make demo-stack`.

All of it listens on the loopback interface, lives in one temporary folder, and ends with Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.integration.child import Child
from tests.integration.eventually import eventually
from tests.integration.prometheus import Prometheus

from quotascope.alerts import Site
from quotascope.alerts.files import write as write_rules
from quotascope.alerts.settings import Profile
from quotascope.alerts.thresholds import THROTTLED
from quotascope.dashboards.files import write as write_dashboards
from quotascope.dashboards.scope import Scope
from quotascope.demo import CAST, Role, Simulation
from quotascope.demo.cast import EVENING_MS, SALE, TESTS
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import LogConfig
from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.exporter.exposition import TEXT, Renderer
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.logs import configure_logs
from quotascope.exporter.snapshot import OwnHealth, Sampling
from quotascope.metrics import catalog

CLUSTER = "demo"
STEP_MS = 25
_HOST = "127.0.0.1"
_QUIET = [role for role in CAST if role not in {*SALE, TESTS}]
_DAY_SECONDS = 24 * 3600
_SCRAPE_SECONDS = 5
_READY_SECONDS = 60
_TREND_SECONDS = 5 * 3600
"""Seconds of the past for which utilization is known: forecasts need four hours."""
_DAY_STEP_SECONDS = 300
_TREND_STEP_SECONDS = 15
_SAMPLE = re.compile(r"(\w+(?:\{.*\})?) (\S+)")


class CannotStart(Exception):
    """Something that the stack needs is missing or in use; the message says what to do."""


async def scrapes(
    cast: Sequence[Role], seconds: int, every_seconds: int, start_ms: int = 0
) -> AsyncIterator[dict[str, float]]:
    """
    Yield each scrape of the demo for some seconds, on a clock of its own.

    A scrape is the numbers by series; the first one comes after one interval.
    """
    now_ms = start_ms
    simulation = Simulation(now_ms, cast)
    limits = LimitsRefresh(EmbeddedLimits(simulation.quotas, "1", lambda: now_ms, 11.0), 5.0)
    source = EmbeddedSource("demo", simulation.registry, "1", lambda: now_ms, simulation.broker.beans)
    collection = Collection(
        [source], limits, 0.0, clock=lambda: now_ms / 1_000, own_health=lambda: OwnHealth(sampling=Sampling())
    )
    renderer = Renderer(CLUSTER)
    for past_ms in range(0, seconds * 1_000 + 1, STEP_MS):
        now_ms = start_ms + past_ms
        simulation.advance(now_ms)
        if past_ms and past_ms % (every_seconds * 1_000) == 0:
            await limits.refresh()
            snapshot = await collection.snapshot(5.0)
            text = renderer.render(snapshot, now_ms / 1_000, TEXT).decode()
            samples = map(_SAMPLE.fullmatch, text.splitlines())
            yield {sample[1]: float(sample[2]) for sample in samples if sample}


def usual() -> dict[str, float]:
    """
    Return the values that our rules record of the demo's cluster in a usual hour, by series.

    They are taken from two quiet minutes of the engine. So a Prometheus that starts with them finds a spike unusual, as
    one with a day of data would.
    """
    before, after = asyncio.run(_quiet_minutes())

    def per_second(family: catalog.Family) -> float:
        grown = (after[name] - before[name] for name in _of(family, after))
        return sum(grown) / 120

    throttled = _of(catalog.THROTTLE_TIME_SECONDS, after).values()
    rate = per_second(catalog.REQUEST_THROTTLED_SECONDS)
    refused = per_second(catalog.THROTTLING_ERRORS)
    cluster = f'cluster="{CLUSTER}"'
    return {
        f"cluster:kafka_quota_request_throttled_seconds:rate5m{{{cluster}}}": rate,
        f"cluster:kafka_quota_throttled_entities:count{{{cluster}}}": float(
            sum(seconds > THROTTLED.value for seconds in throttled)
        ),
        f'cluster:kafka_quota_throttling_errors:rate5m{{{cluster},request="CreateTopics"}}': refused,
    } | _of(catalog.UTILIZATION, after)


async def _quiet_minutes() -> tuple[dict[str, float], dict[str, float]]:
    _, before, _, after = [scrape async for scrape in scrapes(_QUIET, 240, 60)]
    return before, after


def _of(family: catalog.Family, numbers: dict[str, float]) -> dict[str, float]:
    return {series: value for series, value in numbers.items() if series.startswith(f"{family.name}{{")}


def earlier(day: Mapping[str, float], now: float) -> Iterator[str]:
    """Yield a day with these numbers up to now, in seconds since 1970, as OpenMetrics for promtool."""
    end = int(now) - 60
    for series, value in day.items():
        past, step = _DAY_SECONDS, _DAY_STEP_SECONDS
        scraped = series
        if ":" not in series:
            past, step = _TREND_SECONDS, _TREND_STEP_SECONDS
            scraped = series.replace("{", '{job="quotascope",', 1)
        for time_s in range(end - past, end + 1, step):
            yield f"{scraped} {value!r} {time_s}\n"
    yield "# EOF\n"


def fill(folder: Path, lines: Iterable[str]) -> None:
    """
    Make samples, as OpenMetrics, the data of a Prometheus that is to start in this folder.

    Raises ``CannotStart``.
    """
    check_programs()
    text = folder / "history.txt"
    text.write_text("".join(lines))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
    process = subprocess.run([*command, str(text), str(folder / "data")], check=False, capture_output=True, text=True)
    if process.returncode:
        raise CannotStart(f"promtool cannot write the history: {process.stderr.strip()}")
    text.unlink()


def configuration(folder: Path, targets: Sequence[str], scrape_seconds: int) -> dict[str, Any]:
    """
    Return the configuration of a Prometheus with all our rules, which are written to the folder.

    Each target is an exporter of the demo's cluster.
    """
    rules = write_rules(folder / "rules", Site(profile=Profile.ALL))
    return {
        "global": {
            "scrape_interval": f"{scrape_seconds}s",
            "scrape_timeout": f"{scrape_seconds}s",
            "evaluation_interval": f"{scrape_seconds}s",
        },
        "rule_files": [str(rule_file) for rule_file in rules],
        "scrape_configs": [
            {
                "job_name": "quotascope",
                "static_configs": [{"targets": [*targets]}],
                "metric_relabel_configs": [{"target_label": "cluster", "replacement": CLUSTER}],
            }
        ],
    }


def check_programs() -> None:
    """Raise ``CannotStart`` without Prometheus."""
    for program in ("prometheus", "promtool"):
        if not shutil.which(program):
            raise CannotStart(f"there is no {program}: install it (on Debian: apt-get install prometheus)")


def check_free(port: int, option: str) -> None:
    """Raise ``CannotStart`` for a port on which a program already listens."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", "the highest port is 65535")
            raise CannotStart(
                f"cannot listen on {_HOST} port {port}: {reason}; choose another one: make demo-stack ARGS='{option} PORT'"
            ) from error


def run(port: int, prometheus_port: int, folder: Path, ended: threading.Event) -> None:
    """Start all, print what there is to see, and wait for the end."""
    with ExitStack() as stack:
        fill(folder, earlier(usual(), time.time()))
        program = [Path(sys.executable).with_name("quotascope"), "demo"]
        demo = Child([*map(str, program), "--port", str(port)], folder / "demo.log")
        stack.callback(demo.end)
        begun = datetime.now().astimezone()
        config = configuration(folder, [f"{_HOST}:{port}"], _SCRAPE_SECONDS)
        prometheus = Prometheus(folder, config, port=prometheus_port)
        stack.callback(prometheus.child.end)
        write_dashboards(folder / "grafana", Scope())
        eventually(lambda: _scraped(prometheus, ended), _READY_SECONDS)
        if not ended.is_set():
            print(_tour(port, prometheus, folder, begun), flush=True)
        while not ended.wait(1):
            demo.must_run()
            prometheus.child.must_run()


def _scraped(prometheus: Prometheus, ended: threading.Event) -> None:
    if not ended.is_set():
        health = [target["health"] for target in prometheus.targets().values()]
        if health != ["up"]:
            raise AssertionError("Prometheus does not scrape the demo")


def _tour(port: int, prometheus: Prometheus, folder: Path, begun: datetime) -> str:
    """Return the tour: addresses, and the times of the events in the demo."""
    grafana = shutil.which("grafana-server") or shutil.which("grafana")
    whereabouts = f"is here ({grafana})" if grafana else "is not on this machine"

    def at(minute: float) -> str:
        return f"{begun + timedelta(minutes=minute):%H:%M}"

    spike, refusals = (role.rhythm.first_ms / 60_000 for role in (SALE[0], TESTS))
    quiet = refusals + TESTS.rhythm.busy_ms / 60_000

    return f"""\
The demo:    http://{_HOST}:{port}/
Prometheus:  http://{prometheus.address}/
Dashboards:  {folder / "grafana" / "dashboards"}

Grafana {whereabouts}. Add a data source of type Prometheus with the address above, then
import the JSON files (Dashboards, New, Import), first quotascope-overview.json.

{at(spike)}  the spike: eight services of a sale are throttled; KafkaQuotaThrottleSpike fires at {at(spike + 7)}
{at(refusals)}  refusals: tests create topics too fast; KafkaQuotaRefusalsRising fires at {at(refusals + 11)}
{at(quiet)}  recovery; each of the two ends ten minutes after its condition
{at(EVENING_MS / 60_000)}  the evening begins again

After a quarter of an hour three other alerts name single clients, and stay.
After a day of such evenings a spike is usual: start again to see its alert.
Ctrl-C ends all, and removes the folder."""


def main() -> int:
    """Run until SIGINT or SIGTERM; 1 with a message when it cannot start or a program ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--port", type=int, default=9749, help="of the demo")
    parser.add_argument("--prometheus-port", type=int, default=19090)
    arguments = parser.parse_args()
    configure_logs(LogConfig.model_validate({"level": "warning"}))
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        check_programs()
        check_free(arguments.port, "--port")
        check_free(arguments.prometheus_port, "--prometheus-port")
        with tempfile.TemporaryDirectory(prefix="quotascope-demo-") as folder:
            run(arguments.port, arguments.prometheus_port, Path(folder), ended)
    except (CannotStart, RuntimeError, AssertionError) as error:
        print(f"demo-stack: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
