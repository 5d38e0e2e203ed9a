"""Whether a report of an ingest accounts for every line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quotascope.pipeline.ingest import IngestReport


def balanced(report: IngestReport) -> bool:
    """Every line that was read was added, or was known before, or is a second line of a forwarded request."""
    added = report.kept + report.quarantined
    known = report.duplicates + report.quarantined_before + report.forwarded
    return report.read == added + known
