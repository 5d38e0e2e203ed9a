"""Begins to watch an application."""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import Unpack

from .driver import Driver
from .errors import SourceUnusable, brief
from .exposition import start_reporting
from .job import Job, write_summary
from .jvm import PluginTotals
from .listener import Listener
from .properties import PREFIX, Options, Resolved, Settings, resolve
from .sources.choice import Choice
from .sources.event_log import log_place
from .task import Throttles

_LOG = logging.getLogger("quotascope.spark_listener")
_LOCK = threading.Lock()
_ATTACHED: dict[Hashable, Listener] = {}


def attach(spark: object, **options: Unpack[Options]) -> Listener:
    """
    Watch the application of this session.

    Never raises because of Spark: what does not work is a warning in the log, and one of the listener's `problems`. Called again for the same application,
    it gives the same listener, whose first options hold; each call then needs its `close`.

    Args:
        spark: a SparkSession, also of Spark Connect, or a SparkContext.
        options: as the properties of Spark that docs/spark.md lists, which hold where nothing is given: `queue_capacity=20_000` is
            ``spark.quotascope.queueCapacity=20000``.

    """
    try:
        return attach_to(Driver(spark), **options)
    except Exception as error:  # noqa: BLE001 - a job must not suffer from being watched
        nothing = Listener(Job(""))
        nothing.problem("attach", brief(error))
        return nothing


def attach_to(driver: Driver, **options: Unpack[Options]) -> Listener:
    """As `attach`, for who has asked the driver already. Raises whatever PySpark raises for a driver that is gone."""
    with _LOCK:
        _forget_ended()
        if driver.key not in _ATTACHED:
            resolved = resolve(driver.properties, options)
            _ATTACHED[driver.key] = _attached(driver, resolved)
        return _ATTACHED[driver.key].hold()


def _forget_ended() -> None:
    """A listener whose application has stopped is closed when another application comes."""
    for key, listener in tuple(_ATTACHED.items()):
        if listener.ended:
            del _ATTACHED[key]
            listener.end()


def _attached(driver: Driver, resolved: Resolved) -> Listener:
    settings = resolved.settings
    listener = Listener(Job(settings.app or driver.app_name), settings.interval_seconds)
    for problem in resolved.problems:
        listener.problem("properties", str(problem))
    for part, begin in {
        "throttles": lambda: _count_throttles(listener, driver, settings),
        "summary": lambda: _summarise(listener, driver, settings),
        "reporting": lambda: _report(listener, driver, resolved),
        "attach": lambda: _listen(listener, driver, settings),
    }.items():
        listener.attempt(part, begin)
    _LOG.info("watching %s, events by %s", driver.watched_id, listener.source)
    return listener


def _count_throttles(listener: Listener, driver: Driver, settings: Settings) -> None:
    throttles = Throttles.of(driver.session, ship_task_files=settings.ship_task_files)
    listener.throttles = throttles
    listener.job.add_throttles(throttles.totals)
    listener.job.add_scoped_stages(throttles.scoped_stages)
    plugin = PluginTotals.of(driver.session)
    if plugin is not None:
        listener.job.add_throttles(plugin.totals)


def _summarise(listener: Listener, driver: Driver, settings: Settings) -> None:
    if settings.summary_file is None:
        return
    path = Path(settings.summary_file.replace("{app_id}", driver.watched_id))
    listener.at_end("summary", lambda: write_summary(listener.snapshot(), path))


def _report(listener: Listener, driver: Driver, resolved: Resolved) -> None:
    plain = {
        key: value
        for key, value in driver.properties.items()
        if not key.startswith(PREFIX)
    }
    reporting = start_reporting(
        {**plain, **resolved.texts},
        lambda: [listener.snapshot()],
        app_id=driver.watched_id,
    )
    listener.url = reporting.url
    for sentence in reporting.problems:
        listener.job.problem("reporting", sentence)
    listener.at_end("reporting", reporting.close)


def _listen(listener: Listener, driver: Driver, settings: Settings) -> None:
    def report(unusable: SourceUnusable) -> None:
        listener.problem(unusable.source, unusable.reason)

    choice = Choice(
        context=driver.context,
        session=driver.session,
        log=log_place(settings.event_log, driver.properties, driver.app_id),
        job=listener.job,
        settings=settings,
        report=report,
    )
    listener.start(choice.open(), lambda: driver.stopped)
