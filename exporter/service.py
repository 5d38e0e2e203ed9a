"""The exporter at work: limits refreshed in the background, collections on demand, HTTP in front."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator, Sequence
from typing import Self

import structlog
from aiohttp import web

from .cardinality import Cardinality
from .collection import Collection, Sampler
from .config import Config
from .diagnosis import Severity, diagnose
from .discovery import Discovery, Roster
from .errors import CannotListen
from .http import Handlers
from .limits import LimitsSource
from .limits.refresh import LimitsKeeper, LimitsRefresh, NoLimits
from .os_reason import os_reason
from .otlp import Push
from .snapshot import Snapshot
from .sources.source import Source

log = structlog.get_logger()


class Exporter:
    """
    Everything between the sources and Prometheus.

    ``async with`` starts it and ends it; it owns the sources, the limits source, the discovery and the push, and
    closes them. ``refresh_seconds`` is the pause between two reads of the limits,
    ``limits_timeout_seconds`` the longest one of them.
    """

    def __init__(  # noqa: PLR0913 - what it puts together
        self,
        config: Config,
        sources: Sequence[Source] | Roster,
        limits: LimitsSource | None,
        *,
        discovery: Discovery | None = None,
        push: Push | None = None,
        refresh_seconds: float = 30.0,
        limits_timeout_seconds: float = 30.0,
    ) -> None:
        self._config = config
        self._limits_source = limits
        self._discovery = discovery
        self._push = push
        self._refresh_seconds = refresh_seconds
        sampled = config.collection.sample_every_seconds is not None
        keeper: LimitsKeeper = NoLimits()
        self._refresh = None
        if limits is not None:
            keeper = self._refresh = LimitsRefresh(limits, limits_timeout_seconds)
        self.collection = Collection(
            sources,
            keeper,
            config.collection.max_age_seconds,
            cardinality=Cardinality(config.cardinality, maxima=sampled),
            patience_seconds=config.collection.timeout_seconds,
        )
        if push is not None:
            self.collection.push_health = lambda: push.health
        self._tasks: list[asyncio.Task[None]] = []
        self._runner: web.AppRunner | None = None
        self.url = ""
        """Where it answers, once started; the address of this machine when it listens on all."""

    async def __aenter__(self) -> Self:
        try:
            await self._listen()
        except BaseException:
            await self._end()
            raise
        for work in self._background():
            self._tasks.append(asyncio.create_task(work))
        if self._push is not None:
            self._push.start(self.url, lambda: self._snapshot_for("otlp"))
        return self

    def _background(self) -> Iterator[Coroutine[object, object, None]]:
        if self._discovery is not None:
            yield self._discovery.run()
        if self._refresh is not None:
            yield self._refresh.run(self._refresh_seconds)
        yield self._first_collection()
        collection = self._config.collection
        if collection.sample_every_seconds is not None:
            yield Sampler(
                self.collection,
                collection.sample_every_seconds,
                collection.timeout_seconds,
            ).run()

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def snapshot(self) -> Snapshot:
        """The state of the cluster now, as a scrape would see it."""
        return await self.collection.snapshot(self._config.collection.timeout_seconds)

    async def _snapshot_for(self, scraper: str) -> Snapshot:
        timeout = self._config.collection.timeout_seconds
        return await self.collection.snapshot(timeout, scraper)

    async def _listen(self) -> None:
        handlers = Handlers(
            self.collection, self._config.collection, self._config.cluster
        )
        grace = self._config.collection.timeout_seconds + 1
        self._runner = web.AppRunner(
            handlers.app(), access_log=None, shutdown_timeout=grace
        )
        await self._runner.setup()
        server = self._config.server
        try:
            await web.TCPSite(self._runner, server.address, server.port).start()
        except OSError as error:
            raise CannotListen(
                f"cannot listen on {server.address} port {server.port}: {os_reason(error)}"
            ) from None
        host, port = self._runner.addresses[0][:2]
        self.url = _url(host, port)
        log.info("listening", url=self.url)

    async def _first_collection(self) -> None:
        try:
            snapshot = await self.snapshot()
        except Exception:
            log.exception("the first collection failed")
            return
        for finding in diagnose(snapshot):
            if finding.severity is Severity.WARNING:  # errors were told when they arose
                log.warning(finding.text, advice=finding.advice)
        log.info("ready", entities=len(snapshot.measured), nodes=len(snapshot.nodes))

    async def _end(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._push is not None:
            await self._push.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.collection.close()
        if self._discovery is not None:
            await self._discovery.close()
        if self._limits_source is not None:
            await self._limits_source.close()


def _url(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host)  # noqa: S104 - compared, not bound
    if shown is None:
        shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"
