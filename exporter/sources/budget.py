"""
The bounds of the answers of all sources together: bytes while they are read, and memory while they are decoded.

Each source has a bound of its own, but a hundred sources have a hundred of these. Here they share, and a source whose
agent means harm stands back for the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from ..errors import SourceUnreadable

MEBIBYTE: Final = 1 << 20
MOST_BYTES: Final = 64 * MEBIBYTE
"""Bytes of the bodies of all answers together; one of them may be longer, up to its ``max_answer_bytes``."""
_LEASE_SECONDS: Final = 1.0
"""Time that one body may be longer while others wait."""
_SHORT_LEASE_SECONDS: Final = 0.25
"""The same after an answer of that source could not be used."""
_DOUBTFUL_SECONDS: Final = 5.0
LARGE_BYTES: Final = 4 * MEBIBYTE
"""An answer that is longer and cannot be used makes its source doubtful."""
COST_OF_TEXT: Final = 4
"""Bytes of memory for each byte of text that is decoded."""
COST_OF_LINE: Final = 200
COST_OF_JSON: Final = 3
COST_OF_MARK: Final = 120
"""Bytes of memory for each value of JSON."""
SMALL_COST: Final = 64 * MEBIBYTE
"""Cost up to which an answer is decoded beside others: that of 15,000 clients costs less."""
_MOST_SMALL: Final = 128 * MEBIBYTE


class Body:
    """The bytes of one answer that is being read, or decoded."""

    def __init__(self, *, doubtful: bool) -> None:
        self.length = 0
        """Bytes that it has now."""
        self.greatest = 0
        """Most bytes that it has had."""
        self.give_way: Callable[[], None] = _nothing
        """Callback that ends the read of this body."""
        self.doubtful = doubtful
        """True if the last answer of its source could not be used."""
        self.gave_way = False
        """True if its read was ended for others."""
        self.complete = False
        """True if all of it has arrived; then it is only decoded."""
        self.turn_since = 0.0
        """Time at which it got the turn, by the event loop's clock."""


def _nothing() -> None:
    """Do nothing: the body has no connection yet that could be ended."""


class Budget:
    """
    The bytes of all bodies together.

    Where there is no room, one body at a time has its turn and may be longer, the shortest first; one that takes too
    long gives way when others wait. Bodies of sources whose last answer could not be used have half of the room, and
    come last.
    """

    def __init__(self, max_bytes: int = MOST_BYTES) -> None:
        self._most = max_bytes
        self._used = 0
        self._turn: Body | None = None
        self._waiting: list[tuple[Body, asyncio.Future[None]]] = []
        self._doubtful: Body | None = None
        """The doubtful body that is being read or decoded."""
        self._doubtful_since = 0.0
        self._doubtful_waiting: list[asyncio.Future[None]] = []

    async def grow(self, body: Body, length: int) -> None:
        """Wait until a body may have this length. Raises ``SourceUnreadable`` when it has to give way."""
        loop = asyncio.get_running_loop()
        while not body.gave_way:
            max_used = self._most // 2 if body.doubtful else self._most
            used = self._used + length - body.length
            if body is self._turn or used <= max_used:
                self._used = used
                body.length = length
                body.greatest = max(body.greatest, length)
                return
            if self._turn is None:  # it gets the turn, with which it may be longer
                self._turn, body.turn_since = body, loop.time()
                continue
            await self._wait(body, loop)
        raise SourceUnreadable(
            f"the answers of all sources are longer than {self._most / MEBIBYTE:g} MiB together, and this one is "
            "long or slow: it is read again next time; is this a metrics agent?"
        )

    @asynccontextmanager
    async def turn(self, body: Body) -> AsyncIterator[None]:
        """
        Let doubtful bodies be read and decoded one after the other, each for some seconds while others wait.

        All other bodies are read at once.
        """
        if not body.doubtful:
            yield
            return
        loop = asyncio.get_running_loop()
        while (
            self._doubtful is not None
            and (remaining_seconds := self._doubtful_since + _DOUBTFUL_SECONDS - loop.time()) > 0
        ):
            room: asyncio.Future[None] = loop.create_future()
            self._doubtful_waiting.append(room)
            await asyncio.wait({room}, timeout=remaining_seconds)
        # the body before may still be read, but its time is over
        self._doubtful, self._doubtful_since = body, loop.time()
        try:
            yield
        finally:
            if self._doubtful is body:
                self._doubtful = None
                waiting, self._doubtful_waiting = self._doubtful_waiting, []
                for room in waiting:
                    if not room.done():
                        room.set_result(None)

    def close(self, body: Body) -> None:
        """Give back the bytes of a body; bodies that wait try again, the shortest first."""
        self._used -= body.length
        body.length = 0
        if body is self._turn:
            self._turn = None
        waiting, self._waiting = self._waiting, []
        for _, room in sorted(waiting, key=lambda entry: (entry[0].doubtful, entry[0].length)):
            if not room.done():
                room.set_result(None)

    async def _wait(self, body: Body, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until something is given back, or the turn of another body has lasted too long."""
        holder = self._turn
        if holder is None:
            return
        lease = _SHORT_LEASE_SECONDS if holder.doubtful else _LEASE_SECONDS
        remaining_seconds = max(0.0, holder.turn_since + lease - loop.time())
        room: asyncio.Future[None] = loop.create_future()
        self._waiting.append((body, room))
        done, _ = await asyncio.wait({room}, timeout=None if holder.complete else remaining_seconds)
        if done:
            return
        # no room in time: the body with the turn gives way, if it still has it
        self._waiting = [entry for entry in self._waiting if entry[1] is not room]
        if holder is self._turn and not holder.complete:
            holder.gave_way = True
            holder.give_way()
            self.close(holder)


class Decoding:
    """
    Turns of answers to be decoded: small ones side by side, large ones one at a time, the smallest first.

    So the answers of malicious agents are decoded one after the other, and no ordinary answer waits for them.
    """

    def __init__(self, most_small: int = _MOST_SMALL) -> None:
        self._most_small = most_small
        self._small_cost = 0
        """Cost of all small answers that are being decoded, in bytes."""
        self._large_is_decoded = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, cost: int) -> AsyncIterator[None]:
        """Wait for the turn of an answer that takes ``cost`` bytes of memory, and keep it until the block ends."""
        while not self._has_room(cost):
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((cost, room))
            await room
        is_large = cost > SMALL_COST
        if is_large:
            self._large_is_decoded = True
        else:
            self._small_cost += cost
        try:
            yield
        finally:
            if is_large:
                self._large_is_decoded = False
            else:
                self._small_cost -= cost
            waiting, self._waiting = self._waiting, []
            for _, room in sorted(waiting, key=lambda entry: entry[0]):
                if not room.done():
                    room.set_result(None)

    def _has_room(self, cost: int) -> bool:
        """Return whether an answer of a cost may be decoded now."""
        if cost > SMALL_COST:
            return not self._large_is_decoded
        return self._small_cost + cost <= self._most_small


BUDGET: Final = Budget()
DECODING: Final = Decoding()
