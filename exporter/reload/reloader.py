"""Reads the configuration again, and lets the exporter go on with it when it is good."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from quotascope.clients.errors import ClientError

from ..config import Config, LogConfig
from ..config.loaded import Loaded, loaded
from ..errors import ConfigError
from ..parts import Builder, Parts
from ..process import collect_garbage
from ..snapshot import ReloadHealth
from .changes import changed_fields, changed_files, needs_restart, without_restart

log = structlog.get_logger()


class Switched(Protocol):
    """What goes on as another configuration says: the exporter."""

    @property
    def parts(self) -> Parts:
        """What it works with now."""
        ...

    async def switch(self, parts: Parts) -> None:
        """Go on with these; parts that are the same objects as before are not disturbed."""
        ...


class Reloader:
    """
    Reads the configuration whenever it is asked to, one time after the other.

    One that cannot be used changes nothing: each problem is logged, and ``health`` says so until the next attempt.

    Args:
        read: Reads it, with whatever stands above the file; may block. Raises ``ConfigError``.
        builder: Makes its parts.
        tell: Lets the log look as configured.
        clock: Gives Unix time in seconds.

    """

    def __init__(
        self,
        read: Callable[[], Config],
        builder: Builder,
        tell: Callable[[LogConfig], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        self._builder = builder
        self._tell = tell
        self._clock = clock
        self._wanted = asyncio.Event()
        self.between = asyncio.Lock()
        """Whoever holds it keeps reloads from beginning, and comes when none is under way."""
        self.health = ReloadHealth(succeeded_at=clock())
        """How the last attempt went."""

    def want(self) -> None:
        """Ask for it, from a signal handler for example; asking twice before it begins is asking once."""
        self._wanted.set()

    async def run(self, exporter: Switched) -> None:
        """Let an exporter go on with what is read whenever that is asked for, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.reload(exporter)

    async def reload(self, exporter: Switched) -> None:
        """Read, and let the exporter go on with it. What goes wrong is logged and remembered, not raised."""
        async with self.between:
            await self._reload(exporter)

    async def _reload(self, exporter: Switched) -> None:
        try:
            parts, restart = await asyncio.to_thread(self._prepared, exporter.parts)
            await self._switch(exporter, parts, restart)
        except ConfigError as error:
            self._failed(error, error.subject, error.problems)
        except ClientError as error:
            self._failed(error, "kafka", (str(error),))
        except Exception as error:
            log.exception("reading the configuration again failed unexpectedly")
            self._failed(error, "configuration", (type(error).__name__,))

    def _prepared(self, before: Parts) -> tuple[Parts, list[str]]:
        config = self._read()
        restart = needs_restart(list(changed_fields(before.config, config)))
        kept = without_restart(before.config, config)
        return self._builder.build(loaded(kept), before), restart

    async def _switch(
        self, exporter: Switched, parts: Parts, restart: list[str]
    ) -> None:
        before = exporter.parts.loaded
        self._tell(parts.config.log)
        await exporter.switch(parts)
        self._succeeded(before, parts.loaded, restart)
        collect_garbage()

    def _succeeded(self, old: Loaded, new: Loaded, restart: list[str]) -> None:
        fields = list(changed_fields(old.config, new.config))
        files = list(changed_files(old, new))
        changed = ", ".join(fields + files) or "nothing"
        log.info("configuration was read again", changed=changed)
        for field in restart:
            log.warning("a change needs a restart", field=field)
        self.health = ReloadHealth(
            succeeded_at=self._clock(), needs_restart=tuple(restart)
        )

    def _failed(
        self, error: Exception, subject: str, problems: tuple[str, ...]
    ) -> None:
        for problem in problems:
            log.error(
                "the configuration cannot be used, the one before stays",
                file=subject,
                problem=problem,
            )
        self.health = replace(self.health, error=str(error) or type(error).__name__)
