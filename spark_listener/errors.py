"""What can go wrong with watching a Spark job."""

from __future__ import annotations


class SparkListenerError(Exception):
    """Something about watching a Spark job went wrong; the message says what, where, and what to do."""
