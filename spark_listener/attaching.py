"""Attachment of a listener to an application."""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, Mapping
from functools import partial
from pathlib import Path

from .driver import Driver
from .errors import SourceUnusable, brief
from .exposition import start_reporting
from .job import Job, write_summary
from .jvm import PluginTotals
from .listener import Listener
from .settings import ListenerSettings, Option, resolve
from .sources.choice import open_sources
from .sources.event_log import log_place
from .task import JobThrottles

_LOG = logging.getLogger("quotascope.spark_listener")
_LOCK = threading.Lock()
_ATTACHED: dict[Hashable, Listener] = {}
"""Listeners by the key of their driver."""


def attach(spark: object, **options: Option) -> Listener:
    """
    Watch the application of this session.

    Never raises because of Spark: what does not work is a warning in the log, and one of the listener's `problems`.
    Called again for the same application, it returns the same listener with its first options; each call then needs its
    `close`.

    Args:
        spark: a SparkSession, also of Spark Connect, or a SparkContext.
        options: fields of `ListenerSettings`, each described in docs/guides/spark.md; one that is not given is read
            from a property of Spark, so `queue_capacity=20_000` is ``spark.quotascope.queueCapacity=20000``.

    """
    try:
        return attach_to(Driver(spark), options)
    except Exception as error:  # noqa: BLE001 - a job must not suffer from being watched
        nothing = Listener(Job(""))
        nothing.problem("attach", brief(error))
        return nothing


def attach_to(driver: Driver, options: Mapping[str, Option] | None = None) -> Listener:
    """Watch the application of a driver. Raises PySpark's errors for a driver that is gone."""
    with _LOCK:
        for key, listener in tuple(_ATTACHED.items()):
            if listener.ended:  # its application has stopped
                del _ATTACHED[key]
                listener.end()
        if driver.key not in _ATTACHED:
            _ATTACHED[driver.key] = _attached(driver, options or {})
        return _ATTACHED[driver.key].hold()


def _attached(driver: Driver, options: Mapping[str, Option]) -> Listener:
    """Return a new listener of an application. What does not work is one of its problems."""
    settings, problems = resolve(driver.properties, options)
    job = Job(settings.app or driver.app_name, trigger=driver.trigger_seconds)
    listener = Listener(job, settings.interval_seconds)
    for problem in problems:
        listener.problem("properties", str(problem))
    for part, step in {
        "throttles": _count_throttles,
        "summary": _write_summary_at_end,
        "reporting": _report,
        "attach": _listen,
    }.items():
        listener.attempt(part, partial(step, listener, driver, settings))
    where = listener.url or ("pushed over OTLP" if settings.otlp_endpoint else "in spark.quotascope.summaryFile alone")
    sentence = f"watching {driver.watched_id}, events by {listener.source}, metrics: {where}"
    if _LOG.hasHandlers():
        _LOG.info(sentence)
    else:  # Python's logs are not configured, as in most jobs: Spark's are
        listener.attempt("attach", partial(driver.inform, sentence))
    return listener


def _count_throttles(listener: Listener, driver: Driver, settings: ListenerSettings) -> None:
    """Let the job read the throttle times of Python clients in tasks, and those of the plugin if it is loaded."""
    throttles = JobThrottles.of(driver.session, ship_task_files=settings.ship_task_files)
    listener.throttles = throttles
    listener.job.add_throttles(throttles.totals, "python" if throttles.carries_successes else None)
    listener.job.add_scoped_stages(throttles.scoped_stages)
    plugin = PluginTotals.of(driver.session)
    if plugin is not None:
        listener.job.add_throttles(plugin.totals, "jvm")
        listener.at_end("throttles", lambda: plugin.await_executors(settings.jvm_interval_seconds))


def _write_summary_at_end(listener: Listener, driver: Driver, settings: ListenerSettings) -> None:
    """Let the listener write its summary at the end, if the settings name a file."""
    if settings.summary_file is not None:
        path = Path(settings.summary_file.replace("{app_id}", driver.watched_id))
        listener.at_end("summary", lambda: write_summary(listener.snapshot(), path, driver.app_id))


def _report(listener: Listener, driver: Driver, settings: ListenerSettings) -> None:
    """Open the page and start the push of the listener's metrics, which end with the listener."""
    reporting = start_reporting(settings, driver.properties, lambda: [listener.snapshot()], app_id=driver.watched_id)
    listener.url = reporting.url
    for sentence in reporting.problems:
        listener.problem("reporting", sentence, logged=True)
    listener.at_end("reporting", reporting.close)


def _listen(listener: Listener, driver: Driver, settings: ListenerSettings) -> None:
    """Open the sources of events that work here, and start the listener with them."""

    def report(unusable: SourceUnusable) -> None:
        """Record a source that does not work as a problem."""
        listener.problem(unusable.source, unusable.reason)

    sources = open_sources(
        context=driver.context,
        session=driver.session,
        log=log_place(settings.event_log, driver.properties, driver.app_id),
        job=listener.job,
        settings=settings,
        report=report,
    )
    listener.start(sources, lambda: driver.stopped)
