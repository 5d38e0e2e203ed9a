"""Keeps the configured limits up to date in the background."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import structlog

from quotascope.metrics import QuotaEntity, QuotaType

from ..errors import LimitsDenied, LimitsError
from .model import CONNECTION_KEY, Limits, LimitsHealth, LimitsSource

log = structlog.get_logger()

_Key = TypeVar("_Key")
_Change = tuple[str, str, float | None, float | None]
"""Quota key, entity in words such as ``alice / <default>``, old and new limit in Kafka's unit; None where there is none."""


class LimitsRefresh:
    """
    Reads the limits again and again, and logs and counts each change once.

    A failure keeps the last limits, and their age grows; it is logged when it
    begins and when it ends. Without a ``source`` there is nothing to read.

    Args:
        source: Where the limits come from.
        timeout_seconds: The longest that one read may take.
        interval_seconds: The pause after each read.
        clock: Unix time in seconds.

    """

    def __init__(
        self,
        source: LimitsSource | None = None,
        timeout_seconds: float = 30.0,
        interval_seconds: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._changes: Counter[str] = Counter()
        self.settled = asyncio.Event()
        """Set once the first read has succeeded or failed."""
        self.limits: Limits | None = None
        """The last limits that could be read."""
        self.health = LimitsHealth()
        self.read_from(source, timeout_seconds, interval_seconds)

    def read_from(self, source: LimitsSource | None, timeout_seconds: float, interval_seconds: float) -> None:
        """
        Take another source, timeout or interval, from the next read or pause on.

        The last limits stay until the next read, if there is one to come, and counts stay in any case.
        """
        self._source, self._timeout_seconds = source, timeout_seconds
        self._interval_seconds = interval_seconds
        self.health = replace(self.health, configured=source is not None)
        if source is None:
            self.limits = None
            self.health = replace(self.health, read_at=None, cluster_id=None, error=None, denied=False)
            self.settled.set()

    async def run(self, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Refresh until canceled, with a pause after each read."""
        while True:
            await self.refresh()
            await pause(self._interval_seconds)

    async def refresh(self) -> None:
        """Read the limits once. A failure is remembered in ``health``, not raised."""
        if self._source is None:
            return
        try:
            async with asyncio.timeout(self._timeout_seconds):
                limits = await self._source.read()
        except TimeoutError:
            self._failed(LimitsError(f"no answer within {self._timeout_seconds:g} seconds"))
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
        before = self.limits
        if before is not None and len({before.cluster_id, limits.cluster_id} - {None}) > 1:
            before = None  # a reload named another cluster, whose limits are no changes
        if before is None or self.health.error is not None:
            log.info("limits can be read", rules=sum(map(len, limits.rules.values())))
        missing_before = before.missing if before else {}
        for what in limits.missing.keys() - missing_before.keys():
            log.warning("cannot be read", what=what, error=limits.missing[what])
        for what in missing_before.keys() - limits.missing.keys():
            log.info("can be read again", what=what)
        if before is not None:
            for key, entity, old, new in _changes(before, limits):
                self._changes[key] += 1
                log.info("limit changed", quota_key=key, entity=entity, old=old, new=new)
            # the old objects where nothing changed, so that results derived from them stay valid
            rules = {
                kind: before.rules[kind] if before.rules.get(kind) == table else table
                for kind, table in limits.rules.items()
            }
            limits = replace(limits, rules=rules)
        self.limits = limits
        self.health = replace(
            self.health,
            read_at=self._clock(),
            cluster_id=limits.cluster_id,
            error=None,
            denied=False,
            changes_total=dict(self._changes),
            errors_total=self.health.errors_total + len(limits.missing),
        )

    def _failed(self, error: LimitsError) -> None:
        if self.health.error is None:
            log.warning("limits cannot be read", error=str(error), last_ones_kept=self.limits is not None)
        self.health = replace(
            self.health,
            error=str(error),
            denied=isinstance(error, LimitsDenied),
            errors_total=self.health.errors_total + 1,
        )


def _changes(old: Limits, new: Limits) -> Iterator[_Change]:
    """The differences between two reads, by quota key."""
    yield from _differences("ip ", CONNECTION_KEY, old.connection_limits, new.connection_limits)
    for kind in QuotaType:
        before: Mapping[QuotaEntity, float] = old.rules.get(kind, {})
        after: Mapping[QuotaEntity, float] = new.rules.get(kind, {})
        yield from _differences("", kind.quota_key, before, after)


def _differences(prefix: str, key: str, old: Mapping[_Key, float], new: Mapping[_Key, float]) -> Iterator[_Change]:
    if old is new:
        return
    for entity in {**old, **new}:
        before, after = old.get(entity), new.get(entity)
        if before != after:
            yield key, f"{prefix}{entity}", before, after
