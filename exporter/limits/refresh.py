"""Keeps the configured limits up to date in the background."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

import structlog

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

from ..errors import LimitsDenied, LimitsError, LimitsUnsupported
from ..logs import FailureLog
from ..steady import steady
from .model import CONNECTION_KEY, LimitChange, Limits, LimitsHealth, LimitsSource

log = structlog.get_logger()

MOST_CHANGES: Final = 100
"""Changes of limits that are kept."""

_Key = TypeVar("_Key")
_Change = tuple[str, str, float | None, float | None]
"""
Quota key, entity in words such as ``alice / <default>``, old and new limit in Kafka's unit; None where there is none.
"""


class LimitsRefresh:
    """
    Reads the limits again and again, and logs and counts each change once.

    After a failure the last limits stay, and their age grows. The log has when failures begin and when they end.

    Args:
        source: The source of the limits; None if there is nothing to read.
        timeout_seconds: The longest that one read may take.
        interval_seconds: The pause after each read.
        clock: Unix time in seconds.
        steady: Seconds that no one sets, by which limits age.

    """

    def __init__(
        self,
        source: LimitsSource | None = None,
        timeout_seconds: float = 30.0,
        interval_seconds: float = 30.0,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady,
    ) -> None:
        self._clock, self._steady = clock, steady
        self._read_at = 0.0
        """When the last limits were read, in steady seconds."""
        self._changes: Counter[str] = Counter()
        self._latest = deque[LimitChange](maxlen=MOST_CHANGES)
        self.settled = asyncio.Event()
        """Set once the first read has succeeded or failed."""
        self.limits: Limits | None = None
        """The last limits that could be read."""
        self.health = LimitsHealth()
        self._failures = FailureLog("limits cannot be read")
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
            self.health = replace(
                self.health, read_at=None, cluster_id=None, error=None, denied=False, unsupported=False
            )
            self._failures.works()
            self.settled.set()

    def health_on_clock(self, unix_now: float, steady: float) -> LimitsHealth:
        """
        Return ``health`` with the time of the last success by the clock of now, which may have been set since.

        Args:
            unix_now: Unix time in seconds.
            steady: Steady seconds at the same moment.

        """
        if self.health.read_at is None:
            return self.health
        return replace(self.health, read_at=unix_now - (steady - self._read_at))

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
        """Keep limits that were read, log and count the changes since the last ones, and set ``health``."""
        previous = self.limits
        if previous is not None and len({previous.cluster_id, limits.cluster_id} - {None}) > 1:
            previous = None  # a reload named another cluster, whose limits are no changes
            self._latest.clear()
        self._failures.works()
        if previous is None or self.health.error is not None:
            log.info("limits can be read", rules=sum(map(len, limits.rules.values())))
        missing_before = previous.missing if previous else {}
        for setting in limits.missing.keys() - missing_before.keys():
            log.warning("cannot be read", what=setting, error=limits.missing[setting])
        for setting in missing_before.keys() - limits.missing.keys():
            log.info("can be read again", what=setting)
        if previous is not None:
            for key, entity, old, new in _changes(previous, limits):
                self._changes[key] += 1
                self._latest.appendleft(LimitChange(read_at=self._clock(), key=key, entity=entity, old=old, new=new))
                log.info("limit changed", quota_key=key, entity=entity, old=old, new=new)
            limits = limits.after(previous)
        self.limits, self._read_at = limits, self._steady()
        self.health = replace(
            self.health,
            read_at=self._clock(),
            cluster_id=limits.cluster_id,
            error=None,
            denied=False,
            unsupported=False,
            changes_total=dict(self._changes),
            changes=tuple(self._latest),
            changes_since=self._clock() if previous is None else self.health.changes_since,
            errors_total=self.health.errors_total + len(limits.missing),
        )

    def _failed(self, error: LimitsError) -> None:
        """Log that the limits could not be read, and set ``health``; the last limits stay."""
        self._failures.fails(str(error), last_ones_kept=self.limits is not None)
        self.health = replace(
            self.health,
            error=str(error),
            denied=isinstance(error, LimitsDenied),
            unsupported=isinstance(error, LimitsUnsupported),
            errors_total=self.health.errors_total + 1,
        )


def _changes(old: Limits, new: Limits) -> Iterator[_Change]:
    """Yield the differences between two reads, by quota key."""
    yield from _differences("ip ", CONNECTION_KEY, old.connection_limits, new.connection_limits)
    for kind in QuotaType:
        old_rules: Mapping[QuotaEntity, float] = old.rules.get(kind, {})
        new_rules: Mapping[QuotaEntity, float] = new.rules.get(kind, {})
        yield from _differences("", kind.quota_key, old_rules, new_rules)


def _differences(prefix: str, key: str, old: Mapping[_Key, float], new: Mapping[_Key, float]) -> Iterator[_Change]:
    """Yield the differences between the limits of one quota key; ``prefix`` is written before each entity."""
    if old is new:
        return
    for entity in {**old, **new}:
        old_value, new_value = old.get(entity), new.get(entity)
        if old_value != new_value:
            yield key, f"{prefix}{entity}", old_value, new_value
