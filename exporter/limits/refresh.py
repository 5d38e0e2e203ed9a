"""Keeps the configured limits up to date in the background."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

import structlog

from ..errors import LimitsDenied, LimitsError
from .changes import keep_unchanged, limit_changes
from .health import LimitsHealth
from .model import Limits, LimitsSource

log = structlog.get_logger()


class LimitsKeeper(Protocol):
    """Who knows the configured limits at any moment."""

    @property
    def limits(self) -> Limits | None:
        """The last limits that could be read."""
        ...

    @property
    def health(self) -> LimitsHealth:
        """How reading them goes."""
        ...

    @property
    def settled(self) -> asyncio.Event:
        """Set once the first read has succeeded or failed."""
        ...


class NoLimits:
    """Keeps nothing, for want of an Admin API to ask."""

    limits: Limits | None = None
    health = LimitsHealth(configured=False)

    def __init__(self) -> None:
        self.settled = asyncio.Event()
        self.settled.set()


class LimitsRefresh:
    """
    Reads the limits again and again, and tells each change once.

    A failure keeps the last limits, whose age then grows; it is logged when it
    begins and when it ends. Without a ``source`` there is nothing to read.
    """

    def __init__(
        self,
        source: LimitsSource | None,
        timeout_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._changes: Counter[str] = Counter()
        self.settled = asyncio.Event()
        """Set once the first read has succeeded or failed."""
        self.interval_seconds = 30.0
        """The pause after each read of ``run``, which looks each time."""
        self.limits: Limits | None = None
        self.health = LimitsHealth()
        self.ask(source, timeout_seconds)

    def ask(self, source: LimitsSource | None, timeout_seconds: float) -> None:
        """
        Read from there from now on, and never during a read.

        The last limits stay until the next read, if there is one to come, and what was counted stays in any case.
        """
        self._source, self._timeout_seconds = source, timeout_seconds
        self.health = replace(self.health, configured=source is not None)
        if source is None:
            self.limits = None
            self.health = replace(self.health, read_at=None, error=None, denied=False)
            self.settled.set()

    async def run(
        self,
        interval_seconds: float,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Refresh until cancelled, with a pause after each read."""
        self.interval_seconds = interval_seconds
        while True:
            await self.refresh()
            await pause(self.interval_seconds)

    async def refresh(self) -> None:
        """Read the limits once. A failure is remembered in ``health``, not raised."""
        if self._source is None:
            return
        try:
            async with asyncio.timeout(self._timeout_seconds):
                limits = await self._source.read()
        except TimeoutError:
            self._failed(
                LimitsError(f"no answer within {self._timeout_seconds:g} seconds")
            )
        except LimitsError as error:
            self._failed(error)
        except Exception as error:
            log.debug("reading the limits failed unexpectedly", exc_info=True)
            self._failed(LimitsError(f"unexpected {type(error).__name__}: {error}"))
        else:
            self._succeeded(limits)
        finally:
            self.settled.set()

    def _succeeded(self, limits: Limits) -> None:
        if self.limits is None or self.health.error is not None:
            rules = sum(map(len, limits.rules.values()))
            log.info("limits can be read", rules=rules)
        self._tell_missing(limits)
        if self.limits is not None:
            self._tell_changes(self.limits, limits)
            limits = keep_unchanged(self.limits, limits)
        self.limits = limits
        self.health = replace(
            self.health,
            read_at=self._clock(),
            error=None,
            denied=False,
            changes_total=dict(self._changes),
            errors_total=self.health.errors_total + len(limits.missing),
        )

    def _tell_missing(self, limits: Limits) -> None:
        before = self.limits.missing if self.limits else {}
        for what in limits.missing.keys() - before.keys():
            log.warning("cannot be read", what=what, error=limits.missing[what])
        for what in before.keys() - limits.missing.keys():
            log.info("can be read again", what=what)

    def _tell_changes(self, old: Limits, new: Limits) -> None:
        for change in limit_changes(old, new):
            self._changes[change.quota_key] += 1
            log.info(
                "limit changed",
                quota_key=change.quota_key,
                entity=change.entity,
                old=change.old,
                new=change.new,
            )

    def _failed(self, error: LimitsError) -> None:
        if self.health.error is None:
            kept = self.limits is not None
            log.warning("limits cannot be read", error=str(error), last_ones_kept=kept)
        self.health = replace(
            self.health,
            error=str(error),
            denied=isinstance(error, LimitsDenied),
            errors_total=self.health.errors_total + 1,
        )
