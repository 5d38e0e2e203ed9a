"""
What can go wrong in this room.

::

    DashboardsError
    ├── GrafanalibMissing   the extra that builds dashboards is not installed
    ├── DashboardsNotWritten         a folder or file cannot be written
    └── GrafanaError        a Grafana could not be reached, or refused
"""

from __future__ import annotations


class DashboardsError(Exception):
    """Anything that goes wrong with dashboards; the message is for a human."""


class GrafanalibMissing(DashboardsError):
    """The extra that builds dashboards is not installed."""


class DashboardsNotWritten(DashboardsError):
    """A folder or file cannot be written."""


class GrafanaError(DashboardsError):
    """A Grafana could not be reached, or refused; the token is never part of the message."""
