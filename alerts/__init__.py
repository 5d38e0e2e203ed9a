"""
Recording rules, alerts and runbooks for Prometheus.

The rules are texts in ``rules/``, which ``render`` fills in; ``files`` writes them.
"""

from __future__ import annotations

from .errors import AlertsError, CannotWrite, InvalidSite
from .links import Dashboard, Site, dashboard_url, runbook_url
from .thresholds import Threshold, thresholds

__all__ = [
    "AlertsError",
    "CannotWrite",
    "Dashboard",
    "InvalidSite",
    "Site",
    "Threshold",
    "dashboard_url",
    "runbook_url",
    "thresholds",
]
