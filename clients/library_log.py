"""
Handler that keeps a client library's logger quiet, and remembers its exceptions.

kafka-python logs every attempt to connect, and at DEBUG its whole configuration, password included. Nothing of it
reaches the log; its first complaint goes into our error message, which the library's own exception ("timeout") would
not explain.
"""

from __future__ import annotations

import logging


class LibraryLog(logging.Handler):
    """Handler that replaces all handlers of one logger and its children."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._name = name
        self.complaints: list[BaseException] = []
        """
        Logged exceptions without repetitions.

        The first one about a server is the cause of the others about it.
        """

    def install(self) -> None:
        """Take over the logger."""
        logger = logging.getLogger(self._name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.handlers = [self]

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the exceptions of the record, if it has any."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        self.complaints += [
            argument
            for argument in arguments
            if isinstance(argument, BaseException) and argument not in self.complaints
        ]
