"""What keeps this configuration from showing what it could, found out by trying everything once."""

from .build import checks_of
from .evidence import Evidence
from .examination import Check, examine
from .result import Result, Verdict, worst

__all__ = ["Check", "Evidence", "Result", "Verdict", "checks_of", "examine", "worst"]
