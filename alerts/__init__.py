"""
Recording rules, alerts and runbooks for Prometheus, as code.

What needs the catalog is in ``book`` (all rules), ``write`` (all files) and ``promql``, so that
naming an error or an address stays quick.
"""

from __future__ import annotations

from .errors import AlertsError, CannotWrite, InvalidExpression, InvalidSite
from .links import Dashboard, Site, dashboard_url, runbook_url
from .thresholds import Threshold, thresholds

__all__ = [
    "AlertsError",
    "CannotWrite",
    "Dashboard",
    "InvalidExpression",
    "InvalidSite",
    "Site",
    "Threshold",
    "dashboard_url",
    "runbook_url",
    "thresholds",
]
