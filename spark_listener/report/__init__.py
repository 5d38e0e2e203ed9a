"""Throttle times, failures and retries of an application, read from its event log: as tables, JSON, a page and an image."""

from ..errors import ReportError
from .application import Application, read_application
from .page import image, page
from .sections import document, tables

__all__ = [
    "Application",
    "ReportError",
    "document",
    "image",
    "page",
    "read_application",
    "tables",
]
