"""Checks passwords against bcrypt hashes, one at a time, and remembers those that were right."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import bcrypt
from pydantic import SecretStr

from .places import network_of, surroundings

_LONGEST: Final = 72
"""Bytes of a password that bcrypt looks at. Bytes after them never mattered; the library wants them cut off."""
_MOST_WAITING: Final = 16
_MOST_OF_ONE: Final = 4
_MOST_NETWORKS: Final = 4096
"""
Addresses with wrong passwords that are counted, and as many wider networks; the one with the oldest attempt is dropped
first.
"""
_MOST_COUNTED: Final = 16
"""
Most wrong passwords that are counted: a user who shares an address with a guesser does not wait behind all others for
ever.
"""


class TooManyLogins(Exception):
    """More passwords wait to be checked than may; the next attempt may come through."""


class Passwords:
    """
    Checks users and passwords.

    A check takes tens of milliseconds of one core or more, depending on its hash, so there is one at a time, beside the
    event loop, and few may wait; a password that was right is recognized at once until its hash changes. Of a right
    password, a keyed digest is kept for each user, and never the password itself. Unknown users cost as much as known
    ones. ``pick`` draws a number below another one.
    """

    def __init__(self, pick: Callable[[int], int] = secrets.randbelow) -> None:
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._turns = _Turns(pick)

    async def accept(self, users: Mapping[str, SecretStr], user: str, password: bytes, address: str) -> bool:
        """
        Return whether this is the password of this user. Raises ``TooManyLogins``.

        Args:
            users: The hashes that hold now.
            user: The user of the request.
            password: The password of the request.
            address: Address of the client, which decides when the password is checked.

        """
        hashed = users.get(user)
        if hashed is None:  # the hash of another user, always the same for a name, so that its cost reveals nothing
            place = int.from_bytes(hmac.digest(self._key, user.encode(), "sha256"))
            hashed = list(users.values())[place % len(users)]
        # one digest of all three: it no longer matches when the user's hash changes
        parts = user.encode(), hashed.get_secret_value().encode(), password
        digests = (hmac.digest(self._key, part, "sha256") for part in parts)
        digest = hmac.digest(self._key, b"".join(digests), "sha256")
        if self._knows(users, user, digest):
            return True
        async with self._turns.turn(address):
            if self._knows(users, user, digest):  # an attempt that waited had the same password
                return True
            right = await asyncio.to_thread(bcrypt.checkpw, password[:_LONGEST], hashed.get_secret_value().encode())
            accepted = right and user in users
            self._turns.record(address, right=accepted)
        if accepted:
            remembered = {name: old for name, old in self._right.items() if name in users}
            self._right = {**remembered, user: digest}
        return accepted

    def _knows(self, users: Mapping[str, SecretStr], user: str, digest: bytes) -> bool:
        """Return whether the digest is that of the last right password of this user, who still exists."""
        remembered = self._right.get(user)
        return user in users and remembered is not None and hmac.compare_digest(remembered, digest)


@dataclass(slots=True, eq=False)
class _Attempt:
    """A password that waits to be checked."""

    network: str
    turn: asyncio.Future[None]
    """Future that is done when the password is to be checked; ``TooManyLogins`` when it has to make room."""


class _Turns:
    """
    Decides which password is checked next, one at a time.

    The next attempt is from the address with the fewest wrong passwords; among equal addresses, the wrong passwords of
    the networks around them decide, and then chance. When too many attempts wait, one from the address with the most is
    refused. So a right password is checked soon, however many wrong ones are sent, even from the same address: a
    guesser gains neither by being early nor by sending many, and little by having many addresses, which are in few
    networks.
    """

    def __init__(self, pick: Callable[[int], int]) -> None:
        self._pick = pick
        self._wrong: OrderedDict[str, int] = OrderedDict()
        """Wrong passwords by address."""
        self._around: OrderedDict[str, int] = OrderedDict()
        """Wrong passwords by wider network."""
        self._waiting: list[_Attempt] = []
        self._checking = False

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it until the end of the block. Raises ``TooManyLogins``."""
        mine = _Attempt(network_of(address), asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._make_room(mine.network)
        self._next()
        try:
            await mine.turn
            yield
        finally:
            if mine in self._waiting:  # the attempt was canceled
                self._waiting.remove(mine)
            elif not mine.turn.cancelled() and mine.turn.exception() is None:
                self._checking = False
                self._next()

    def record(self, address: str, *, right: bool) -> None:
        """Record the result of a check."""
        network = network_of(address)
        if right:
            self._wrong.pop(network, None)
            return
        _count(self._wrong, network)
        for wider in surroundings(network):
            _count(self._around, wider)

    def _suspicion(self, network: str) -> tuple[int, ...]:
        """
        Return the counts of wrong passwords of an address and of the networks around it, nearest first.

        An address with more of them waits longer.
        """
        return self._wrong.get(network, 0), *(self._around.get(wider, 0) for wider in surroundings(network))

    def _make_room(self, network: str) -> None:
        """Refuse an attempt if too many wait, from this network or in all."""
        of_network = [waiting for waiting in self._waiting if waiting.network == network]
        if len(of_network) > _MOST_OF_ONE:
            self._refuse(of_network)
        elif len(self._waiting) > _MOST_WAITING:
            # from the network with the most wrong passwords; of equal ones, that with the most attempts that wait
            crowd = Counter(waiting.network for waiting in self._waiting)
            ranks = {name: (self._wrong.get(name, 0), count, *self._suspicion(name)) for name, count in crowd.items()}
            worst_rank = max(ranks.values())
            worst = {name for name in crowd if ranks[name] == worst_rank}
            self._refuse([waiting for waiting in self._waiting if waiting.network in worst])

    def _refuse(self, attempts: list[_Attempt]) -> None:
        """Refuse one of these attempts, by chance."""
        chosen = attempts[self._pick(len(attempts))]
        self._waiting.remove(chosen)
        if not chosen.turn.done():  # else it was canceled just now
            chosen.turn.set_exception(TooManyLogins())

    def _next(self) -> None:
        """Let the next attempt be checked, unless one is being checked already."""
        self._waiting = [waiting for waiting in self._waiting if not waiting.turn.done()]
        if self._checking or not self._waiting:
            return
        ranks = [self._suspicion(waiting.network) for waiting in self._waiting]
        fewest = min(ranks)
        candidates = [waiting for waiting, rank in zip(self._waiting, ranks, strict=True) if rank == fewest]
        chosen = candidates[self._pick(len(candidates))]
        self._waiting.remove(chosen)
        self._checking = True
        chosen.turn.set_result(None)


def _count(counts: OrderedDict[str, int], name: str) -> None:
    """Count one more for ``name``, and drop the oldest counts where there are too many."""
    # taken out and put back: the name that was counted last is at the end
    counts[name] = min(counts.pop(name, 0) + 1, _MOST_COUNTED)
    if len(counts) > _MOST_NETWORKS:
        counts.popitem(last=False)
