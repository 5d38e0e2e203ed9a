"""
Errors in quotas as people write them.

::

    QuotasError
    ├── BadWindows      windows that no cluster has, or that a replay does not take
    ├── InvalidQuotas   a file or a change that no controller would store; says where and why
    └── NotApplied      the cluster does not show what it was asked to store
"""

from __future__ import annotations

from collections.abc import Sequence

from quotascope.metrics.errors import InvalidInput, QuotascopeError


class QuotasError(QuotascopeError):
    """Base of the errors of this room; the message is for a person."""


class BadWindows(QuotasError):
    """No cluster has such windows, or a replay does not support them."""

    is_of_usage = True


class InvalidQuotas(InvalidInput, QuotasError):
    """Quotas that no controller would store."""


class NotApplied(QuotasError):
    """The cluster does not show the quotas that it was asked to store."""

    def __init__(self, reason: str, missing: Sequence[str], done: int) -> None:
        self.missing = tuple(missing)
        """The changes that are not in force, in words."""
        self.done = done
        """Number of changes that are in force."""
        lines = "".join(f"\n  {change}" for change in self.missing)
        super().__init__(f"{reason}; in force: {done}, not in force:{lines}")
