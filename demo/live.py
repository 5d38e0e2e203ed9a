"""The demo in real time."""

import asyncio

from quotascope.metrics import Clock

from .simulation import Simulation

_SHORTEST_MS = 10
_LONGEST_MS = 100


async def run(simulation: Simulation, clock: Clock) -> None:
    """
    Keep the simulation going until cancelled.

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

    Long enough to cost little, and short enough that a throttle ends in time and a machine that was suspended continues.
    """
    return min(max(due_in_ms, _SHORTEST_MS), _LONGEST_MS)
