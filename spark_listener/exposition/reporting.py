"""Everything that shows a driver's jobs, begun and ended together."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Mapping

from ..errors import SparkListenerError
from . import keys
from .collector import JobCollector, Snapshots
from .discovery import BEAT_SECONDS, Entry
from .page import PATH, Page
from .repeating import Repeating
from .settings import PageSettings, cluster_of, page_settings, push_settings

_LOG = logging.getLogger(__name__)
_LAST_BEAT_SECONDS = 1.0


class Reporting:
    """
    What shows the jobs of a driver. Made by `start_reporting`.

    `close` is also called when Python ends; in a process that was forked from the driver it does nothing.
    """

    def __init__(self) -> None:
        self.url: str | None = None
        """The page for Prometheus, None when there is none."""
        self.problems: tuple[str, ...] = ()
        """What of it could not be started and why, as sentences; these are in the log as well."""
        self._closers: list[Callable[[], None]] = []
        self._pid = os.getpid()
        atexit.register(self.close)

    def close(self) -> None:
        """Push the last numbers, for at most five seconds, take the entry for discovery away and stop the page."""
        atexit.unregister(self.close)
        closers, self._closers = self._closers, []
        if os.getpid() != self._pid:
            return
        for close in closers:
            self.attempt("reporting could not be ended", close)

    def on_close(self, close: Callable[[], None]) -> None:
        """Call this at the end, in the order given."""
        self._closers.append(close)

    def attempt(self, failed: str, call: Callable[[], None]) -> None:
        """Call; what goes wrong is a problem and nothing more."""
        try:
            call()
        except (SparkListenerError, OSError) as error:
            self._problem(f"{failed}: {error}")
        except Exception as error:  # noqa: BLE001 - a job must not suffer from being watched
            self._problem(f"{failed}: unexpected {type(error).__name__}")

    def _problem(self, sentence: str) -> None:
        self.problems += (sentence,)
        _LOG.warning("%s", sentence)


def start_reporting(
    properties: Mapping[str, str], snapshots: Snapshots, *, app_id: str
) -> Reporting:
    """
    Show jobs as the properties say; nothing here ever raises, or waits for anybody.

    Args:
        properties: those of Spark: `spark.quotascope.*` as in `KEYS`, `spark.driver.host`, `spark.driver.bindAddress` and
            `spark.app.name`.
        snapshots: gives the books of all jobs; asked for each scrape and each push, from threads of their own.
        app_id: `spark.app.id`, which tells drivers apart.

    """
    reporting = Reporting()
    reporting.attempt(
        "metrics are not pushed",
        lambda: _start_push(reporting, properties, snapshots, app_id),
    )
    reporting.attempt(
        "there is no page for Prometheus",
        lambda: _start_page(reporting, properties, snapshots, app_id),
    )
    return reporting


def _start_page(
    reporting: Reporting,
    properties: Mapping[str, str],
    snapshots: Snapshots,
    app_id: str,
) -> None:
    settings = page_settings(properties)
    if settings is None:
        return
    page = _open(JobCollector(snapshots, cluster_of(properties)), settings)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    target = f"{host}:{page.port}"
    reporting.url = f"http://{target}{PATH}"
    if settings.file_sd_path is not None:
        app = properties.get(keys.APP) or properties.get("spark.app.name", "")
        entry = Entry(settings.file_sd_path, app=app, app_id=app_id)
        reporting.attempt(
            f"Prometheus cannot find the driver by {entry.path}",
            lambda: _announce(reporting, entry, target),
        )
    reporting.on_close(page.close)


def _open(collector: JobCollector, settings: PageSettings) -> Page:
    try:
        return Page(collector, settings.bind_address, settings.port)
    except OSError as error:
        if settings.port == 0:
            raise
        _LOG.warning(
            "port %d is not to be had, taking a free one: %s", settings.port, error
        )
        return Page(collector, settings.bind_address, 0)


def _announce(reporting: Reporting, entry: Entry, target: str) -> None:
    entry.write(target)
    beat = Repeating(entry.beat, BEAT_SECONDS, "quotascope-file-sd")

    def remove() -> None:
        beat.close(_LAST_BEAT_SECONDS)
        entry.remove()

    reporting.on_close(remove)


def _start_push(
    reporting: Reporting,
    properties: Mapping[str, str],
    snapshots: Snapshots,
    app_id: str,
) -> None:
    settings = push_settings(properties, os.environ)
    if settings is None:
        return
    try:
        from .otlp import Push  # noqa: PLC0415 - an extra: only who pushes has it
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise SparkListenerError(
            "this needs OpenTelemetry's packages: pip install 'quotascope[otlp]'"
        ) from None
    push = Push(settings, snapshots, app_id=app_id, cluster=cluster_of(properties))
    reporting.on_close(push.close)
