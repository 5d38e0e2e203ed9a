"""What was seen a short while ago."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

LINGER_SECONDS: Final = 60.0
"""How long a throttle stays in Kafka's averages: 2 x 30 s."""


class Recent(Generic[Key]):
    """
    When each key was last seen, for as long as that matters.

    Times are Unix times in seconds. A clock that is set back makes nothing recent
    for longer than ``seconds``.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[Key, float] = {}

    def note(self, key: Key, at: float) -> None:
        """See ``key`` now."""
        self._seen[key] = at

    def drop(self, key: Key) -> None:
        """Never have seen ``key``."""
        self._seen.pop(key, None)

    def forget(self, at: float) -> None:
        """Drop what is too long ago."""
        self._seen = {
            key: seen
            for key, seen in self._seen.items()
            if abs(at - seen) <= self._seconds
        }

    def __contains__(self, key: Key) -> bool:
        return key in self._seen

    def __iter__(self) -> Iterator[Key]:
        return iter(self._seen)
