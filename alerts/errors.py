"""
What can go wrong in this room.

::

    AlertsError
    ├── InvalidSite        a label or an address that Prometheus or a browser would refuse
    ├── InvalidExpression  a PromQL builder was used in a way that gives a wrong answer
    └── CannotWrite        a file cannot be written
"""

from __future__ import annotations


class AlertsError(Exception):
    """Anything that goes wrong with alerts; the message is for a human."""


class InvalidSite(AlertsError):
    """A label or an address that Prometheus or a browser would refuse."""


class InvalidExpression(AlertsError):
    """A PromQL builder was used in a way that gives a wrong answer, such as a rate of a gauge."""


class CannotWrite(AlertsError):
    """A file cannot be written."""
