"""Throttle times, failures and retries of an application, from its event log: as a report, JSON, CSV and image."""

from ..errors import ReportError
from .application import Application, read_application
from .image import image
from .report import as_csv, document, page, report

__all__ = [
    "Application",
    "ReportError",
    "as_csv",
    "document",
    "image",
    "page",
    "read_application",
    "report",
]
