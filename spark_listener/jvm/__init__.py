"""
What the Kafka clients in the JVMs of a job were told, such as those of Spark's Kafka connector.

`write_jar` writes a plugin for Spark (`spark.plugins`, `PLUGIN`) whose Java is in `java/`; `PluginTotals` reads its counts in the
driver. `REPORTER` makes the counts of a source or a sink exact.
"""

from ..errors import JarUnavailable, PluginUnreadable
from .jar import write_jar
from .plugin import KEYS, PLUGIN, REPORTER, PluginTotals

__all__ = [
    "KEYS",
    "PLUGIN",
    "REPORTER",
    "JarUnavailable",
    "PluginTotals",
    "PluginUnreadable",
    "write_jar",
]
