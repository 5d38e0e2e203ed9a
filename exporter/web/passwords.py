"""Checks passwords against bcrypt hashes, one at a time, and remembers those that were right."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import bcrypt
from pydantic import SecretStr

_LONGEST: Final = 72
"""Bytes that bcrypt looks at. What comes after them never mattered; the library wants them cut off."""
_MOST_WAITING: Final = 16
_MOST_OF_ONE: Final = 4


class TooManyLogins(Exception):
    """More passwords wait to be checked than may; the next attempt may come through."""


class Passwords:
    """
    Who may come in.

    A check costs what its hash says, tens of milliseconds of one core and more, so there is one at a time, beside the
    event loop, and few may wait; a password that was right is recognised at once until its hash changes. Of those, a
    keyed digest is kept for each user, and never the password. Unknown users cost as much as known ones.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._one_at_a_time = asyncio.Lock()
        self._waiting: Counter[str] = Counter()

    async def accept(
        self,
        users: Mapping[str, SecretStr],
        user: str,
        password: bytes,
        address: str,
    ) -> bool:
        """
        Whether this is the password of this user. Raises ``TooManyLogins``.

        Args:
            users: The hashes that hold now.
            user: Who says so.
            password: What was sent.
            address: Where from; one address may have a few checks waiting, and not all.

        """
        hashed = users.get(user) or self._of_somebody(users, user)
        digest = self._digest(user, hashed, password)
        if self._knows(users, user, digest):
            return True
        with self._in_queue(address):
            async with self._one_at_a_time:
                if self._knows(users, user, digest):  # who waited had the same
                    return True
                right = await asyncio.to_thread(_matches, password, hashed)
        if right and user in users:
            self._remember(users, user, digest)
            return True
        return False

    def _knows(self, users: Mapping[str, SecretStr], user: str, digest: bytes) -> bool:
        known = self._right.get(user)
        return (
            user in users and known is not None and hmac.compare_digest(known, digest)
        )

    def _remember(
        self, users: Mapping[str, SecretStr], user: str, digest: bytes
    ) -> None:
        self._right = {name: old for name, old in self._right.items() if name in users}
        self._right[user] = digest

    def _digest(self, user: str, hashed: SecretStr, password: bytes) -> bytes:
        parts = (user.encode(), hashed.get_secret_value().encode(), password)
        each = (hmac.digest(self._key, part, "sha256") for part in parts)
        return hmac.digest(self._key, b"".join(each), "sha256")

    def _of_somebody(self, users: Mapping[str, SecretStr], user: str) -> SecretStr:
        """A hash for a user that there is not: always the same, so that its cost tells nothing."""
        digest = hmac.digest(self._key, user.encode(), "sha256")
        hashes = list(users.values())
        return hashes[int.from_bytes(digest) % len(hashes)]

    @contextmanager
    def _in_queue(self, address: str) -> Iterator[None]:
        waiting = self._waiting
        if waiting.total() >= _MOST_WAITING or waiting[address] >= _MOST_OF_ONE:
            raise TooManyLogins
        waiting[address] += 1
        try:
            yield
        finally:
            waiting[address] -= 1
            if not waiting[address]:
                del waiting[address]


def _matches(password: bytes, hashed: SecretStr) -> bool:
    return bcrypt.checkpw(password[:_LONGEST], hashed.get_secret_value().encode())
