"""
The demo's evening, scraped by a real Prometheus through a pair of exporters: what fires beside what is true.

`python -m benchmarks.evening --minutes 30`. Truth comes from the engine, once a second; the expected alerts follow from it by their
`for` and `keep_firing_for`, without PromQL.
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

from tests.integration.prometheus import Prometheus
from tools.demo_stack import configuration, earlier, fill, usual

from quotascope.alerts import Site
from quotascope.alerts.book import alerts
from quotascope.alerts.thresholds import (
    NEAR_LIMIT,
    REFUSALS,
    REFUSALS_FACTOR,
    SPIKE,
    SPIKE_ENTITIES,
    SPIKE_FACTOR,
    THROTTLED,
    TOKENS_DEBT,
)
from quotascope.demo import Simulation, run
from quotascope.exporter.app import Exporter, Parts
from quotascope.exporter.config import Config, LogConfig
from quotascope.exporter.config.load import Loaded
from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.exporter.logs import configure_logs
from quotascope.metrics import SteadyClock

LOOK_SECONDS: Final = 15
TOLERANCE_SECONDS: Final = 60
"""An evaluation, a scrape, and the window of a trend that is evaluated every two minutes."""
Name = tuple[str, ...]
"""An alert, and what distinguishes its instances."""
_NAMING: Final = ("quota_type", "user", "client_id", "request")
_THROTTLED_BY: Final = {
    "Produce": "KafkaQuotaProduceThrottled",
    "Fetch": "KafkaQuotaFetchThrottled",
    "Request": "KafkaQuotaRequestThrottled",
}


@dataclass
class Truth:
    """What the engine reports of itself, once a second."""

    simulation: Simulation
    seconds: int = 0
    throttled_ms: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    many: list[int] = field(default_factory=list)
    """How many entities are throttled."""
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
        many = set()
        for metric in [*self.simulation.registry.metrics().values()]:
            of = metric.name
            who = of.tags.get("user", ""), of.tags.get("client-id", "")
            key, value = (of.group, *who), metric.peek(now_ms)
            if of.name == "throttle-time" and value == value:  # noqa: PLR0124 - NaN
                self._note(self.delays[key], value / 1000)
                if value / 1000 > THROTTLED.value:
                    many.add(who)
            elif of.name == "tokens":
                self._note(self.debt[key], float(value < 0))
            elif metric.config.quota is not None and of.name != "mutation-rate":
                self._note(self.used[key], value / metric.config.quota.bound)
        self.many.append(len(many))
        self.seconds += 1

    def _note(self, values: list[float], value: float) -> None:
        values.extend([0.0] * (self.seconds - len(values)))
        values.append(value)


def conditions(truth: Truth, day: Mapping[str, float]) -> Iterator[tuple[Name, list[bool]]]:
    """Each alert that the evening could fire, and in which seconds its condition holds."""
    spike, _, refusals, *_ = day.values()
    yield ("KafkaQuotaThrottleSpike",), [
        rate > SPIKE.value and rate > SPIKE_FACTOR.value * spike and many >= SPIKE_ENTITIES.value
        for rate, many in zip(_rates(truth.throttled_ms, 1000), truth.many, strict=True)
    ]  # fmt: skip
    yield (
        ("KafkaQuotaRefusalsRising", "CreateTopics"),
        [rate > REFUSALS.value and rate > REFUSALS_FACTOR.value * refusals for rate in _rates(truth.refused, 1)],
    )
    seconds = range(truth.seconds)
    for (group, *who), delays in truth.delays.items():
        if group in _THROTTLED_BY:
            padded = [*delays, *[0.0] * (truth.seconds - len(delays))]
            yield (
                (_THROTTLED_BY[group], group.lower(), *who),
                [delay > THROTTLED.value for delay in padded],
            )
    for (group, *who), used in truth.used.items():
        delays = truth.delays.get((group, *who), [])
        known = f'quota_type="{group.lower()}",user="{who[0]}"'
        before = [value for series, value in day.items() if known in series]
        earlier = before[0] if before else 0.0
        holds = []
        for at in seconds:
            window = used[max(0, at - 1800) : at + 1]
            mean = (sum(window) + earlier * max(0, 1800 - len(window))) / max(1800, len(window))
            quiet = not any(delays[max(0, at - 1800) : at + 1])
            holds.append(mean > NEAR_LIMIT.value and quiet)
        yield ("KafkaQuotaNearLimit", group.lower(), *who), holds
    for (_, *who), debt in truth.debt.items():
        shares = (sum(debt[max(0, at - 900) : at + 1]) / 900 for at in seconds)
        yield (
            ("KafkaQuotaMutationTokensExhausted", *who),
            [share > TOKENS_DEBT.value for share in shares],
        )


def _rates(counter: Sequence[float], divisor: float) -> list[float]:
    """Per second, over the last five minutes."""
    rates = []
    for at, value in enumerate(counter):
        rates.append((value - counter[max(0, at - 300)]) / divisor / 300)
    return rates


def expected(holds: Sequence[bool], wait: int, keep: int) -> list[bool]:
    """In which seconds an alert with this `for` and `keep_firing_for` fires."""
    firing, since, until = [], None, -1
    for at, true in enumerate(holds):
        since = (at if since is None else since) if true else None
        if since is not None and at - since >= wait:
            until = at + keep
        firing.append(at <= until)
    return firing


def spans(firing: Sequence[bool]) -> list[tuple[int, int]]:
    """From and to, in seconds."""
    found: list[tuple[int, int]] = []
    for at, true in enumerate(firing):
        if true and found and found[-1][1] == at - 1:
            found[-1] = found[-1][0], at
        elif true:
            found.append((at, at))
    return found


async def play(minutes: float, folder: Path, day: Mapping[str, float]) -> dict[str, object]:
    """Run the evening after such a day, and compare."""
    clock = SteadyClock()
    simulation = Simulation(clock())
    truth, fired = Truth(simulation), defaultdict[Name, set[int]](set)
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(each) for each in _pair(simulation, clock)]
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
    """What fired, what should have, and in how many looks they differ by more than the tolerance."""
    rules = {alert.name: alert for alert in alerts(Site())}
    rows, wrong, looks = [], 0, 0
    should = {
        tuple(part for part in name if part): expected(
            holds, _seconds(rules[name[0]].wait), _seconds(rules[name[0]].keep)
        )
        for name, holds in conditions(truth, day)
    }
    for name in sorted({*fired, *(name for name, each in should.items() if any(each))}):
        firing = should.get(name, [False] * truth.seconds)
        seen = [at in fired.get(name, ()) for at in range(0, truth.seconds, LOOK_SECONDS)]
        for at, shown in zip(range(0, truth.seconds, LOOK_SECONDS), seen, strict=True):
            around = firing[max(0, at - TOLERANCE_SECONDS) : at + TOLERANCE_SECONDS + 1]
            wrong += shown not in around
            looks += 1
        rows.append({
            "alert": " ".join(name),
            "expected": spans(firing),
            "fired": [(a * LOOK_SECONDS, b * LOOK_SECONDS) for a, b in spans(seen)],
        })  # fmt: skip
    return {"seconds": truth.seconds, "alerts": rows, "looks": looks, "wrong": wrong}


def _seconds(duration: str | None) -> int:
    return int(duration[:-1]) * {"m": 60, "h": 3600}[duration[-1]] if duration else 0


def main() -> None:
    """Play, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    minutes = parser.parse_args().minutes
    configure_logs(LogConfig.model_validate({"level": "warning"}))
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(play(minutes, Path(folder), usual()))
    print(json.dumps(found, indent=1))  # noqa: T201


if __name__ == "__main__":
    main()
