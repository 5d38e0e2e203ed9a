"""
Errors of the command line itself.

::

    QuotascopeError
    └── FileNotWritten  a file that a command writes
"""

from __future__ import annotations

from quotascope.metrics.errors import QuotascopeError


class FileNotWritten(QuotascopeError):
    """A file that a command was to write; it is unchanged."""
