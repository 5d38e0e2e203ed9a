"""The doctor: everything that a configuration names is tried once, in checks that run side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

import structlog

from quotascope.clients.errors import ClientError
from quotascope.clients.quota_admin import QuotaAdmin
from quotascope.metrics.catalog.thresholds import DEFAULTS, SharedThresholds

from ..cardinality import Cardinality
from ..collection.reads import Reads
from ..config import Config, KafkaConfig, SourceConfig
from ..discovery.discovery import build_roster
from ..errors import ConfigError, ExporterError
from ..join.join import Join
from ..memory import limit_bytes
from ..snapshot import LimitsHealth, Snapshot, SourceRead
from ..steady import steady
from ..threads import BlockingCalls
from ..untrusted import shown
from .catalog import Catalog, Finding
from .certificates import certificates, secrets
from .cluster import ClusterAnswers, ask, permissions, reachability, replication, windows
from .findings import agent_findings, discovery_findings, quota_findings
from .probes import clocks, listening, memory_findings, receiver

log = structlog.get_logger()

Look: TypeAlias = Callable[[], Awaitable[Iterable[Finding]]]
"""Function that returns the findings of one check; raises ``ExporterError`` or ``ClientError`` when there are none."""
Progress: TypeAlias = Callable[[Sequence[str]], None]
"""Callback that gets the checks that have not ended yet."""
_Value = TypeVar("_Value")
_PATIENCE_SECONDS: Final = 5.0
"""Longest wait for the slowest source, unless collection.timeout_seconds is longer."""


async def examine(checks: Mapping[str, Look], seconds: float, progress: Progress = lambda _: None) -> list[Finding]:
    """
    Return the findings of all checks, in their order.

    A check that takes longer than ``seconds`` is given up, and breaks no other.
    """
    unfinished = list(checks)

    async def findings(check: str, look: Look) -> list[Finding]:
        try:
            async with asyncio.timeout(seconds):
                return list(await look())
        except TimeoutError:
            return [Catalog.CHECK_TIMED_OUT.found(check, check=check, seconds=seconds)]
        except (ExporterError, ClientError) as error:
            return [Catalog.CHECK_FAILED.found(check=check, error=shown(error))]
        except Exception as error:
            log.debug("a check failed unexpectedly", check=check, exc_info=True)
            text = f"{type(error).__name__}: {shown(error)}"
            return [Catalog.CHECK_DEFECT.found(check, check=check, error=text)]
        finally:
            unfinished.remove(check)
            progress(unfinished)

    progress(unfinished)
    findings_of_checks = await asyncio.gather(*map(findings, checks, checks.values()))
    return list(chain.from_iterable(findings_of_checks))


def checks_of(
    evidence: Evidence, environ: Mapping[str, str], scraped_every_seconds: float | None = None
) -> dict[str, Look]:
    """
    Return all checks of a configuration by name, in the order in which they are shown.

    Args:
        evidence: The evidence that several checks share.
        environ: The environment, which can name the receiver of pushes.
        scraped_every_seconds: Scrape interval of Prometheus, where it is known.

    """
    config = evidence.config

    async def kafka() -> Iterable[Finding]:
        answers = await evidence.cluster()
        return [Catalog.NO_ADMIN_API.found()] if not answers else reachability(answers)

    async def cluster_check(view: Callable[[ClusterAnswers], Iterable[Finding]]) -> Iterable[Finding]:
        answers = await evidence.answers()
        return () if answers is None else view(answers)

    async def discovery() -> Iterable[Finding]:
        return discovery_findings(await evidence.snapshot()) if config.finds_nodes else ()

    async def agents() -> Iterable[Finding]:
        snapshot = await evidence.snapshot()
        return agent_findings(evidence.reads, snapshot, discovers=config.finds_nodes)

    async def quotas() -> Iterable[Finding]:
        return quota_findings(await evidence.snapshot())

    async def clock_check() -> Iterable[Finding]:
        return await clocks([*config.agents, *await evidence.nodes()])

    async def certificate_check() -> Iterable[Finding]:
        return await certificates(config, await evidence.nodes())

    async def secret_check() -> Iterable[Finding]:
        return secrets(config)

    checks: dict[str, Look] = {
        "kafka": kafka,
        "permissions": lambda: cluster_check(permissions),
        "discovery": discovery,
        "agents": agents,
        "quotas": quotas,
        "replication": lambda: cluster_check(replication),
        "windows": lambda: cluster_check(lambda answers: windows(answers, config.collection, scraped_every_seconds)),
        "clocks": clock_check,
        "certificates": certificate_check,
        "secrets": secret_check,
        "listening": lambda: listening(config.server),
        "memory": partial(_memory, evidence),
    }
    if config.otlp is not None:
        checks["otlp"] = partial(receiver, config.otlp, environ)
    return checks


async def _memory(evidence: Evidence) -> Iterable[Finding]:
    return memory_findings((await evidence.snapshot()).sources, limit_bytes())


class Evidence:
    """
    The evidence that several checks share: the cluster's answers, and one snapshot of everything.

    Each is made when a check first needs it, also when that check is given up meanwhile, and all checks share it.

    Args:
        config: The configuration of what is read.
        open_admin: Opens the Admin API, which connects with its first call.
        clock: Gives Unix time in seconds.
        thresholds: The thresholds of the alerts.

    """

    def __init__(
        self,
        config: Config,
        open_admin: Callable[[KafkaConfig], QuotaAdmin],
        clock: Callable[[], float] = time.time,
        thresholds: SharedThresholds = DEFAULTS,
    ) -> None:
        self.config = config
        self._open_admin = open_admin
        self._clock = clock
        self._thresholds = thresholds
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._closing: list[Callable[[], Coroutine[object, object, object]]] = []
        self.reads: Sequence[SourceRead] = ()
        """The reads that the snapshot was made of, once there is one."""
        self._found: Sequence[SourceConfig] = ()

    async def cluster(self) -> ClusterAnswers | None:
        """
        Return the answers of the Admin API, None when none is configured.

        Raises ``ConfigError`` and ``ClientError``.
        """
        return await self._once("cluster", self._ask)

    async def answers(self) -> ClusterAnswers | None:
        """Return the answers as ``cluster`` does, but None after an error, which the check `kafka` reports."""
        try:
            return await self.cluster()
        except (ClientError, ConfigError):
            return None

    async def nodes(self) -> Sequence[SourceConfig]:
        """Return the configurations of the sources that discovery finds; none when it cannot look."""
        if self.config.finds_nodes:
            try:
                await self.snapshot()
            except (ClientError, ConfigError):
                return ()
        return self._found

    async def snapshot(self) -> Snapshot:
        """
        Return the reads of all sources, each read once, joined with the limits.

        Raises ``ConfigError`` and ``ClientError``.
        """
        return await self._once("snapshot", self._take_snapshot)

    async def close(self) -> None:
        """Give up on what is under way, and release all connections."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for close in self._closing:
            await close()

    async def _once(self, name: str, make: Callable[[], Coroutine[object, object, _Value]]) -> _Value:
        """
        Return the result of ``make``, which runs once for all callers that give the same name.

        It runs to its end even if a caller is canceled.
        """
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(make())
        value: _Value = await asyncio.shield(self._tasks[name])
        return value

    async def _ask(self) -> ClusterAnswers | None:
        """Ask the cluster; return None when no Admin API is configured."""
        if self.config.kafka is None:
            return None
        admin = self._open_admin(self.config.kafka)
        calls = BlockingCalls("quotascope-doctor")
        self._closing.append(lambda: calls.close(admin.close))
        return await calls.run(lambda: ask(admin))

    async def _take_snapshot(self) -> Snapshot:
        """Read all sources once, and join the reads with the limits as the exporter does."""
        roster, discovery = build_roster(self.config, self._open_admin)
        self._closing.append(roster.close)
        if discovery is not None:
            self._closing.append(discovery.close)
            await discovery.refresh()
        self._found = roster.found_configs
        async with roster.reading() as sources:
            reads = Reads()
            # to be closed first, since a read uses its source
            self._closing.insert(0, lambda: reads.keep_only(()))
            timeout = self.config.collection.timeout_seconds
            reads.begin(sources, max(_PATIENCE_SECONDS, timeout))
            await reads.wait()
        now_seconds, steady_seconds = self._clock(), steady()
        answers = await self.answers()
        limits = answers.limits(now_seconds) if answers else None
        health = LimitsHealth(configured=self.config.kafka is not None, read_at=None if limits is None else now_seconds)
        self.reads = [
            source_read.on_clock(now_seconds, steady_seconds)
            for source_read in roster.one_table_per_node(reads.so_far())
        ]
        joined = replace(Join().snapshot(self.reads, limits, health, now_seconds), thresholds=self._thresholds)
        capped = Cardinality(self.config.cardinality).apply(joined)
        discoveries = () if discovery is None else (*discovery.health.values(),)
        return replace(capped, discoveries=discoveries)
