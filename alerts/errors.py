"""
Errors of rules and their files.

::

    AlertsError
    ├── InvalidSite  a label or an address that Prometheus or a browser would refuse
    └── CannotWrite  a file cannot be written
"""

from __future__ import annotations

from quotascope.metrics.errors import QuotascopeError


class AlertsError(QuotascopeError):
    """Anything that goes wrong with alerts; the message is for a human."""


class InvalidSite(AlertsError):
    """A label or an address that Prometheus or a browser would refuse."""


class CannotWrite(AlertsError):
    """A file cannot be written."""
