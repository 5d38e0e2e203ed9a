"""Who is connected, and which of them is shown out when there is no room."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Guest: TypeAlias = object
Drop: TypeAlias = Callable[[], None]


class Guests:
    """
    Connections: some whose request is being answered, and some that wait.

    They wait for a handshake, for the rest of a request, or for the next one. When all places are taken, a new
    connection gets that of whoever waited longest, so that nobody can keep others out by waiting. Places of requests
    are given to nobody.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[Guest, Drop] = {}  # the longest first
        self._asking: dict[Guest, Drop] = {}

    @property
    def asking(self) -> int:
        """How many requests are being answered."""
        return len(self._asking)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._asking)

    def enter(self, guest: Guest, drop: Drop) -> bool:
        """A new connection, which ``drop`` ends; False when there is no room for it."""
        if len(self) >= self._most and not self.make_room():
            return False
        self._waiting[guest] = drop
        return True

    def make_room(self) -> bool:
        """End the connection that waited longest; False when none waits."""
        if not self._waiting:
            return False
        longest = next(iter(self._waiting))
        self._waiting.pop(longest)()
        return True

    def asks(self, guest: Guest) -> None:
        """Its request has come."""
        drop = self._waiting.pop(guest, None)
        if drop is not None:
            self._asking[guest] = drop

    def waits(self, guest: Guest) -> None:
        """Its answer is taken."""
        drop = self._asking.pop(guest, None)
        if drop is not None:
            self._waiting[guest] = drop

    def leave(self, guest: Guest) -> None:
        """It is gone."""
        self._waiting.pop(guest, None)
        self._asking.pop(guest, None)
