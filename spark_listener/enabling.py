"""Attachment of a listener to each application of the process that enables it in its properties."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .attaching import attach_to
from .driver import Driver
from .errors import brief
from .foreign import Spark
from .listener import Listener
from .settings import PREFIX, resolve

_LOG = logging.getLogger("quotascope.spark_listener")
_LOCK = threading.RLock()
_WATCHING: list[str] = []
"""One element once the methods of PySpark are wrapped."""
_HELD: dict[object, Listener] = {}
"""Listeners by the key of their driver."""
_ENABLED = f"{PREFIX}enabled"


def enable(spark: object | None = None) -> Listener | None:
    """
    Attach where ``spark.quotascope.enabled`` is true; otherwise do nothing. Never raises.

    Args:
        spark: a SparkSession or a SparkContext; without it, each one that the process has or makes from now on.

    Returns:
        The listener of `spark`, when there is one; it is closed when Python ends.

    """
    try:
        if spark is not None:
            return _attached(spark)
        with _LOCK:
            if not _WATCHING:
                _watch()
                _WATCHING.append("PySpark")
    except Exception as error:  # noqa: BLE001 - a job must not suffer from being watched
        _LOG.warning("cannot watch the jobs of this process: %s", brief(error))
    return None


def _attached(spark: Spark) -> Listener | None:
    """Return the listener of an application, a new one at the first call; None if it is not enabled."""
    driver = Driver(spark)
    with _LOCK:
        for key in [key for key, listener in _HELD.items() if listener.ended]:
            del _HELD[key]
        if driver.key not in _HELD:
            if not _is_enabled(driver):
                return None
            _HELD[driver.key] = attach_to(driver)
        return _HELD[driver.key]


def _is_enabled(driver: Driver) -> bool:
    """Return whether the property is set. Only this property is read, as a job may call `getOrCreate` many times."""
    value = driver.setting(_ENABLED)
    return value is not None and resolve({_ENABLED: value}, {})[0].enabled


def _watch() -> None:
    """Wrap the methods that create sessions: PySpark has no hook for new ones."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - heavy, and not needed to import this package

    with suppress(ImportError):  # a client of Connect has no SparkContext
        from pyspark import SparkContext  # noqa: PLC0415 - as above

        running = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public way
        _wrap(SparkContext, "__init__", lambda context, _: enable(context))
        if running is not None:
            _attached(running)
    for name in ("getOrCreate", "create"):
        _wrap(SparkSession.Builder, name, lambda _, session: enable(session))


def _wrap(owner: type, name: str, callback: Callable[[Spark, Spark], object]) -> None:
    """Let a method of a class call a function after each call of its own, with the object and the result."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(self: Spark, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever PySpark passes
        """Call the method, then the function."""
        result = original(self, *arguments, **named)
        callback(self, result)
        return result

    setattr(owner, name, wrapped)
