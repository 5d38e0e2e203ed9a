"""Entries that are kept for a while after they were last seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Expiring(Generic[K, V]):
    """
    Values by key, each dropped when it was not seen for longer than ``keep``.

    Time is an argument, in any unit, and may be the time of a snapshot: a clock that was set back expires an entry
    like one that went on, since what was seen in the future would be kept too long. (``cachetools.TTLCache`` reads a
    clock of its own at each access.)
    """

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._entries: dict[K, tuple[V, float]] = {}

    def see(self, key: K, value: V, now_seconds: float) -> None:
        """Set the value of a key that is seen now."""
        self._entries[key] = value, now_seconds

    def get(self, key: K) -> V | None:
        """Return the value of a key, None when there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def expire(self, now_seconds: float) -> list[K]:
        """Drop the entries that were last seen too long ago, and return their keys."""
        expired = [key for key, (_, seen_at) in self._entries.items() if abs(now_seconds - seen_at) > self._keep]
        for key in expired:
            del self._entries[key]
        return expired

    def values(self) -> list[V]:
        """Return the values, in the order in which their keys were first seen."""
        return [value for value, _ in self._entries.values()]

    def __len__(self) -> int:
        return len(self._entries)
