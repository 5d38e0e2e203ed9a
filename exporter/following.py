"""Follows files beside the event loop: those that the configuration names change without a signal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import structlog

from .errors import ExporterError
from .threads import BlockingCalls

log = structlog.get_logger()

LOOK_EVERY_SECONDS: Final = 5.0
"""Pause between two looks: a certificate, a password or a token that was replaced counts after it."""
LONGEST_READ_SECONDS: Final = 10.0
"""Longest wait for the files: a file system of another machine can make a read wait for ever."""

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
_Result = TypeVar("_Result")


def signature(files: Iterable[Path]) -> Signature:
    """
    Return the time, size and inode of files, or of the files that links lead to.

    Return None for a file that is not there.
    """
    states: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            state = file.stat()
        except OSError:
            states.append(None)
        else:
            states.append((state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(states)


class FileCalls:
    """
    The calls of one owner that read files, each in a thread and with a deadline.

    Args:
        name: Name of the files, for threads and messages.

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls = BlockingCalls(f"quotascope-{name}", busy=f"a file of the {name} is still being read")

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """
        Return the call's result.

        Raises ``ExporterError`` after the deadline, and while an earlier call still waits.
        """
        try:
            async with asyncio.timeout(LONGEST_READ_SECONDS):
                return await self._calls.run(call)
        except TimeoutError:
            raise ExporterError(
                f"a file of the {self._name} cannot be read to its end within {LONGEST_READ_SECONDS:g} s"
            ) from None
