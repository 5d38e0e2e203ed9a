"""
The exporter among agents, an Admin API, a discovery and a receiver that a seed drives, on a loop with simulated time.

All is the exporter's own but for what reaches outside: sources, the reading of limits, finders, the sender, the
server's sockets and threads.
What must hold is in ``invariants``; it is checked of each snapshot when it is made, whoever asked for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import pytest
import structlog
from aiohttp import web
from multidict import CIMultiDict, MultiDict

from quotascope.cli.alerts_config import read_alert_terms
from quotascope.exporter import http, threads
from quotascope.exporter.app import Exporter, Parts, Reloader, build_parts, exporter, files, parts, reload
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import Config, SourceConfig
from quotascope.exporter.config.load import loaded
from quotascope.exporter.discovery import Roster, discovery
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.http import Handlers
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.otlp.push import OtlpPush, PushResult
from quotascope.exporter.page.serving import Pages
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.web.settings import WebSettings

from .invariants import Broken, Ledger, holds
from .loop import SimulatedLoop
from .world import EPOCH, Agent, Broker, Cluster, SimulatedFinder, SimulatedLimits, SimulatedSender, SimulatedSource

FAULTS: Final = ("late", "half", "twice", "wrong", "contradicting", "never", "denied", "gone", "unexpected")
FIRST_PORT: Final = 9000
STEPS: Final = 24
CLOCK_IS_SET: Final = 0.1
"""How often before a step."""
SHADOWS: Final = (
    "candidates:\n  - name: less\n    quotas:\n      - {user: alice, producer_byte_rate: 10}\n",
    "candidates:\n  - name: more\n    quotas:\n      - {user: <default>, request_percentage: 1000}\n",
    "candidates: [",
)
CALM_SECONDS: Final = 260.0
"""After which nothing is left of any fault: longer than the longest read and two refreshes."""


class FakeServer:
    """Has the routes of the exporter, and no socket."""

    def __init__(self, _config: object) -> None:
        self.refused: Mapping[str, int] = {}
        self.handlers: dict[str, Callable[[Any], Any]] = {}

    async def open(self, app: web.Application, _grace: float) -> str:
        self.handlers = {route.resource.canonical: route.handler for route in app.router.routes() if route.resource}
        return "http://simulated:9749"

    def look(self) -> WebSettings:
        return WebSettings()

    async def close(self) -> None:
        """Hold nothing."""


class Simulation:
    """
    One exporter and its world.

    Args:
        seed: Decides what happens.
        folder: For the files that the configuration names; those of an earlier simulation may be in it.

    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)  # noqa: S311 - repeats
        self.folder = folder
        self.steps: list[str] = []
        """What happened, for the message of what does not hold."""
        self.problems: list[str] = []
        self._clocks = Random(f"clock of {seed}")  # noqa: S311 - repeats
        self._rules = Random(f"rules of agents of {seed}")  # noqa: S311 - repeats
        self.ahead = 0.0
        """Seconds by which the clock of the exporter's machine was set."""
        self.loop = SimulatedLoop(self._work_seconds)
        self.loop.set_exception_handler(self._raised)
        self.ledger = Ledger()
        self.cluster = Cluster(
            self.random,
            lambda: EPOCH + self.loop.time(),
            slips=Random(f"counters of {seed}"),  # noqa: S311 - repeats
        )
        self.agents: dict[str, Agent] = {}
        """By host and port."""
        self.finders: list[SimulatedFinder] = []
        self.results: list[PushResult] = []
        folder.mkdir(exist_ok=True)
        self.password, self.shadow = folder / "password", folder / "shadow.yaml"
        self.password.write_text("first")
        self.shadow.write_text(SHADOWS[0])
        for broker in self.cluster.brokers:
            self.attach(broker)
        self.given = self._settings()
        self.unreadable = False
        self.slow = False

    def unix(self) -> float:
        return EPOCH + self.loop.time() + self.ahead

    def _work_seconds(self) -> float:
        return self.random.choice((0.0, 0.1, 12.0)) if self.slow else 0.0

    def _raised(self, _loop: object, context: Mapping[str, Any]) -> None:
        self.problems.append(f"the loop: {context.get('exception') or context['message']!r}")

    # what the world is made of

    def attach(self, broker: Broker) -> None:
        """Give a node one agent, or two."""
        for port in range(FIRST_PORT, FIRST_PORT + self.random.choice((1, 1, 2))):
            agent = self.agents[f"node-{broker.node_id}:{port}"] = Agent(self.cluster, broker)
            agent.reports_start = port == FIRST_PORT or self._rules.random() < 0.5

    def urls(self, broker: Broker) -> list[str]:
        return [f"http://{address}/" for address, agent in self.agents.items() if agent.broker is broker]

    def _settings(self) -> dict[str, Any]:
        random = self.random
        fixed = [address for address in self.agents if address.endswith(":9000") and random.random() < 0.7]
        auth = {"username": "me", "password_file": self.password}
        given: dict[str, Any] = {
            "sources": [
                {"url": f"http://{address}/", **({"basic_auth": auth} if random.random() < 0.4 else {})}
                for address in fixed
            ],
            "collection": {
                "max_age_seconds": random.choice((0.0, 1.0, 5.0)),
                "timeout_seconds": random.choice((2.0, 9.0)),
                "sample_every_seconds": random.choice((None, None, 5.0)),
            },
            "cardinality": {"max_entities": random.choice((3, 20, 1_000))},
        }
        if random.random() < 0.85:
            seconds = random.choice((5.0, 30.0))
            given["kafka"] = {"bootstrap_servers": "node-1:9092", "refresh_interval_seconds": seconds}
            if random.random() < 0.6 or not fixed:
                given["discovery"] = {"kafka": {"url": "http://{host}:9000/"}}
        if random.random() < 0.3:
            given["otlp"] = {"endpoint": "http://collector:4318/v1/metrics", "interval_seconds": 20.0}
        if random.random() < 0.3:
            given["shadow"] = {"file": self.shadow}
        if random.random() < 0.2:
            given["cardinality"]["idle_after_seconds"] = 60.0
        return given

    # what stands in for the outside

    def source(self, config: SourceConfig) -> SimulatedSource:
        return SimulatedSource(config, self.agents.get(config.label), self.used)

    def used(self, source: SimulatedSource) -> None:
        known = self.ledger.sources.get(source.name, [])
        if source not in known:
            self.ledger.sources[source.name] = [source, *(one for one in known if not one.closed)]

    def limits(self, _admin: object) -> SimulatedLimits:
        limits = SimulatedLimits(self.cluster)
        self.ledger.limits.append(limits)
        return limits

    def _no_admin(self, _config: object) -> Any:
        """Return nothing, as limits and nodes come from the simulated world."""

    def find(self, config: Config, _open_admin: object) -> tuple[SimulatedFinder, ...]:
        if not config.discovery.wanted:
            return ()
        finder = SimulatedFinder(self.cluster, self.urls)
        self.finders.append(finder)
        return (finder,)

    def push(self, config: Config, _environ: object, starts: Any = None) -> OtlpPush | None:
        if config.otlp is None:
            return None
        seconds = config.otlp.interval_seconds or 60.0
        return OtlpPush(
            lambda _: SimulatedSender(self.random, self.results), "collector", seconds, self.loop.time, starts=starts
        )

    def read(self) -> Config:
        if self.unreadable:
            raise ConfigError("quotascope.yaml", ["line 1: what"])
        return Config.model_validate(self.given)

    def installed(self, patched: pytest.MonkeyPatch) -> None:
        """Have the exporter use this world."""
        loop, made = self.loop, Collection._make_snapshot

        def checked(collection: Collection, *args: Any, **named: Any) -> Snapshot:
            snapshot = made(collection, *args, **named)
            try:
                self.ledger.check(snapshot, unix=self.unix(), steady=loop.time())
            except Broken as error:
                self.problems.append(str(error))  # some of those who ask go on after an error
                raise
            return snapshot

        patched.setattr(Collection, "_make_snapshot", checked)
        patched.setattr(threads, "in_daemon_thread", loop.in_thread)
        patched.setattr(exporter, "HttpServer", FakeServer)
        patched.setattr(exporter, "Roster", partial(Roster, build=self.source, clock=loop.time))
        patched.setattr(exporter, "LimitsRefresh", partial(LimitsRefresh, clock=self.unix, steady=loop.time))
        patched.setattr(exporter, "Collection", partial(Collection, clock=self.unix, steady=loop.time))
        patched.setattr(exporter, "Handlers", partial(Handlers, clock=loop.time))
        patched.setattr(http, "Pages", partial(Pages, clock=loop.time))
        patched.setattr(discovery, "Discovery", partial(discovery.Discovery, clock=self.unix))
        patched.setattr(parts, "build_sources", lambda configs: [*map(self.source, configs)])
        patched.setattr(parts, "build_finders", self.find)
        patched.setattr(parts, "AdminLimits", self.limits)
        patched.setattr(parts, "build_push", self.push)
        patched.setattr(exporter, "ProcessCollector", lambda **_: SimpleNamespace(collect=list))
        patched.setattr(files, "LOOK_EVERY_SECONDS", 15.0)  # each look costs as much as half a scrape
        patched.setattr(reload, "gc", SimpleNamespace(collect=lambda: None))  # which goes through all of the tests

    # what happens

    async def run(self) -> None:
        """Run all steps, and check the invariants at the end."""
        build = partial(build_parts, open_admin=self._no_admin, read_terms=read_alert_terms, environ={})
        self.ledger.max_entities = self.given["cardinality"]["max_entities"]
        self.reloader = Reloader(self.read, build, lambda _: None, clock=self.unix)
        first: Parts = build(loaded(self.read()))
        self.exporter = Exporter(first, reloader=self.reloader)
        before = asyncio.all_tasks()
        async with self.exporter:
            self.server: Any = self.exporter._server
            for _ in range(STEPS):
                await self.step()
                self.bounded()
            if self.random.random() < 0.05:
                await self.calm()
        await asyncio.sleep(13.0)  # until the calls in threads have ended
        left = asyncio.all_tasks() - before
        for task in left:
            task.cancel()
        holds(not left, f"tasks are left at the end: {left}")
        open_ones = [one.name for known in self.ledger.sources.values() for one in known if not one.closed]
        holds(not open_ones, f"sources are open at the end: {open_ones}")

    async def step(self) -> None:
        random = self.random
        if self._clocks.random() < CLOCK_IS_SET:
            self.ahead += self._clocks.choice((-86_400.0, -3_600.0, -0.5, 0.5, 3_600.0, 86_400.0))
            self.steps.append(f"{self.loop.time():.1f} s: the clock is {self.ahead:g} s ahead")
        happens: Callable[[], Any] = random.choices([*self._events], [*self._events.values()])[0].__get__(self)
        pause = random.choice((0.0, 0.1, 1.0, 5.0, 15.0))
        about = happens()
        if asyncio.iscoroutine(about):
            about = await about
        self.steps.append(f"{self.loop.time():.1f} s: {happens.__name__} {about or ''}")
        await asyncio.sleep(pause)

    async def get(self, path: str, query: Mapping[str, str] | None = None, **headers: str) -> bytes:
        request = SimpleNamespace(
            headers=CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()}),
            query=MultiDict(query or {}),
            path=path,
            match_info=SimpleNamespace(route=SimpleNamespace(name=path.rpartition("/")[2])),
        )
        answer = await self.server.handlers[path](request)
        latest = self.exporter.collection.latest
        body: bytes = answer.body if isinstance(answer.body, bytes) else answer.body._value
        if path == "/metrics":
            self.ledger.ages(body)
        self.ledger.body(body, 0 if latest is None else len(latest.joined or latest.columns))
        return body

    async def scrape(self) -> str:
        seconds = self.random.choice(("1", "5", "10", "30"))
        began, slow = self.loop.time(), self.slow
        if self.random.random() < 0.3:
            await self.get("/metrics", X_Prometheus_Scrape_Timeout_Seconds=seconds)
        else:  # without writing the text, which costs more than all else
            await self.exporter.collection.snapshot(http.scrape_timeout(seconds, self.exporter.parts.config.collection))
        took = self.loop.time() - began
        holds(slow or took <= float(seconds), f"a scrape that waits {seconds} s took {took} s")
        return f"of {seconds} s took {took:g} s"

    async def two_scrapes(self) -> None:
        await asyncio.gather(self.scrape(), self.scrape())

    async def scrape_and_leave(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.random.choice((0.0, 0.01, 0.5, 3.0))):
                await self.get("/metrics")

    async def page(self) -> str:
        path = self.random.choice(("/", "/rules", "/entity", "/api/v1/entities"))
        query = {"user": "alice"} if path == "/entity" else {}
        body = await self.get(path, query)
        if path.startswith("/api") and self.exporter.collection.latest is not None:
            self.ledger.document(body)
        return path

    def agent_fails(self) -> str:
        address = self.random.choice([*self.agents])
        self.agents[address].fault = self.random.choice(FAULTS)
        return f"{address}: {self.agents[address].fault}"

    def agent_heals(self) -> str:
        address = self.random.choice([*self.agents])
        self.agents[address].fault = "none"
        return address

    def agent_rules_change(self) -> str:
        agent = self.random.choice([*self.agents.values()])
        without = self.random.choice(([], [], ["throttle-time"], ["tokens"], ["byte-rate", "request-time"]))
        agent.without = frozenset(without)
        return f"of node {agent.broker.node_id}: without {without}"

    def limits_fail(self) -> str | None:
        if not self.ledger.limits:
            return None
        limits = self.ledger.limits[-1]
        limits.fault = self.random.choice(("none", "none", *FAULTS))
        return limits.fault

    def discovery_fails(self) -> str | None:
        if not self.finders:
            return None
        self.finders[-1].fault = self.random.choice(("none", "none", *FAULTS))
        return self.finders[-1].fault

    def rules_change(self) -> None:
        for _ in range(self.random.choice((1, 1, 5))):
            self.cluster.change_rule()

    def clients_change(self) -> None:
        for _ in range(self.random.choice((1, 10))):
            self.cluster.use()

    def crowd_comes(self) -> None:
        self.cluster.crowd()

    def node_restarts(self) -> str:
        broker = self.random.choice(self.cluster.brokers)
        self.cluster.restart(broker)
        return broker.node_id

    def nodes_roll(self) -> None:
        for index, broker in enumerate(self.cluster.brokers):
            self.loop.call_later(10.0 * index, self.cluster.restart, broker)

    def node_stops(self) -> str:
        broker = self.random.choice(self.cluster.brokers)
        broker.down = not broker.down
        return f"{broker.node_id}: {broker.down}"

    def node_has_callback(self) -> str:
        broker = self.random.choice(self.cluster.brokers)
        broker.callback = not broker.callback
        return broker.node_id

    def identity_changes(self) -> str:
        broker = self.random.choice(self.cluster.brokers)
        broker.node_id, before = str(50 + self.random.randrange(5)), broker.node_id
        self.cluster.restart(broker)
        return f"of {before}: {broker.node_id}"

    def leader_changes(self) -> None:
        self.cluster.leader = self.random.choice(self.cluster.brokers).node_id

    def node_joins(self) -> str | None:
        if len(self.cluster.brokers) > 5:
            return None
        broker = self.cluster.add()
        self.attach(broker)
        return broker.node_id

    def node_leaves(self) -> str | None:
        if len(self.cluster.brokers) < 2:
            return None
        broker = self.cluster.brokers.pop()
        broker.down = True
        return broker.node_id

    async def configuration_changes(self) -> None:
        self.given = self._settings()
        # from the next snapshot on, of which some may be made while it is read
        self.ledger.max_entities = min(self.ledger.max_entities, self.given["cardinality"]["max_entities"])
        await self.reloader.reload(self.exporter)
        if self.exporter.parts.config.cardinality.max_entities == self.given["cardinality"]["max_entities"]:
            self.ledger.max_entities = self.given["cardinality"]["max_entities"]

    async def configuration_breaks(self) -> None:
        self.unreadable = True
        before = self.exporter.parts
        await self.reloader.reload(self.exporter)
        holds(self.exporter.parts is before, "a configuration that cannot be read has changed something")
        self.unreadable = False

    def files_rotate(self) -> None:
        self.password.write_text(str(self.random.random()))
        self.shadow.write_text(self.random.choice(SHADOWS))
        os.utime(self.password, (self.random.randrange(10**9), self.random.randrange(10**9)))

    def threads_hang(self) -> None:
        self.slow = not self.slow

    _events: Final = {
        scrape: 30,
        two_scrapes: 3,
        scrape_and_leave: 3,
        page: 2,
        agent_fails: 10,
        agent_heals: 7,
        agent_rules_change: 2,
        limits_fail: 4,
        discovery_fails: 3,
        rules_change: 5,
        clients_change: 8,
        crowd_comes: 0.5,
        node_restarts: 3,
        nodes_roll: 1,
        node_stops: 2,
        node_has_callback: 1,
        identity_changes: 1,
        leader_changes: 2,
        node_joins: 1,
        node_leaves: 1,
        configuration_changes: 2,
        configuration_breaks: 0.5,
        files_rotate: 2,
        threads_hang: 1,
    }
    """What happens, and how often beside the others."""

    async def calm(self) -> None:
        """End all faults, and require that no trace of the faults is left after a while."""
        self.slow = False
        for agent in self.agents.values():
            agent.fault = "none"
        for limits in self.ledger.limits:
            limits.fault = "none"
        for finder in self.finders:
            finder.fault = "none"
        for index, broker in enumerate(self.cluster.brokers):
            broker.down, broker.node_id = False, str(index + 1)
        self.cluster.slip_share = 1.0
        await self.get("/metrics")
        self.cluster.slip_share = 0.0
        self.steps.append(f"{self.loop.time():.1f} s: all faults end, counters that are far too high last")
        await asyncio.sleep(CALM_SECONDS)
        for _ in range(4):
            await asyncio.sleep(61.0)
            await self.get("/metrics")
        snapshot = await self.exporter.snapshot()
        named = {one.name: one for known in self.ledger.sources.values() for one in known if not one.closed}
        for health in snapshot.sources:
            source = named[health.name]
            alive = source.agent is not None and not source.agent.broker.down
            holds(health.up or not alive or "reads node" in (health.error or ""), f"{health.name} stays down: {health}")
        reading = snapshot.limits_health
        holds(not reading.configured or reading.error is None, f"limits stay unread: {reading.error}")
        if reading.configured:
            age = reading.age_seconds(snapshot.time_at(self.loop.time()))
            seconds = self.exporter.parts.limits_reading
            holds(age is not None and age <= seconds[1] + seconds[2] + 1, f"the limits are {age} s old")

    def bounded(self) -> None:
        """Check that memory grows with the number of clients, and not with the number of events."""
        holds(not self.problems, "; ".join(self.problems))
        collection = self.exporter.collection
        roster = collection._roster
        most = len(roster.all) + 8  # which may have just gone
        sizes = {
            "reads": len(collection._reads._by_source),
            "states": len(collection._states._up),
            "candidates": len(roster._candidates),
            "nodes in use": len(roster._in_use),
            "tasks": len(asyncio.all_tasks(self.loop)) // 4,
        }
        for what, size in sizes.items():
            holds(size <= most, f"{what}: {size} are kept for {len(roster.all)} sources")


def simulate(seed: int, folder: Path) -> int:
    """Run one simulation; returns the number of snapshots checked. Raises ``Broken`` with the seed and its steps."""
    simulation = Simulation(seed, folder)
    with pytest.MonkeyPatch.context() as patched, structlog.testing.capture_logs() as lines:
        simulation.installed(patched)
        loop = simulation.loop
        try:
            loop.run_until_complete(simulation.run())
            holds(not simulation.problems, "; ".join(simulation.problems))
            for line in lines:
                defect = "defect" in line["event"] or (line["log_level"] == "error" and line.get("exc_info"))
                holds(not defect, f"{line}")
        except (Exception, AssertionError) as error:
            what = (
                f"seed {seed} does not hold: {error}" if isinstance(error, Broken) else f"seed {seed} raises {error!r}"
            )
            raise Broken("\n  ".join([what, *simulation.steps])) from error
        finally:
            _end(loop)
    return simulation.ledger.checked


def _end(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
