"""Reads the configuration again, builds its parts, and swaps the exporter to them when it is good."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import structlog

from quotascope.clients.errors import ClientError

from ..config import Config, LogConfig
from ..config.load import Loaded, loaded
from ..config.section import Section
from ..errors import ConfigError, ExporterError
from ..snapshot import ReloadHealth
from ..threads import BlockingCalls
from .parts import Parts

log = structlog.get_logger()

_NEEDS_RESTART: Final = "server"
"""The section that is read once, at the start."""
_LONGEST_READ_SECONDS: Final = 10.0
"""A file system of another machine can make a read wait for ever."""


class Swappable(Protocol):
    """What works with the parts of a configuration: the exporter."""

    @property
    def parts(self) -> Parts:
        """The parts in use."""
        ...

    async def swap(self, parts: Parts) -> None:
        """Work with these; parts that are the same objects as before are not disturbed."""
        ...


class Reloader:
    """
    Reads the configuration on request, one time after the other.

    One that cannot be used changes nothing: each problem is logged, and ``health`` shows it until the next attempt.

    Args:
        read: Reads it with the values that override the file; may block. Raises ``ConfigError``.
        build: Builds its parts from those in use. Raises ``ConfigError`` and ``ClientError``.
        configure_logs: Applies the format and level of log lines.
        clock: Unix time in seconds.

    """

    def __init__(
        self,
        read: Callable[[], Config],
        build: Callable[[Loaded, Parts], Parts],
        configure_logs: Callable[[LogConfig], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        self._build = build
        self._configure_logs = configure_logs
        self._clock = clock
        self._wanted = asyncio.Event()
        self._calls = BlockingCalls("quotascope-reload", busy="a file of it is still being read")
        self.between = asyncio.Lock()
        """As long as it is held, no reload begins; it is free when none is under way."""
        self.health = ReloadHealth(succeeded_at=clock())
        """The outcome of the last attempt."""

    def want(self) -> None:
        """Request a reload, from a signal handler for example; two requests before it begins are one."""
        self._wanted.set()

    async def run(self, exporter: Swappable) -> None:
        """Reload whenever that is requested, until canceled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.reload(exporter)

    async def reload(self, exporter: Swappable) -> None:
        """Read, build and swap. A failure is logged and remembered, not raised."""
        async with self.between:
            try:
                # the old parts are held by no name, so that what they hold is freed
                before = exporter.parts.loaded
                async with asyncio.timeout(_LONGEST_READ_SECONDS):
                    parts, restart = await self._calls.run(partial(self._prepared, exporter.parts))
                self._configure_logs(parts.config.log)
                await exporter.swap(parts)
                now = parts.loaded
                changed = [*changed_fields(before.config, now.config), *changed_files(before, now)]
                log.info("configuration was read again", changed=", ".join(changed) or "nothing")
                for field in restart:
                    log.warning("a change needs a restart", field=field)
                self.health = ReloadHealth(succeeded_at=self._clock(), needs_restart=restart)
                gc.collect()  # what was replaced is in cycles; too expensive for each scrape
            except ConfigError as error:
                self._failed(error, error.subject, error.problems)
            except ClientError as error:
                self._failed(error, "kafka", (str(error),))
            except TimeoutError:
                text = f"a file of it cannot be read to its end within {_LONGEST_READ_SECONDS:g} s"
                self._failed(ExporterError(text), "configuration", (text,))
            except ExporterError as error:
                self._failed(error, "configuration", (str(error),))
            except Exception as error:
                log.exception("reading the configuration again failed unexpectedly")
                self._failed(error, "configuration", (type(error).__name__,))

    def _prepared(self, before: Parts) -> tuple[Parts, tuple[str, ...]]:
        """The parts of the configuration as it is now, and the changed fields that need a restart."""
        config, old = self._read(), before.config
        fields = changed_fields(old.server, config.server, f"{_NEEDS_RESTART}.")
        kept = config.model_copy(update={_NEEDS_RESTART: old.server})
        return self._build(loaded(kept), before), tuple(fields)

    def _failed(self, error: Exception, subject: str, problems: tuple[str, ...]) -> None:
        for problem in problems:
            log.error(
                "the configuration cannot be used, the previous one stays in force", file=subject, problem=problem
            )
        self.health = replace(self.health, error=str(error) or type(error).__name__)


def changed_fields(old: Section, new: Section, place: str = "") -> Iterator[str]:
    """The fields that differ, as people write them: ``kafka.timeout_seconds``. Never values, which may be secrets."""
    for name in type(new).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        here = f"{place}{name}"
        if isinstance(before, Section) and isinstance(after, Section):
            yield from changed_fields(before, after, f"{here}.")
        elif before != after:
            yield here


def changed_files(old: Loaded, new: Loaded) -> Iterator[str]:
    """The files that both configurations name, with different content."""
    for path in sorted(old.contents.keys() & new.contents.keys()):
        if old.contents[path] != new.contents[path]:
            yield str(path)
