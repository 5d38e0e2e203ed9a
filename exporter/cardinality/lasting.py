"""What is known of whoever is still there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Lasting(Generic[Key, Value]):
    """
    A mapping that forgets what nobody has asked for during ``seconds`` to twice as long.

    Its size is bounded by the keys of that time, however many there were before. Times are Unix
    times in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._turned_at = float("-inf")
        self._old: dict[Key, Value] = {}
        self._new: dict[Key, Value] = {}

    def forget(self, at: float) -> None:
        """Drop what nobody has asked for; to be called now and then."""
        # a clock that was set back counts as time that passed
        if abs(at - self._turned_at) >= self._seconds:
            self._turned_at = at
            self._old, self._new = self._new, {}

    def get(self, key: Key) -> Value | None:
        """What is known of the key, None when that is nothing."""
        value = self._new.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self._new[key] = value
        return value

    def set(self, key: Key, value: Value) -> None:
        """Know this of the key."""
        self._new[key] = value

    def __len__(self) -> int:
        return len(self._old.keys() | self._new.keys())
