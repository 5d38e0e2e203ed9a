"""
Errors of dashboards.

::

    DashboardsError
    ├── GrafanalibMissing     the extra that builds dashboards is not installed
    ├── DashboardsNotWritten  a folder or file cannot be written
    ├── InvalidExpression     a PromQL builder was used in a way that gives a wrong answer
    └── GrafanaError          a Grafana could not be reached, or refused
"""

from __future__ import annotations

from quotascope.metrics.errors import QuotascopeError


class DashboardsError(QuotascopeError):
    """Anything that goes wrong with dashboards; the message is for a human."""


class GrafanalibMissing(DashboardsError):
    """The extra that builds dashboards is not installed."""


class DashboardsNotWritten(DashboardsError):
    """A folder or file cannot be written."""


class InvalidExpression(DashboardsError):
    """A PromQL builder was used in a way that gives a wrong answer, such as a rate of a gauge."""


class GrafanaError(DashboardsError):
    """A Grafana could not be reached, or refused; the token is never part of the message."""
