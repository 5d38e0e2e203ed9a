"""Keeps what the SDK's exporters log about our pushes out of the job's log: it quotes URLs, and comes with every push."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Final

LOGGERS: Final = (
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
)


@contextlib.contextmanager
def quiet() -> Iterator[list[str]]:
    """
    Nothing of the exporters in this thread; gives the names of gRPC's status codes that they would have told.

    Other threads of the job may use the same exporters: theirs is not touched.
    """
    keeper = _Keeper(threading.get_ident())
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        # before the exporters' own filters, one of which remembers what it has seen
        logger.filters.insert(0, keeper)
    try:
        yield keeper.codes
    finally:
        for logger in loggers:
            logger.removeFilter(keeper)


class _Keeper(logging.Filter):
    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread
        self.codes: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record may pass."""
        if record.thread != self._thread:
            return True
        for value in record.args if isinstance(record.args, tuple) else ():
            code = getattr(value, "name", None)
            if isinstance(code, str):
                self.codes.append(code)
        return False
