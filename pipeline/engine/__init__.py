"""
The engines that do the work of a question: `Local`, and `quotascope.pipeline.spark.engine.Spark`.

Work that only maps takes a `quotascope.pipeline.table.Map`: Python's `map`, or that of an engine.
"""

from .base import Engine
from .local import Local

__all__ = ["Engine", "Local"]
