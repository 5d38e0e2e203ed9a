"""Grafana dashboards, as code: ``files`` makes and writes them, ``grafana`` puts them there."""

from __future__ import annotations

from .errors import CannotWrite, DashboardsError, GrafanaError, GrafanalibMissing

__all__ = ["CannotWrite", "DashboardsError", "GrafanaError", "GrafanalibMissing"]
