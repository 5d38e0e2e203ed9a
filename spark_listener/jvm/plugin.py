"""The jar, which this installation carries, and the counts of its executor plugin, read in the driver."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast, get_args

from quotascope.clients.accounting import Client, ClientTotals, Side
from quotascope.pages.files import put

from ..errors import JarUnavailable, PluginUnreadable

JAR: Final = Path(__file__).with_name("quotascope-spark.jar")
"""Jar that `make spark-jar` builds from `java/`."""
PLUGIN: Final = "io.quotascope.spark.ThrottlePlugin"
"""Class for `spark.plugins`."""
REPORTER: Final = "io.quotascope.spark.ThrottleReporter"
"""Class for the option `kafka.metric.reporters` of a source or a sink."""
_ON_THE_WAY_SECONDS: Final = 0.5
"""Time that a report needs to be made and to reach the driver."""
_LONGEST_INTERVAL_SECONDS: Final = 5.0
"""Longest interval of reports that are waited for."""


def write_jar(target: Path) -> None:
    """Write the jar, for `spark.jars`. Raises `JarUnavailable`."""
    try:
        put(target, JAR.read_bytes())
    except OSError as error:
        raise JarUnavailable(f"the plugin's jar is not written to {target}: {error.strerror or error}") from error


class PluginTotals:
    """
    Throttle times of the Kafka clients in the JVMs of an application: of its executors, and of its driver.

    Executors report once a second. What an executor reported before it was lost stays counted.
    """

    def __init__(self, plugin: Any, context: Any) -> None:  # noqa: ANN401 - a class of the JVM, and a SparkContext
        self._plugin = plugin
        self._context = context
        self._application = str(context.applicationId)

    @classmethod
    def of(cls, spark: Any) -> PluginTotals | None:  # noqa: ANN401 - a session, of Spark Connect, too
        """
        Return the plugin of a session's application; None when it has none, or its JVM cannot be reached.

        Never raises.
        """
        try:
            context = spark.sparkContext
            named = str(context.getConf().get("spark.plugins", ""))
            if PLUGIN not in (name.strip() for name in named.split(",")):
                return None
            plugin = getattr(context._jvm, PLUGIN)  # noqa: SLF001 - there is no other way to the JVM
            return cls(plugin, context)
        except Exception:  # noqa: BLE001 - Spark's and py4j's errors have no common root
            return None

    def totals(self) -> list[tuple[str, ClientTotals]]:
        """
        Return the absolute counts by id of the streaming query (empty for none or an unknown one) and client.

        This works after the end of the application, too, while the driver's JVM runs. Raises `PluginUnreadable`, and
        errors of py4j after the end of the JVM.
        """
        return read(str(self._plugin.totals(self._application)))

    def await_executors(self, interval_seconds: float, wait: Callable[[float], None] = time.sleep) -> None:
        """
        Wait until executors have reported their counts so far.

        Does not wait where they report less often than every five seconds, where the driver runs all tasks, or after
        the end of the application, at which executors report as well.
        """
        runs = getattr(self._context, "_jsc", None) is not None
        if runs and self._context.master.partition("[")[0] != "local" and interval_seconds <= _LONGEST_INTERVAL_SECONDS:
            wait(interval_seconds + _ON_THE_WAY_SECONDS)


def read(answer: str) -> list[tuple[str, ClientTotals]]:
    """Return the counts in the plugin's answer; nothing in an empty one. Raises `PluginUnreadable`."""
    if not answer:
        return []
    try:
        return [_totals(*pair) for pair in json.loads(answer)]
    except (TypeError, ValueError) as error:
        raise PluginUnreadable(
            "the plugin's answer is not understood: take its jar from this version of quotascope"
        ) from error


def _totals(client: list[str], counts: list[int]) -> tuple[str, ClientTotals]:
    """Return the query and counts of a client in the plugin's answer. Raises `TypeError` and `ValueError`."""
    query, user, client_id, side = (  # Java's texts may hold halves of characters
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in client
    )
    if side not in get_args(Side):
        raise ValueError(side)
    ms, responses, longest, recent = (int(count) for count in counts)
    named = Client(user, client_id, cast("Side", side))
    return query, ClientTotals(named, ms, responses, longest, recent)
