"""
Analyzes snapshots, limits and configurations, and exports nothing.

Findings, explanations, selections, and the doctor.
"""

from .catalog import UNCERTAIN, Catalog, Finding, FindingSeverity, is_all_clear, worst
from .findings import diagnose

__all__ = ["UNCERTAIN", "Catalog", "Finding", "FindingSeverity", "diagnose", "is_all_clear", "worst"]
