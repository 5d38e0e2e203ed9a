"""
Throttle times of the Kafka clients in the JVMs of a job, such as those of Spark's Kafka connector.

`write_jar` writes a plugin for Spark (`spark.plugins`, `PLUGIN`), written in Java (`java/`); `PluginTotals` reads its counts in the
driver. `REPORTER` makes the counts of a source or a sink exact.
"""

from ..errors import JarUnavailable, PluginUnreadable
from .plugin import PLUGIN, REPORTER, PluginTotals, write_jar

__all__ = [
    "PLUGIN",
    "REPORTER",
    "JarUnavailable",
    "PluginTotals",
    "PluginUnreadable",
    "write_jar",
]
