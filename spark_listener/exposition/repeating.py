"""A call that is repeated in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class Repeating:
    """
    Thread that calls at once, then after every interval, until it is closed. It does not keep Python from exiting.

    Args:
        call: the function; an error of it is a line in the log, and it is called again.
        interval_seconds: time from the end of one call to the beginning of the next.
        name: name of the thread.
        last_call: function that is called in that thread when it is closed.

    """

    def __init__(
        self, call: Callable[[], None], interval_seconds: float, name: str, last_call: Callable[[], None] = lambda: None
    ) -> None:
        self._call = call
        self._interval_seconds = interval_seconds
        self._last_call = last_call
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self, timeout_seconds: float) -> bool:
        """Stop; return whether the call under way, and the last call, ended in time."""
        self._over.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        """Call until the thread is closed, and then for the last time."""
        while not self._over.is_set():
            _guarded(self._call)
            self._over.wait(self._interval_seconds)
        _guarded(self._last_call)


def _guarded(call: Callable[[], None]) -> None:
    """Call a function; an error is a line in the log."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - a job must not suffer from being watched
        # without the error's text, which can hold a job's data
        _LOG.warning("reporting of a Spark job failed: %s", type(error).__name__)
