"""What became of the lines of a run."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Counts of lines, each in exactly one of them."""

    read: int = 0
    kept: int = 0
    """Requests that were added."""
    quarantined: int = 0
    """Lines that could not be read and were added to the quarantine."""
    duplicates: int = 0
    """Requests that were there before, or twice in the input."""
    quarantined_before: int = 0
    """Unreadable lines that were in the quarantine before, or twice in the input."""
    forwarded: int = 0
    """Controllers' second lines of requests that brokers log."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Quarantined lines by reason."""
    broken: dict[str, str] = field(default_factory=dict)
    """Files that could not be read to their end, and why; what was read of them counts."""

    left_out: dict[str, str] = field(default_factory=dict)
    """What the folders hold besides, and why it was not read."""

    @property
    def balanced(self) -> bool:
        """Whether every line that was read is accounted for."""
        added = self.kept + self.quarantined
        known = self.duplicates + self.quarantined_before + self.forwarded
        return self.read == added + known

    @property
    def nothing_readable(self) -> bool:
        """Whether there were lines, and none of them was a request."""
        return 0 < self.read == self.quarantined + self.quarantined_before
