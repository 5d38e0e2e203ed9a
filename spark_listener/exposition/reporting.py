"""The page, the entry for Prometheus and the push of a driver, started and closed together."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Mapping

from ..errors import SparkListenerError
from ..settings import ListenerSettings
from .collector import JobCollector, Snapshots
from .discovery import BEAT_SECONDS, DriverEntry
from .page import PATH, DriverPage
from .repeating import Repeating

_LOG = logging.getLogger(__name__)
_LAST_BEAT_SECONDS = 1.0
_HERE = "localhost"
"""
Address of the page for a client of Spark Connect, which has no address of a driver; other hosts get in by
`http.bindAddress` only.
"""
_BRACKETS = "[]"
"""Brackets around an IPv6 address in Spark's properties."""


class Reporting:
    """
    All reports of the jobs of a driver, returned by `start_reporting`.

    `close` is also called when Python ends; in a process that was forked from the driver it does nothing.
    """

    def __init__(self) -> None:
        self.url: str | None = None
        """The page for Prometheus, None when there is none."""
        self.problems: tuple[str, ...] = ()
        """Parts that could not be started and why, as sentences; these are in the log as well."""
        self._closers: list[Callable[[], object]] = []
        self._pid = os.getpid()
        atexit.register(self.close)

    def close(self) -> None:
        """Push the last numbers, for at most five seconds, remove the entry for Prometheus and stop the page."""
        atexit.unregister(self.close)
        closers, self._closers = self._closers, []
        if os.getpid() != self._pid:
            return
        for close in closers:
            self.attempt("reporting could not be ended", close)

    def on_close(self, *calls: Callable[[], object]) -> None:
        """Call these functions at the end, in the order given."""
        self._closers.extend(calls)

    def attempt(self, failed: str, call: Callable[[], object]) -> None:
        """Call a function; an error becomes one of the problems, since a job must not suffer from being watched."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - as above
            expected = isinstance(error, SparkListenerError | OSError)
            reason = str(error) if expected else f"unexpected {type(error).__name__}"
            self.problems += (f"{failed}: {reason}",)
            _LOG.warning("%s: %s", failed, reason)


def start_reporting(
    settings: ListenerSettings, properties: Mapping[str, str], snapshots: Snapshots, *, app_id: str
) -> Reporting:
    """
    Report jobs by the settings; never raises, and does not wait for other programs.

    Args:
        settings: settings of the listener.
        properties: properties of Spark: `spark.driver.host`, `spark.driver.bindAddress` and `spark.app.name`.
        snapshots: called for each scrape and each push, from threads of their own.
        app_id: `spark.app.id`, different for each driver.

    """
    reporting = Reporting()

    def push() -> None:
        """Start the push over OTLP."""
        try:
            from .otlp import JobPush  # noqa: PLC0415 - of the extra spark-otlp
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in {
                "opentelemetry",
                "requests",
            }:
                raise
            raise SparkListenerError(
                "this needs OpenTelemetry's packages; in a clone of quotascope: pip install '.[spark-otlp]'"
            ) from None
        reporting.on_close(JobPush(settings, snapshots, app_id=app_id).close)

    def serve() -> None:
        """Open the page, and announce its address to Prometheus."""
        page = _open_page(settings, properties, snapshots)
        host = (settings.http_host or properties.get("spark.driver.host") or _HERE).strip(_BRACKETS)
        target = f"{f'[{host}]' if ':' in host else host}:{page.port}"
        reporting.url = f"http://{target}{PATH}"
        if settings.file_sd_path is not None:
            app = settings.app or properties.get("spark.app.name", "")
            entry = DriverEntry(settings.file_sd_path, app=app, app_id=app_id)
            reporting.attempt(f"Prometheus cannot find the driver by {entry.path}", lambda: announce(entry, target))
        reporting.on_close(page.close)

    def announce(entry: DriverEntry, target: str) -> None:
        """Write the entry for Prometheus, and refresh it until the end."""
        entry.write(target)
        beat = Repeating(entry.beat, BEAT_SECONDS, "quotascope-file-sd")
        reporting.on_close(lambda: beat.close(_LAST_BEAT_SECONDS), entry.remove)

    pushes = settings.otlp_enabled
    if pushes or (pushes is None and settings.otlp_endpoint is not None):
        reporting.attempt("metrics are not pushed", push)
    if settings.http_enabled:
        reporting.attempt("there is no page for Prometheus", serve)
    return reporting


def _open_page(settings: ListenerSettings, properties: Mapping[str, str], snapshots: Snapshots) -> DriverPage:
    """
    Return the page on its port.

    If the port is taken, use a free one, since two drivers on one machine may have the same settings.
    """
    collector = JobCollector(snapshots, settings.cluster)
    address = (
        settings.http_bind_address
        or properties.get("spark.driver.bindAddress")
        or properties.get("spark.driver.host")
        or _HERE
    ).strip(_BRACKETS)
    port = settings.http_port
    try:
        return DriverPage(collector, address, port)
    except OSError as error:
        if port == 0:
            raise
        _LOG.warning("port %d is in use, taking a free one: %s", port, error)
        return DriverPage(collector, address, 0)
