"""What several checks look at, asked for once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from quotascope.clients.errors import ClientError
from quotascope.clients.quota_admin import QuotaAdmin

from ..cardinality import Cardinality
from ..collection.reads import Reads
from ..config import Config, KafkaConfig, SourceConfig
from ..discovery.build import build_roster
from ..errors import ConfigError
from ..join import Join
from ..snapshot import LimitsHealth, Snapshot, SourceRead
from ..threads import BlockingCalls
from .cluster import ClusterAnswers, ask

_Value = TypeVar("_Value")
_PATIENCE_SECONDS: Final = 5.0
"""For the slowest source, where collection.timeout_seconds allows it no more."""


class Evidence:
    """
    The cluster's answers, and one snapshot of everything.

    Each is made when it is first asked for, goes on when who asked gives up, and is the same for everybody.

    Args:
        config: Whom to ask.
        open_admin: Opens the Admin API, which connects with its first call.
        clock: Gives Unix time in seconds.

    """

    def __init__(
        self,
        config: Config,
        open_admin: Callable[[KafkaConfig], QuotaAdmin],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self._open_admin = open_admin
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._closing: list[Callable[[], Coroutine[object, object, object]]] = []
        self.reads: Sequence[SourceRead] = ()
        """What the snapshot was made of, once there is one."""
        self._found: Sequence[SourceConfig] = ()

    async def cluster(self) -> ClusterAnswers | None:
        """What the Admin API answers, None when none is configured. Raises ``ConfigError`` and ``ClientError``."""
        return await self._once("cluster", self._ask)

    async def answers(self) -> ClusterAnswers | None:
        """The same, None as well when asking failed."""
        try:
            return await self.cluster()
        except (ClientError, ConfigError):
            return None

    async def nodes(self) -> Sequence[SourceConfig]:
        """How the sources that discovery finds are read; none when it cannot look."""
        if not self.config.discovery.wanted:
            return ()
        try:
            await self.snapshot()
        except (ClientError, ConfigError):
            return ()
        return self._found

    async def snapshot(self) -> Snapshot:
        """Every source read once, joined with the limits. Raises ``ConfigError`` and ``ClientError``."""
        return await self._once("snapshot", self._look)

    async def close(self) -> None:
        """Give up on what is under way, and release all connections."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for close in self._closing:
            await close()

    async def _once(
        self, name: str, make: Callable[[], Coroutine[object, object, _Value]]
    ) -> _Value:
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(make())
        value: _Value = await asyncio.shield(self._tasks[name])
        return value

    async def _ask(self) -> ClusterAnswers | None:
        if self.config.kafka is None:
            return None
        admin = self._open_admin(self.config.kafka)
        calls = BlockingCalls("quotascope-doctor")
        self._closing.append(lambda: calls.close(admin.close))
        return await calls.run(lambda: ask(admin))

    async def _look(self) -> Snapshot:
        roster, discovery = build_roster(self.config, self._open_admin)
        self._closing.append(roster.close)
        if discovery is not None:
            self._closing.append(discovery.close)
            await discovery.refresh()
        self._found = roster.found
        async with roster.reading() as sources:
            reads = Reads(self._clock)
            self._closing.insert(0, lambda: reads.keep_only(()))
            timeout = self.config.collection.timeout_seconds
            reads.begin(sources, max(_PATIENCE_SECONDS, timeout))
            await reads.done()
        now = self._clock()
        answers = await self.answers()
        limits = answers.limits(now) if answers else None
        configured = self.config.kafka is not None
        read_at = None if limits is None else now
        health = LimitsHealth(configured=configured, read_at=read_at)
        self.reads = roster.once_each(reads.so_far())
        joined = Join().snapshot(self.reads, limits, health, now)
        shown = Cardinality(self.config.cardinality).apply(joined)
        found = () if discovery is None else (*discovery.health.values(),)
        return replace(shown, discoveries=found)
