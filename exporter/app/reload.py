"""Reads the configuration or its files again, builds the parts, and swaps the exporter to them when they are good."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import structlog

from quotascope.clients.errors import ClientError

from ..config import Config, LogConfig
from ..config.load import Loaded, files_in, loaded
from ..config.section import Section
from ..errors import ConfigError, ExporterError
from ..following import FileCalls, Signature, signature
from ..snapshot import ReloadHealth
from .parts import Parts

log = structlog.get_logger()

_NEEDS_RESTART: Final = "server"
"""The section that is read once, at the start."""


class Swappable(Protocol):
    """The user of the parts of a configuration: the exporter."""

    @property
    def parts(self) -> Parts:
        """The parts in use."""
        ...

    async def swap(self, parts: Parts) -> None:
        """Work with these parts; a part that is the same object as before is left alone."""
        ...


class Reloader:
    """
    Reads the configuration on request, and the files that it names after they have changed, one time after the other.

    What cannot be used changes nothing: each problem is logged, and ``health`` shows it until an attempt succeeds.

    Args:
        read: Reads it with the values that override the file; may block. Raises ``ConfigError``.
        build: Builds its parts from those in use. Raises ``ConfigError`` and ``ClientError``.
        configure_logs: Applies the format and level of log lines.
        clock: Unix time in seconds.

    """

    def __init__(
        self,
        read_config: Callable[[], Config],
        build: Callable[[Loaded, Parts], Parts],
        configure_logs: Callable[[LogConfig], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read = read_config
        self._build = build
        self._configure_logs = configure_logs
        self._clock = clock
        self._wanted = asyncio.Event()
        self._calls = FileCalls("configuration")
        self._seen: tuple[Loaded, Signature] | None = None
        """
        The configuration whose files were looked at last, with their state then; None forces the next look to read
        them.
        """
        self._refused: tuple[str, ...] = ()
        """Error of the files of the configuration in use, as they are now; None if they can be used."""
        self.between = asyncio.Lock()
        """The lock of reloads: as long as it is held, none begins; it is free when none is under way."""
        self.health = ReloadHealth(succeeded_at=clock())
        """The outcome of the last attempt."""

    def want(self) -> None:
        """Request a reload, from a signal handler for example; two requests before it begins are one."""
        self._wanted.set()

    async def run(self, exporter: Swappable) -> None:
        """Reload on each request, until canceled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.reload(exporter)

    async def reload(self, exporter: Swappable) -> None:
        """Read the configuration, build and swap. A failure is logged and remembered, not raised."""
        async with self.between:
            # no name holds the old parts, so that their memory is freed
            old_loaded = exporter.parts.loaded
            try:
                parts, restart = await self._calls.run(partial(self._prepared, exporter.parts))
                self._configure_logs(parts.config.log)
                await exporter.swap(parts)
            except Exception as error:  # noqa: BLE001 - each kind has its words
                subject, problems = _explained(error)
                _log_refused(subject, problems, error)
                self.health = replace(self.health, error=_summary(error))
                return
            new_loaded = parts.loaded
            changed = [*changed_fields(old_loaded.config, new_loaded.config), *changed_files(old_loaded, new_loaded)]
            log.info("configuration was read again", changed=", ".join(changed) or "nothing")
            for field in restart:
                log.warning("a change needs a restart", field=field)
            self._seen, self._refused = None, ()
            self.health = ReloadHealth(succeeded_at=self._clock(), needs_restart=restart)
            gc.collect()  # replaced parts are in cycles; a collection would be too expensive for each scrape

    async def renew(self, exporter: Swappable) -> None:
        """
        Build the parts again whose files have changed: certificates, passwords, tokens, candidates.

        The configuration stays. Files that cannot be used leave the parts as they are, and are tried again at each
        call.
        """
        async with self.between:
            old_loaded = exporter.parts.loaded
            try:
                parts = await self._calls.run(partial(self._renewed, exporter.parts))
                if parts is not None:
                    await exporter.swap(parts)
            except Exception as error:  # noqa: BLE001 - each kind has its words
                subject, problems = _explained(error)
                if problems != self._refused:
                    _log_refused(subject, problems, error)
                self._seen, self._refused = None, problems
                self.health = replace(self.health, files_error=_summary(error))
                return
            self._refused = ()
            self.health = replace(self.health, files_error=None)
            if parts is not None:
                changed = ", ".join(changed_files(old_loaded, parts.loaded))
                log.info("files of the configuration were read again", changed=changed)
                gc.collect()

    def _prepared(self, old_parts: Parts) -> tuple[Parts, tuple[str, ...]]:
        """Return the parts of the configuration as it is now, and the changed fields that need a restart."""
        config, old = self._read(), old_parts.config
        fields = changed_fields(old.server, config.server, f"{_NEEDS_RESTART}.")
        new_config = config.model_copy(update={_NEEDS_RESTART: old.server})
        return self._build(loaded(new_config), old_parts), tuple(fields)

    def _renewed(self, old_parts: Parts) -> Parts | None:
        """Return the parts with the content of their files as it is now; None when that is the same."""
        config = old_parts.config
        # the server watches its own files
        files = set(files_in(config)) - set(files_in(config.server))
        contents = old_parts.loaded, signature(sorted(files))
        if self._seen is not None and self._seen == contents:
            return None
        new_loaded = loaded(config)
        changed = any(new_loaded.contents[file] != old_parts.loaded.contents.get(file) for file in files)
        parts = self._build(new_loaded, old_parts) if changed else None
        self._seen = (parts or old_parts).loaded, contents[1]
        return parts


def _explained(error: Exception) -> tuple[str, tuple[str, ...]]:
    """Return the part of the configuration that cannot be used, and each problem with it."""
    match error:
        case ConfigError():
            return error.subject, tuple(error.problems)
        case ClientError():
            return "kafka", (str(error),)
        case ExporterError():
            return "configuration", (str(error),)
    return "configuration", (type(error).__name__,)


def _summary(error: Exception) -> str:
    return str(error) or type(error).__name__


def _log_refused(subject: str, problems: Iterable[str], error: Exception) -> None:
    if not isinstance(error, ExporterError | ClientError):
        log.error("reading the configuration again failed unexpectedly", exc_info=error)
    for problem in problems:
        log.error("the configuration cannot be used, the previous one stays in force", file=subject, problem=problem)


def changed_fields(old: Section, new: Section, place: str = "") -> Iterator[str]:
    """
    Yield the fields that differ, as people write them: ``kafka.timeout_seconds``.

    Never values, which may be secrets.
    """
    for name in type(new).model_fields:
        old_value, new_value = getattr(old, name), getattr(new, name)
        field_place = f"{place}{name}"
        if isinstance(old_value, Section) and isinstance(new_value, Section):
            yield from changed_fields(old_value, new_value, f"{field_place}.")
        elif old_value != new_value:
            yield field_place


def changed_files(old: Loaded, new: Loaded) -> Iterator[str]:
    """Yield the files that both configurations name, with different content."""
    for path in sorted(old.contents.keys() & new.contents.keys()):
        if old.contents[path] != new.contents[path]:
            yield str(path)
