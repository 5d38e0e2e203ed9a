"""
The part that runs in the JVMs of a job, written in Java (`java/`).

The driver's queue of events, and a plugin for Spark (`spark.plugins`, `PLUGIN`).

The plugin counts throttle times of Kafka clients, such as those of Spark's Kafka connector: `write_jar` writes its jar,
`PluginTotals` reads its counts in the driver. `REPORTER` makes the counts of a source or a sink exact.
"""

from ..errors import JarUnavailable, PluginUnreadable
from .plugin import JAR, PLUGIN, REPORTER, PluginTotals, write_jar

__all__ = [
    "JAR",
    "PLUGIN",
    "REPORTER",
    "JarUnavailable",
    "PluginTotals",
    "PluginUnreadable",
    "write_jar",
]
