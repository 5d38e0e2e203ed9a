"""An application as its driver describes it, in classic mode and under Spark Connect."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from contextlib import suppress
from functools import cached_property
from types import SimpleNamespace

from .foreign import Spark
from .settings import KEYS, PREFIX

_ALSO = (
    "spark.app.attempt.id",
    "spark.app.id",
    "spark.app.name",
    "spark.eventLog.dir",
    "spark.eventLog.enabled",
)
"""Further properties of Spark that are read; others may hold secrets, and are not looked at."""
_ADDRESSES = ("spark.driver.bindAddress", "spark.driver.host")
"""Properties with addresses; under Spark Connect those of the server, where this process need not be."""
_TRIGGER = re.compile(r"(?:ProcessingTime|Continuous|RealTime)Trigger\((\d+)\)")  # ms


class Driver:
    """
    One application, from its session or its SparkContext; sessions of one SparkContext are the same.

    Raises whatever PySpark raises for what is neither, or was stopped.
    """

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self.context = _context(spark)
        """The SparkContext, None under Spark Connect."""

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """
        The `spark.quotascope.*` properties that are set, and a few of Spark's own.

        Costs hundreds of calls into the JVM, once.
        """
        of_context: dict[str, str] = {}
        if self.context is not None:
            of_context = {
                key: value
                for key, value in self.context.getConf().getAll()
                if key.startswith(PREFIX) or key in (*_ALSO, *_ADDRESSES)
            }
        return {**of_context, **self._of_session()}

    @cached_property
    def app_id(self) -> str:
        """`spark.app.id`; under Spark Connect the server's, which its sessions share."""
        if self.context is None:
            return self.properties.get("spark.app.id", "")
        return str(self.context.applicationId)

    @property
    def app_name(self) -> str:
        """`spark.app.name`, or the id where there is none."""
        return self.properties.get("spark.app.name", "") or self.app_id

    @property
    def watched_id(self) -> str:
        """The id of the watched application; under Spark Connect followed by that of the session."""
        if self.context is None:
            return "-".join(filter(None, (self.app_id, self._session_id)))
        return self.app_id

    @property
    def stopped(self) -> bool:
        """True if this process has stopped the application. Never raises."""
        if self.context is not None:
            return getattr(self.context, "_jsc", None) is None
        return bool(getattr(self._spark, "is_stopped", False))

    def setting(self, key: str) -> str | None:
        """Return a single property, None where it is not set: one call into the JVM, fit for frequent use."""
        conf = getattr(self._spark, "conf", None)
        if conf is None and self.context is not None:
            conf = self.context.getConf()
        return _property_of(conf, key)

    def trigger_seconds(self, query: str) -> float | None:
        """
        Return the interval of a running streaming query's trigger in seconds, by the query's id.

        In Real-Time Mode, it is the duration of a batch. None if the query has no interval, or cannot be asked, as
        under Spark Connect. Never raises.
        """
        with suppress(Exception):
            session = self._spark
            if not hasattr(session, "_jsparkSession"):  # a SparkContext
                from pyspark.sql import SparkSession  # noqa: PLC0415 - only then

                session = SparkSession._instantiatedSession  # noqa: SLF001 - PySpark has no public way
            running = session._jsparkSession.sharedState().activeStreamingQueries()  # noqa: SLF001 - as above
            for running_query in running.values():  # the queries of all sessions
                if running_query.id().toString() == query:
                    trigger = _TRIGGER.fullmatch(running_query.trigger().toString())
                    interval_ms = 0 if trigger is None else int(trigger[1])
                    return interval_ms / 1_000 if interval_ms else None
        return None

    @property
    def session(self) -> Spark:
        """The session, or another object with `sparkContext`; under Spark Connect, always the session."""
        if self.context is None or hasattr(self._spark, "sparkContext"):
            return self._spark
        return SimpleNamespace(sparkContext=self.context)

    def inform(self, sentence: str) -> None:
        """Write a line to Spark's own log at INFO; nothing where the driver's JVM cannot be reached (Spark Connect)."""
        if self.context is not None:
            slf4j = self.context._jvm.org.slf4j  # noqa: SLF001 - PySpark has no public way
            slf4j.LoggerFactory.getLogger("quotascope.spark_listener").info(sentence)

    @property
    def key(self) -> Hashable:
        """Key that differs for each application; under Spark Connect, for each session."""
        if self.context is None:
            return self._session_id or id(self._spark)
        return (id(self.context._jvm), self.app_id)  # noqa: SLF001 - PySpark has no public way

    @property
    def _session_id(self) -> str:
        """Id of the session; empty if it has none."""
        return str(getattr(self._spark, "session_id", None) or "")

    def _of_session(self) -> dict[str, str]:
        """Return the properties of the session, including those set after its SparkContext was created."""
        conf = getattr(self._spark, "conf", None)
        keys = (*KEYS, *_ALSO)
        if conf is None:
            return {}
        if self.context is None:
            with suppress(Exception):  # PySpark 3.5 has no call that returns all properties
                context_properties = dict(conf.getAll)
                return {key: str(context_properties[key]) for key in keys if key in context_properties}
        values = {key: _property_of(conf, key) for key in keys}
        return {key: value for key, value in values.items() if value is not None}


def _property_of(conf: Spark, key: str) -> str | None:
    """Return a property of a configuration, None where it is not set."""
    with suppress(Exception):  # a configuration that refuses a key does not have it
        value = conf.get(key, None)
        return None if value is None else str(value)
    return None


def _context(spark: Spark) -> Spark | None:
    """Return the SparkContext of a session, None under Spark Connect."""
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
    """Return a SparkContext. Raises `ValueError` if it was stopped."""
    if getattr(context, "_jsc", None) is None:
        raise ValueError("this SparkContext was stopped")
    return context
