"""Books that only remember what was reported to them."""

from collections.abc import Mapping
from typing import Any


class Remembered:
    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.passed_events = 0
        self.lost_events = self.lost_ends = 0

    @property
    def kinds(self) -> list[str]:
        return [str(event["Event"]) for event in self.events]

    def handle(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    def passed(self, events: int) -> None:
        self.passed_events += events

    def lost(self, events: int, *, ends: bool = True) -> None:
        self.lost_events += events
        self.lost_ends += events if ends else 0
