"""A check that a report of an ingest accounts for every line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quotascope.pipeline.ingest import IngestReport


def balanced(report: IngestReport) -> bool:
    """Check that every line was added, known before, repeated, or the second line of a forwarded request."""
    added = report.kept + report.quarantined
    accounted = report.duplicates + report.repeated + report.quarantined_before + report.forwarded
    return report.read == added + accounted
