"""The quota engine of Apache Kafka, in plain Python, and the catalogue of what is exposed about quotas."""

from .entities import DEFAULT, DefaultType, Level, QuotaEntity
from .quota_type import QuotaType
from .rules import NO_RULE, QuotaRules, Resolution, RuleSnapshot, RuleTable

__all__ = [
    "DEFAULT",
    "NO_RULE",
    "DefaultType",
    "Level",
    "QuotaEntity",
    "QuotaRules",
    "QuotaType",
    "Resolution",
    "RuleSnapshot",
    "RuleTable",
]
