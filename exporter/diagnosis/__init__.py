"""What analyzes snapshots, limits and configurations, and exports nothing: findings, explanations, selections, and the doctor."""

from .catalog import Catalog, Finding, FindingSeverity, worst
from .findings import diagnose

__all__ = ["Catalog", "Finding", "FindingSeverity", "diagnose", "worst"]
