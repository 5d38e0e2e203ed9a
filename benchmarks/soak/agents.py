"""
The agents of all nodes, and the receiver of pushes, in a process of their own.

Usage: ``python -m benchmarks.soak.agents PLAN``, where PLAN is a `Plan` as JSON. It ends with SIGTERM.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.soak.answers import Dialect, answers_of
from benchmarks.soak.crowd import Crowd
from benchmarks.soak.readings import checked, of_clients
from benchmarks.soak.server import Server
from benchmarks.soak.weather import Spell

LIVES: Final = 1_000
"""A node has the id of its agent times this, plus the number of its life, if it comes back as another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """One agent."""

    name: str
    number: int
    port: int
    dialect: Dialect
    renewed: bool = False
    """True if it is another node after each restart."""

    def node_id(self, life: int) -> int:
        """Kafka's."""
        return self.number * LIVES + (life if self.renewed else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All of them."""

    began: float
    """Unix time from which seconds are counted."""
    per_second: float
    """New clients on each node."""
    agents: Sequence[AgentPlan]
    receiver_port: int

    def text(self) -> str:
        """Return the plan for the command line."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(text: str) -> "Plan":
        """Return a plan from the command line."""
        values = json.loads(text)
        agents = [AgentPlan(**{**fields, "dialect": Dialect(fields["dialect"])}) for fields in values["agents"]]
        return Plan(**{**values, "agents": agents})


class Agent:
    """Answers of one agent."""

    def __init__(self, plan: AgentPlan, per_second: float) -> None:
        self._plan = plan
        self._crowd = Crowd(plan.name, per_second)
        self._answers = answers_of(plan.dialect)
        self.content_type = self._answers.content_type

    def answer(self, request: bytes, spell: Spell, second: float) -> bytes:
        """Return the body."""
        clients = self._crowd.at(second, spell.born)
        readings = checked(list(of_clients(clients, int(second))), second)
        node_id = self._plan.node_id(spell.life)
        return self._answers.answer(request, node_id, readings, second - spell.born)


class Receiver:
    """A receiver of OTLP over HTTP, which takes everything: an empty `ExportMetricsServiceResponse`."""

    content_type = "application/x-protobuf"

    def answer(self, _request: bytes, _spell: Spell, _second: float) -> bytes:
        """Return the body."""
        return b""


def servers(plan: Plan) -> list[Server]:
    """Return all servers of a plan."""
    agents = [Server(agent.name, agent.port, Agent(agent, plan.per_second)) for agent in plan.agents]
    return [*agents, Server("receiver", plan.receiver_port, Receiver())]


async def run(plan: Plan) -> None:
    """Serve until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    clock = _clock(plan.began)
    tasks = [asyncio.create_task(server.run(clock)) for server in servers(plan)]
    ending: Callable[[], Awaitable[bool]] = stop.wait
    over = asyncio.ensure_future(ending())
    ended, _ = await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        task.result()


def _clock(began: float) -> Callable[[], float]:
    return lambda: time.time() - began


if __name__ == "__main__":
    asyncio.run(run(Plan.of(sys.argv[1])))
