"""
Request logs into a folder of two tables, `requests` and `quarantine`, by one process and without a JVM.

Reading the same lines again adds nothing: neither a second run over the same files, nor over files that have grown or
were rotated.
"""

from .local import ingest
from .options import IngestOptions, IngestReport, IngestTables

__all__ = ["IngestOptions", "IngestReport", "IngestTables", "ingest"]
