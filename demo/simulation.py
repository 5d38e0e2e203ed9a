"""The whole demo as a function of time: the engine, its rules, and the clients at work on it."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from quotascope.metrics.engine.clock import Clock
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

from .broker import Broker, DemoConnection
from .cast import CAST, RULES, Request, Response, Role


class DemoClient:
    """
    One member of the cast at work: one connection, one request at a time.

    Args:
        role: who it is and what it does.
        start_ms: when the demo starts, in epoch ms.
        number: which of the connections of the role this is.

    """

    def __init__(self, role: Role, start_ms: int, number: int = 0) -> None:
        self.role = role
        self.due_ms: int = start_ms + role.rhythm.first_ms
        """When it sends its next request, in epoch ms."""
        self._start_ms = start_ms
        # Seeded by name, so that the picture is alike every time.
        seed = f"{role.user}/{role.client_id}/{number}"
        self._random = Random(seed)  # noqa: S311 - not a secret
        self._again: Request | None = None

    @property
    def request(self) -> Request:
        """The next request."""
        return self._again or self.role.request

    def answered(self, response: Response, now_ms: int) -> None:
        """Plan the next request after the throttle; a request that was held back or refused is sent first."""
        self._again = response.again
        ready_ms = now_ms + response.throttle_ms
        if response.again is not None:
            self.due_ms = ready_ms
            return
        rhythm = self.role.rhythm
        # A client makes up for a small delay, so that it keeps its pace, but not for the time of a throttle.
        late = now_ms - self.due_ms > rhythm.every_ms
        base_ms = (now_ms if late else self.due_ms) - self._start_ms
        next_ms = self._start_ms + rhythm.next_ms(base_ms, self._random)
        self.due_ms = max(ready_ms, next_ms)


class Simulation:
    """
    Real quotas, made-up traffic.

    Nothing here reads a clock or sleeps: `advance` does what is due at the time that it is given.

    Args:
        start_ms: when the clients begin, in epoch ms.
        cast: the clients.
        rules: the quotas, with bounds in Kafka's units.

    """

    def __init__(
        self, start_ms: int, cast: Sequence[Role] = CAST, rules: Mapping[QuotaType, Mapping[QuotaEntity, float]] = RULES
    ) -> None:
        self.registry = Registry()
        self.quotas = QuotaManagers(self.registry, start_ms)
        for quota_type, bounds in rules.items():
            for entity, bound in bounds.items():
                self.quotas.update_quota(quota_type, entity, bound)
        self.broker = Broker(self.quotas, start_ms)
        self._clients = [
            (
                DemoClient(role, start_ms, number),
                DemoConnection(role.user, role.client_id),
            )
            for role in cast
            for number in range(role.connections)
        ]

    def advance(self, now_ms: int) -> int:
        """Let everything happen that is due at `now_ms`; return when something is due next. Both are epoch ms."""
        self.broker.reap(now_ms)
        for client, connection in self._clients:
            if client.due_ms <= now_ms and connection.is_read:
                response = self.broker.handle(connection, client.request, client.role.thread_ms, now_ms)
                client.answered(response, now_ms)
        return min(client.due_ms for client, _ in self._clients)


_SHORTEST_MS = 10
_LONGEST_MS = 100


async def run(simulation: Simulation, clock: Clock) -> None:
    """
    Keep the simulation going until canceled.

    Args:
        simulation: what to advance.
        clock: epoch ms that never go back, such as a `SteadyClock`.

    """
    while True:
        next_ms = simulation.advance(clock())
        await asyncio.sleep(pause_ms(next_ms - clock()) / 1000)


def pause_ms(due_in_ms: int) -> int:
    """
    Return how long to sleep, in ms.

    The pause is long enough to cost little, and short enough for throttles to end in time and for the demo to continue
    after the machine was suspended.
    """
    return min(max(due_in_ms, _SHORTEST_MS), _LONGEST_MS)
