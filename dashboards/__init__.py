"""Grafana dashboards, as code: ``files`` makes and writes them, ``grafana`` saves them in a Grafana."""

from __future__ import annotations

from .errors import DashboardsError, DashboardsNotWritten, GrafanaError, GrafanalibMissing

__all__ = [
    "DashboardsError",
    "DashboardsNotWritten",
    "GrafanaError",
    "GrafanalibMissing",
]
