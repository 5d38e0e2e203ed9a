"""
``import quotascope.spark_listener.hook``: one line in a job, and properties of Spark decide about the rest.

It does nothing for an application without ``spark.quotascope.enabled=true``.
"""

from __future__ import annotations

from .enabling import enable

enable()
