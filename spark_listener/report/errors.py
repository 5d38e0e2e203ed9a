"""What can go wrong with a report."""

from __future__ import annotations

from ..errors import SparkListenerError


class ReportError(SparkListenerError):
    """A report cannot be made or written."""
