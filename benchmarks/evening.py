"""
The demo's evening, scraped by a real Prometheus through a pair of exporters: what fires beside what is true.

`python -m benchmarks evening --minutes 30`. Truth comes from the engine, once a second; the expected alerts follow from
it by their `for` and `keep_firing_for`, without PromQL.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from benchmarks.output import say
from tests.integration.prometheus import Prometheus
from tools.demo_stack import configuration, earlier, fill, usual

from quotascope.alerts import Site
from quotascope.alerts.render import alerts
from quotascope.alerts.thresholds import (
    NEAR_LIMIT,
    PERSISTENT,
    REFUSALS,
    REFUSALS_FACTOR,
    SPIKE,
    SPIKE_ENTITIES,
    SPIKE_FACTOR,
    THROTTLED,
    THROTTLED_SHARE,
    TOKENS_DEBT,
)
from quotascope.demo import Simulation, run
from quotascope.exporter.app import Exporter, Parts
from quotascope.exporter.config import Config, LogConfig
from quotascope.exporter.config.load import Loaded
from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.exporter.logs import configure_logs
from quotascope.metrics.engine.clock import SteadyClock

LOOK_SECONDS: Final = 15
TOLERANCE_SECONDS: Final = 60
"""An evaluation, a scrape, and the window of a trend that is evaluated every two minutes."""
Name = tuple[str, ...]
"""An alert, and what distinguishes its instances."""
_NAMING: Final = ("quota_type", "user", "client_id", "request")
_THROTTLED_BY: Final = {
    "Produce": ("KafkaQuotaProduceThrottled", "produce"),
    "Fetch": ("KafkaQuotaFetchThrottled", "fetch"),
    "Request": ("KafkaQuotaRequestThrottled", "request"),
    "ControllerMutation": ("KafkaQuotaMutationThrottled", "controller_mutation"),
}
"""Alert and quota type by group of metrics."""


@dataclass
class Truth:
    """Numbers that the engine reports of itself, once a second."""

    simulation: Simulation
    seconds: int = 0
    throttled_ms: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    delays: dict[Name, list[float]] = field(default_factory=lambda: defaultdict(list))
    used: dict[Name, list[float]] = field(default_factory=lambda: defaultdict(list))
    debt: dict[Name, list[float]] = field(default_factory=lambda: defaultdict(list))

    def look(self, now_ms: int) -> None:
        """Note one second."""
        throttled = refused = 0.0
        for name, bean in self.simulation.broker.beans().items():
            if "ThrottleTimeMs" in name:
                throttled += bean["Mean"] * bean["Count"]
            if "ErrorsPerSec" in name:
                refused += bean["Count"]
        self.throttled_ms.append(throttled)
        self.refused.append(refused)
        for metric in [*self.simulation.registry.metrics().values()]:
            metric_name = metric.name
            user_and_client = unquote(metric_name.tags.get("user", "")), metric_name.tags.get("client-id", "")
            key, value = (metric_name.group, *user_and_client), metric.peek(now_ms)
            if metric_name.name == "throttle-time" and value == value:  # noqa: PLR0124 - NaN
                self._note(self.delays[key], value / 1000)
            elif metric_name.name == "tokens":
                self._note(self.debt[key], float(value < 0))
            elif metric.config.quota is not None and metric_name.name != "mutation-rate":
                self._note(self.used[key], value / metric.config.quota.bound)
        self.seconds += 1

    def _note(self, values: list[float], value: float) -> None:
        values.extend([0.0] * (self.seconds - len(values)))
        values.append(value)


def conditions(truth: Truth, day: Mapping[str, float]) -> Iterator[tuple[Name, list[bool]]]:
    """Yield each alert that the evening could fire, and the seconds in which its condition holds."""
    spike, _, refusals, *_ = day.values()
    seconds = range(truth.seconds)
    delays_of = {name: [*delays, *[0.0] * (truth.seconds - len(delays))] for name, delays in truth.delays.items()}
    for_long = {
        name: [
            _share(delays[max(0, second - 900) : second + 1]) >= THROTTLED_SHARE.value
            and _mean(truth.used.get(name, [])[max(0, second - 900) : second + 1]) >= PERSISTENT.value
            for second in seconds
        ]
        for name, delays in delays_of.items()
    }
    counts = [
        len({
            name[1:]
            for name, delays in delays_of.items()
            if delays[second] > THROTTLED.value or (delays[second] > 0 and for_long[name][second])
        })
        for second in seconds
    ]  # fmt: skip
    yield ("KafkaQuotaThrottleSpike",), [
        rate > SPIKE.value and rate > SPIKE_FACTOR.value * spike and number >= SPIKE_ENTITIES.value
        for rate, number in zip(_rates(truth.throttled_ms, 1000), counts, strict=True)
    ]  # fmt: skip
    yield (
        ("KafkaQuotaRefusalsRising", "CreateTopics"),
        [rate > REFUSALS.value and rate > REFUSALS_FACTOR.value * refusals for rate in _rates(truth.refused, 1)],
    )
    for (group, *user_and_client), holds in for_long.items():
        if group in _THROTTLED_BY:
            yield (*_THROTTLED_BY[group], *user_and_client), holds
    for (group, *user_and_client), used in truth.used.items():
        delays = truth.delays.get((group, *user_and_client), [])
        labels = f'quota_type="{group.lower()}",user="{user_and_client[0]}"'
        values = [value for series, value in day.items() if labels in series]
        earlier = values[0] if values else 0.0
        holds = []
        for second in seconds:
            window = used[max(0, second - 1800) : second + 1]
            mean = (sum(window) + earlier * max(0, 1800 - len(window))) / max(1800, len(window))
            quiet = not any(delays[max(0, second - 1800) : second + 1])
            holds.append(mean > NEAR_LIMIT.value and quiet)
        yield ("KafkaQuotaNearLimit", group.lower(), *user_and_client), holds
    for (_, *user_and_client), debt in truth.debt.items():
        shares = (sum(debt[max(0, second - 900) : second + 1]) / 900 for second in seconds)
        yield (
            ("KafkaQuotaMutationTokensExhausted", *user_and_client),
            [share > TOKENS_DEBT.value for share in shares],
        )


def _share(delays: Sequence[float]) -> float:
    """Return the throttled share of a quarter of an hour."""
    return sum(delay > 0 for delay in delays) / 900


def _mean(used: Sequence[float]) -> float:
    return sum(used) / len(used) if used else 1.0


def _rates(counter: Sequence[float], divisor: float) -> list[float]:
    """Per second, over the last five minutes."""
    rates = []
    for second, value in enumerate(counter):
        rates.append((value - counter[max(0, second - 300)]) / divisor / 300)
    return rates


def expected(holds: Sequence[bool], wait: int, keep: int) -> list[bool]:
    """Return the seconds in which an alert with this `for` and `keep_firing_for` fires."""
    firing, since, until = [], None, -1
    for second, true in enumerate(holds):
        since = (second if since is None else since) if true else None
        if since is not None and second - since >= wait:
            until = second + keep
        firing.append(second <= until)
    return firing


def spans(firing: Sequence[bool]) -> list[tuple[int, int]]:
    """Return begin and end of each span of firing, in seconds."""
    ranges: list[tuple[int, int]] = []
    for second, true in enumerate(firing):
        if true and ranges and ranges[-1][1] == second - 1:
            ranges[-1] = ranges[-1][0], second
        elif true:
            ranges.append((second, second))
    return ranges


async def play(minutes: float, folder: Path, day: Mapping[str, float]) -> dict[str, object]:
    """Run the evening after such a day, and compare."""
    clock = SteadyClock()
    simulation = Simulation(clock())
    truth, fired = Truth(simulation), defaultdict[Name, set[int]](set)
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(server) for server in _pair(simulation, clock)]
        targets = [exporter.url.removeprefix("http://") for exporter in urls]
        fill(folder, earlier(day, time.time()))
        prometheus = Prometheus(folder, configuration(folder, targets, LOOK_SECONDS))
        stack.callback(prometheus.child.end)
        clients = asyncio.create_task(run(simulation, clock))
        stack.callback(clients.cancel)
        began = time.monotonic()
        for second in range(round(60 * minutes)):
            await asyncio.sleep(max(0.0, began + second - time.monotonic()))
            truth.look(clock())
            if second and second % LOOK_SECONDS == 0:
                for name in await asyncio.to_thread(_firing, prometheus):
                    fired[name].add(second)
                (folder / "fired.json").write_text(json.dumps({" ".join(k): sorted(v) for k, v in fired.items()}))
        up = prometheus.query("up")
        groups = prometheus.get("rules")["groups"]
        bad = [rule["name"] for group in groups for rule in group["rules"] if rule["health"] != "ok"]
    health = {"targets up": sum(value for _, value in up), "rules not ok": bad}
    return health | report(truth, fired, day)


def _pair(simulation: Simulation, clock: Callable[[], int]) -> Iterator[Exporter]:
    collection = {"max_age_seconds": 0.2, "sample_every_seconds": 1}
    server = {"address": "127.0.0.1", "port": 0}
    config = Config.model_validate({"server": server, "collection": collection})
    for _ in range(2):
        beans = simulation.broker.beans
        source = EmbeddedSource("demo", simulation.registry, "1", clock, beans)
        limits = EmbeddedLimits(simulation.quotas, "1", clock, 11.0)
        loaded = Loaded(config=config)
        yield Exporter(Parts(loaded=loaded, sources=(source,), limits=limits))


def _firing(prometheus: Prometheus) -> list[Name]:
    return [
        (labels["alertname"], *(labels[key] for key in _NAMING if labels.get(key)))
        for alert in prometheus.get("alerts")["alerts"]
        if alert["state"] == "firing" and (labels := alert["labels"])
    ]


def report(truth: Truth, fired: Mapping[Name, set[int]], day: Mapping[str, float]) -> dict[str, object]:
    """
    Return the alerts that fired and those that should have.

    A count says in how many looks they differ by more than the tolerance.
    """
    rules = {rule["alert"]: rule for rule in alerts(Site())}
    rows, wrong, looks = [], 0, 0
    should = {
        tuple(part for part in name if part): expected(
            holds, _seconds(rules[name[0]]["for"]), _seconds(rules[name[0]].get("keep_firing_for"))
        )
        for name, holds in conditions(truth, day)
    }
    for name in sorted({*fired, *(name for name, firing in should.items() if any(firing))}):
        firing = should.get(name, [False] * truth.seconds)
        fired_looks = [second in fired.get(name, ()) for second in range(0, truth.seconds, LOOK_SECONDS)]
        for second, is_fired in zip(range(0, truth.seconds, LOOK_SECONDS), fired_looks, strict=True):
            around = firing[max(0, second - TOLERANCE_SECONDS) : second + TOLERANCE_SECONDS + 1]
            wrong += is_fired not in around
            looks += 1
        rows.append({
            "alert": " ".join(name),
            "expected": spans(firing),
            "fired": [(a * LOOK_SECONDS, b * LOOK_SECONDS) for a, b in spans(fired_looks)],
        })  # fmt: skip
    return {"seconds": truth.seconds, "alerts": rows, "looks": looks, "wrong": wrong}


def _seconds(duration: str | None) -> int:
    return int(duration[:-1]) * {"m": 60, "h": 3600}[duration[-1]] if duration else 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=30)


def main(options: argparse.Namespace) -> int:
    """Play, and print the comparison."""
    minutes = options.minutes
    configure_logs(LogConfig.model_validate({"level": "warning"}))
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(play(minutes, Path(folder), usual()))
    say(json.dumps(result, indent=1))
    return 0
