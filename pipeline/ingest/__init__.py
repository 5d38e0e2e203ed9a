"""
Request logs into a folder of two tables, `requests` and `quarantine`, by one process and without a JVM.

Reading the same lines again adds nothing: neither a second run over the same files, nor over files that have grown or were rotated.
"""

from .local import ingest
from .options import Options
from .report import Report
from .tables import Tables

__all__ = ["Options", "Report", "Tables", "ingest"]
