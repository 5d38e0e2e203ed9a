"""All parts of a run, and the expectations of them."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.process import cpu_seconds
from benchmarks.soak.agents import AgentPlan, Plan
from benchmarks.soak.answers import Dialect
from benchmarks.soak.exporter import Exporter, Planted, configuration, install, serving
from benchmarks.soak.page import Expected
from benchmarks.soak.quotas import LASTING
from benchmarks.soak.weather import UP, Weather
from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.ports import free_port
from tests.cluster.quotas import Quotas
from tests.integration.child import Child

SETTLED_SECONDS: Final = 24.0
"""Seconds after which a page has to show a change: the longest collection, and the refresh of discovery."""
DIALECTS: Final = (
    Dialect.JOLOKIA,
    Dialect.OWN_RULES,
    Dialect.KAFKA_2_0_0,
    Dialect.JOLOKIA,
)
"""Dialects of the nodes in the configuration."""
FOUND: Final = 4
"""Nodes in target files."""


def make_plan(per_second: float) -> Plan:
    """Return the agents, on free ports, from now on."""
    listed = [
        AgentPlan(name=f"node-{number}", number=number, port=free_port(), dialect=dialect)
        for number, dialect in enumerate(DIALECTS, 1)
    ]
    discovered = [_found(number, free_port()) for number in range(len(DIALECTS) + 1, len(DIALECTS) + FOUND + 1)]
    return Plan(began=time.time(), per_second=per_second, agents=[*listed, *discovered], receiver_port=free_port())


def _found(number: int, port: int) -> AgentPlan:
    """Return an agent that is a new node after each restart, and is named by its address."""
    return AgentPlan(name=f"127.0.0.1:{port}", number=number, port=port, dialect=Dialect.JOLOKIA, renewed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """
    Nodes that the target files list for the exporter.

    Immutable, so that a scraper's thread sees all of a change or nothing.
    """

    listed: list[AgentPlan]
    found: list[AgentPlan]
    changed_at: float = 0.0

    def names(self) -> frozenset[str]:
        """Return the names that the exporter gives them."""
        return frozenset(agent.name for agent in (*self.listed, *self.found))


@dataclass(slots=True)
class Stage:
    """A run."""

    plan: Plan
    folder: Path
    kafka: Cluster
    sources: Sources
    max_entities: int = 400
    exporter: Exporter = field(init=False)
    agents: Child = field(init=False)
    _weather: dict[str, Weather] = field(init=False)

    def __post_init__(self) -> None:
        self._weather = {agent.name: Weather(agent.name) for agent in self.plan.agents}

    @property
    def listed(self) -> list[AgentPlan]:
        """All that the configuration may list."""
        return [agent for agent in self.plan.agents if not agent.renewed]

    @property
    def findable(self) -> list[AgentPlan]:
        """All nodes that target files may list."""
        return [agent for agent in self.plan.agents if agent.renewed]

    @property
    def targets(self) -> Path:
        """The file for discovery."""
        return self.folder / "targets.json"

    def clock(self) -> float:
        """Seconds since the run began."""
        return time.time() - self.plan.began

    def settings(self) -> dict[str, object]:
        """Return the configuration that the exporter has to have now."""
        (broker,) = self.kafka.brokers
        settings = configuration(
            self.sources.listed, self.targets, self.kafka.admin, broker.agents.jolokia2_port, self.plan.receiver_port
        )
        settings["cardinality"]["max_entities"] = self.max_entities
        return settings

    def expected(self, moment: float, counters: dict[str, float]) -> Expected:
        """Return the expectations of a page at this second."""
        sources = self.sources
        spells = {name: weather.at(moment) for name, weather in self._weather.items()}
        settled = moment - sources.changed_at > SETTLED_SECONDS
        return Expected(
            at=moment,
            up={
                name: spell.mood in UP
                for name, spell in spells.items()
                if settled and spell.settled(moment, SETTLED_SECONDS)
            },
            agents=frozenset(spells),
            listed=sources.names() if settled else None,
            counters=counters,
        )

    def other_cpu_seconds(self) -> float:
        """Return the CPU time of agents, scrapers and the broker; of brokers that were killed, nothing."""
        (broker,) = self.kafka.brokers
        return sum(map(cpu_seconds, (self.agents.pid, os.getpid(), broker.pid)))


@contextmanager
def staged(folder: Path, per_second: float, planted: Planted) -> Iterator[tuple[Stage, str]]:
    """Yield the running stage, and the commit that the exporter was installed from."""
    commit = install(folder)
    with running(Layout.COMBINED, folder / "kafka") as kafka:
        with closing(Quotas(kafka.connection())) as quotas:
            quotas.set(*LASTING)
        plan = make_plan(per_second)
        stage = Stage(plan, folder, kafka, Sources(listed=[], found=[]))
        stage.sources = Sources(listed=stage.listed, found=[])
        stage.targets.write_text("[]")
        with (
            _agents(stage) as stage.agents,
            serving(folder, stage.settings(), planted) as stage.exporter,
        ):
            _wait(stage)
            yield stage, commit


@contextmanager
def _agents(stage: Stage) -> Iterator[Child]:
    command = [sys.executable, "-m", "benchmarks.soak.agents", stage.plan.text()]
    child = Child(command, stage.folder / "agents.log")
    try:
        yield child
        child.must_run()
    finally:
        child.end()


def _wait(stage: Stage, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not stage.exporter.url:
        stage.exporter.look()
        if time.monotonic() > deadline:
            raise RuntimeError("the exporter does not listen")
        time.sleep(0.1)
