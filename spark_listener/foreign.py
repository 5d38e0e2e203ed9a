"""Types of objects that belong to other programs."""

from __future__ import annotations

from typing import Any

Java = Any
"""An object of the JVM, through py4j: what it can do is known only there."""
Spark = Any
"""A session, a SparkContext or an event of PySpark, of whatever version and mode."""
