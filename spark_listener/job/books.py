"""What a source of events needs of the books."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Books(Protocol):
    """What a source fills, from any thread. `Job` is one; a source may put another before it, such as to leave events out."""

    def handle(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        ...

    def passed(self, events: int) -> None:
        """Count events that were seen and left out on purpose."""
        ...

    def lost(self, events: int) -> None:
        """Count events that were missed."""
        ...
