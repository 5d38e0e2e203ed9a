"""What every source of events does."""

from __future__ import annotations

from typing import Protocol


class Source(Protocol):
    """Brings the events of one application to its books."""

    @property
    def name(self) -> str:
        """pull, callbacks, streaming or event_log."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the application has said that it ends; nothing comes after that."""
        ...

    def collect(self) -> float:
        """Bring what is there to the books. Says how late the latest of it was, in seconds; raises when the source is gone."""
        ...

    def close(self) -> None:
        """Leave nothing behind in Spark; what happened before is in the books afterwards. Raises when Spark is gone."""
        ...
