"""Books that only remember what was reported to them."""

from collections.abc import Mapping
from typing import Any


class Remembered:
    """As `Books`."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.passed_events = 0
        self.lost_events = self.lost_ends = 0

    @property
    def kinds(self) -> list[str]:
        """What sort of events came, in their order."""
        return [str(event["Event"]) for event in self.events]

    def handle(self, event: Mapping[str, Any]) -> None:
        """Keep it."""
        self.events.append(event)

    def passed(self, events: int) -> None:
        """Add it up."""
        self.passed_events += events

    def lost(self, events: int, *, ends: bool = True) -> None:
        """Add it up."""
        self.lost_events += events
        self.lost_ends += events if ends else 0
