"""When a client has something to ask."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """A steady pace, if wished with pauses. All times in ms."""

    every_ms: int
    """Mean time between two requests."""
    jitter: float = 0.1
    """How far that time varies, as a part of it."""
    busy_ms: int = 0
    """Length of a burst; 0 for no pauses."""
    pause_ms: int = 0
    """Silence after a burst."""
    first_ms: int = 0
    """Time of the first request after the start."""

    def next_ms(self, elapsed_ms: int, random: Random) -> int:
        """Return when the request after the one at `elapsed_ms` is due, both since the start."""
        spread = self.jitter * self.every_ms
        due_ms = elapsed_ms + round(
            random.uniform(self.every_ms - spread, self.every_ms + spread)
        )
        return self._after_pause(due_ms)

    def _after_pause(self, due_ms: int) -> int:
        cycle_ms = self.busy_ms + self.pause_ms
        if not self.busy_ms:
            return due_ms
        into_cycle_ms = (due_ms - self.first_ms) % cycle_ms
        if into_cycle_ms < self.busy_ms:
            return due_ms
        return due_ms + cycle_ms - into_cycle_ms
