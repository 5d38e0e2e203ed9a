"""Recording rules, alerts and runbooks for Prometheus, as code."""

from __future__ import annotations

from .errors import AlertsError, InvalidExpression, InvalidSite
from .links import Dashboard, Site, dashboard_url, runbook_url
from .thresholds import Threshold, thresholds

__all__ = [
    "AlertsError",
    "Dashboard",
    "InvalidExpression",
    "InvalidSite",
    "Site",
    "Threshold",
    "dashboard_url",
    "runbook_url",
    "thresholds",
]
