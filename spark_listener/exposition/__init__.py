"""
Shows the books of jobs: to Prometheus on a page of the driver, and pushed over OTLP.

`start_reporting` is all that a program needs; `JobCollector` is for a registry that a program serves or pushes itself.
"""

from .collector import JobCollector
from .keys import KEYS
from .reporting import Reporting, start_reporting

__all__ = ["KEYS", "JobCollector", "Reporting", "start_reporting"]
