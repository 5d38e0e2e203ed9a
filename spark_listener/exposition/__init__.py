"""
Reports of the state of jobs: to Prometheus on a page of the driver, and pushed over OTLP.

`start_reporting` does all of it; `JobCollector` is for a registry that a program serves or pushes itself.
"""

from .collector import JobCollector
from .reporting import Reporting, start_reporting

__all__ = ["JobCollector", "Reporting", "start_reporting"]
