"""
What can go wrong with quotas as people write them.

::

    QuotasError
    ├── BadWindows      windows that no cluster has, or that a replay does not take
    ├── InvalidQuotas   a file or a change that no controller would store; says where and why
    └── NotApplied      the cluster does not show what it was asked to store
"""

from __future__ import annotations

from collections.abc import Sequence


class QuotasError(Exception):
    """Anything that goes wrong with quotas as people write them; the message is for a human."""


class InvalidInput(Exception):
    """Something that was read, and cannot be used; holds every problem found, not only the first. Base of the errors of several rooms."""

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.subject = subject
        """What was read, such as the name of a file."""
        self.problems = tuple(problems)
        """One sentence for each, beginning with its place."""
        super().__init__(subject, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.subject}: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.subject}: {len(self.problems)} problems{lines}"


class InvalidQuotas(InvalidInput, QuotasError):
    """Quotas that no controller would store."""


class NotApplied(QuotasError):
    """The cluster does not show what it was asked to store."""

    def __init__(self, reason: str, missing: Sequence[str], done: int) -> None:
        self.missing = tuple(missing)
        """The changes that are not in force, in words."""
        self.done = done
        """How many of the others are."""
        lines = "".join(f"\n  {change}" for change in self.missing)
        super().__init__(f"{reason}; in force: {done}, not in force:{lines}")
