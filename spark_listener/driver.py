"""What a driver says of itself, in classic mode and under Spark Connect."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from types import SimpleNamespace

from .foreign import Spark
from .properties import PREFIX, PROPERTIES

_ALSO = (
    "spark.app.id",
    "spark.app.name",
    "spark.eventLog.dir",
    "spark.eventLog.enabled",
)
"""Other properties may hold secrets, and are not looked at."""
_ADDRESSES = ("spark.driver.bindAddress", "spark.driver.host")
"""Under Spark Connect those of the server, where this process need not be."""


class Driver:
    """
    One application, as seen from its session or its SparkContext. Makes no difference between the sessions of one SparkContext.

    Raises whatever PySpark raises for what is neither, or was stopped.
    """

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self.context = _context(spark)
        """The SparkContext, None under Spark Connect."""
        self.properties = self._properties()
        """Those of `spark.quotascope.*` that are set, and a few of Spark's own."""
        self.app_id = self._app_id()
        self.app_name = self.properties.get("spark.app.name", "") or self.app_id

    @property
    def session(self) -> Spark:
        """What has `sparkContext`, as a session does; under Spark Connect, the session."""
        if self.context is None or hasattr(self._spark, "sparkContext"):
            return self._spark
        return SimpleNamespace(sparkContext=self.context)

    @property
    def key(self) -> Hashable:
        """Tells applications apart; under Spark Connect, sessions."""
        if self.context is None:
            return getattr(self._spark, "session_id", None) or id(self._spark)
        return (id(self.context._jvm), self.app_id)  # noqa: SLF001 - PySpark has no public way

    def _app_id(self) -> str:
        if self.context is None:
            return self.properties.get("spark.app.id", "")
        return str(self.context.applicationId)

    def _properties(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        if self.context is not None:
            found = {
                key: value
                for key, value in self.context.getConf().getAll()
                if key.startswith(PREFIX) or key in (*_ALSO, *_ADDRESSES)
            }
        return {**found, **self._of_session()}

    def _of_session(self) -> dict[str, str]:
        """What a session was given after its SparkContext had been made, too; one by one, for Connect has no other way in Spark 3.5."""
        conf = getattr(self._spark, "conf", None)
        found: dict[str, str] = {}
        if conf is None:
            return found
        for key in (*(each.key for each in PROPERTIES), *_ALSO):
            with suppress(Exception):  # a conf that refuses a key does not have it
                value = conf.get(key, None)
                if value is not None:
                    found[key] = str(value)
        return found


def _context(spark: Spark) -> Spark | None:
    """The SparkContext behind it, None under Spark Connect."""
    if hasattr(spark, "applicationId"):
        return _running(spark)
    try:
        context = spark.sparkContext
    except Exception:
        if hasattr(spark, "client"):
            return None
        raise
    return _running(context)


def _running(context: Spark) -> Spark:
    if getattr(context, "_jsc", None) is None:
        raise ValueError("this SparkContext was stopped")
    return context
