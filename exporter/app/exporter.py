"""The exporter at work: limits refreshed in the background, collections on demand, HTTP in front."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Self

import structlog
from prometheus_client import ProcessCollector

from ..background import Background
from ..cardinality import Cardinality
from ..collection import Collection, Sampler
from ..config import Config
from ..diagnosis import FindingSeverity, diagnose
from ..discovery import Discovery, Roster
from ..discovery.discovery import discovery_of
from ..http import Handlers
from ..limits.refresh import LimitsRefresh
from ..otlp import OtlpPush
from ..shadow import Shadows
from ..snapshot import OwnHealth, Snapshot
from ..web import HttpServer
from .parts import Parts
from .reload import Reloader

log = structlog.get_logger()


class Exporter:
    """
    Everything between the sources and Prometheus.

    ``async with`` starts it and ends it; it owns its parts, and closes them. Raises ``ConfigError`` when the web config
    file cannot be used.

    Args:
        parts: The parts of its configuration.
        runbooks: Markdown by the name of the alert, served as it is.
        reloader: Reads the configuration again, where that can be done.

    """

    def __init__(
        self, parts: Parts, *, runbooks: Mapping[str, str] | None = None, reloader: Reloader | None = None
    ) -> None:
        config, collection = parts.config, parts.config.collection
        self.parts = parts
        """The parts in use."""
        self.url = ""
        """Where it answers, once started; the address of this machine when it listens on all."""
        self._reloader = reloader
        self._background = Background()
        self._sampler: Sampler | None = None
        self._push: OtlpPush | None = None
        self._process = ProcessCollector(registry=None)
        self._roster = Roster(parts.sources)
        self._discovery = discovery_of(config, parts.finders, self._roster)
        self._refresh = LimitsRefresh(*parts.limits_reading)
        self._cardinality = Cardinality(config.cardinality, maxima=_sampled(config))
        self.collection = Collection(
            self._roster,
            self._refresh,
            collection.max_age_seconds,
            cardinality=self._cardinality,
            patience_seconds=collection.timeout_seconds,
            own=self._own_health,
            window_seconds=collection.sample_window_seconds,
            shadows=self._shadows(),
        )
        self._handlers = Handlers(self.collection, config, runbooks)
        self._server = HttpServer(config.server)

    async def __aenter__(self) -> Self:
        # requests that wait for a collection when the end comes are answered
        grace = self.parts.config.collection.timeout_seconds + 1
        try:
            self.url = await self._server.open(self._handlers.app(), grace)
        except BaseException:
            await self._end()
            raise
        self._start_discovery()
        self._start_limits()
        self._background.start("first collection", self._first_collection)
        self._background.start("trails", self._handlers.pages.follow, lasting=True)
        self._start_sampler()
        await self._swap_push()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def snapshot(self) -> Snapshot:
        """The state of the cluster now, as a scrape would see it."""
        timeout = self.parts.config.collection.timeout_seconds
        return await self.collection.snapshot(timeout)

    async def swap(self, parts: Parts) -> None:
        """
        Work with the parts of another configuration, except for ``server``, while requests are answered.

        Parts that are the same objects as before are not disturbed. Of the others, this is handed over: what was found
        and counted by discovery, the last limits and the counts of their changes, the counts of sampling, and the ledger
        of pushes. They are closed at the end, when nothing uses them any more. A part that cannot be built is raised
        before anything has changed; one that cannot be closed is logged. To be called once it was started, and again
        only when it has returned.
        """
        before, discovery = self.parts, self._discovery
        if parts.push is not None and parts.push is not self._push:
            parts.push.open(self.url)
        if parts.finders is not before.finders:
            # last, since from here on collections wait for its first look
            discovery = discovery_of(parts.config, parts.finders, self._roster)
        old_discovery, self.parts = self._discovery, parts
        await self._roster.fix(parts.sources)
        await self._swap_discovery(discovery)
        if parts.limits is not before.limits:
            await self._background.stop("limits")
        self._refresh.read_from(*parts.limits_reading)
        if parts.limits is not before.limits:
            self._start_limits()
        await self._swap_settings(before.config)
        await self._swap_push()
        if old_discovery is not None and old_discovery is not discovery:
            await _close_part("discovery", old_discovery.close)
        if before.limits is not None and before.limits is not parts.limits:
            await _close_part("limits", before.limits.close)

    async def _swap_discovery(self, now: Discovery | None) -> None:
        """Read the nodes found before until the new finders have looked."""
        config, before = self.parts.config, self._discovery
        if now is not before:
            await self._background.stop("discovery")
            self._discovery = now
            self._roster.settled.set()  # the one before may have ended within its first look
            if now is None:
                await self._roster.follow(())
            elif before is not None:
                now.resume(before)
        if now is not None and before is not None:
            common = config.discovery.source
            await now.change(config.sources, common, renew=self.parts.renew)
        if now is not before:
            self._start_discovery()

    async def _swap_settings(self, before: Config) -> None:
        config, collection = self.parts.config, self.parts.config.collection
        self._cardinality.configure(config.cardinality, maxima=_sampled(config))
        self.collection.configure(
            collection.max_age_seconds, collection.timeout_seconds, collection.sample_window_seconds, self._shadows()
        )
        self._handlers.configure(config)
        if collection != before.collection:
            await self._background.stop("samples")
            self._start_sampler()

    def _shadows(self) -> Shadows | None:
        if not self.parts.shadows:
            return None
        return Shadows(self.parts.shadows, self.parts.config.shadow.max_entities, self._cardinality.allows)

    async def _swap_push(self) -> None:
        """Let the old one send its last before the new one starts: both count in one ledger."""
        before, push = self._push, self.parts.push
        if push is before:
            return
        if before is not None:
            await _close_part("push", before.close)
        if push is not None and before is not None:
            push.resume(before)
        self._push = push
        if push is not None:
            push.start(self.url, self.snapshot)

    def _start_discovery(self) -> None:
        if self._discovery is not None:
            self._background.start("discovery", self._discovery.run, lasting=True)

    def _start_limits(self) -> None:
        if self.parts.limits is not None:
            self._background.start("limits", self._refresh.run, lasting=True)

    def _start_sampler(self) -> None:
        collection, before = self.parts.config.collection, self._sampler
        self._sampler = None
        if collection.sample_every_seconds is not None:
            self._sampler = Sampler(
                self.collection.snapshot,
                collection.sample_every_seconds,
                collection.timeout_seconds,
                before.sampling if before else None,
            )
            self._background.start("samples", self._sampler.run, lasting=True)

    def _own_health(self) -> OwnHealth:
        discovery, sampler, push = self._discovery, self._sampler, self._push
        return OwnHealth(
            discoveries=() if discovery is None else (*discovery.health.values(),),
            sampling=None if sampler is None else sampler.sampling,
            push=None if push is None else push.counts.health,
            reload=None if self._reloader is None else self._reloader.health,
            restarts=dict(self._background.restarts),
            process={sample.name: sample.value for metric in self._process.collect() for sample in metric.samples},
        )

    async def _first_collection(self) -> None:
        try:
            snapshot = await self.snapshot()
        except Exception:
            log.exception("the first collection failed")
            return
        for finding in diagnose(snapshot):
            # errors were logged when they arose
            if finding.severity is FindingSeverity.WARNING:
                log.warning(finding.text, advice=finding.advice)
        log.info("ready", entities=len(snapshot.measured), nodes=len(snapshot.nodes))
        await self._handlers.pages.note()  # episodes are known from now on, and logged

    async def _end(self) -> None:
        await _close_part("server", self._server.close)
        if self._push is not None:
            await _close_part("push", self._push.close)
        await self._background.close()
        await _close_part("collection", self.collection.close)
        if self._discovery is not None:
            await _close_part("discovery", self._discovery.close)
        if self.parts.limits is not None:
            await _close_part("limits", self.parts.limits.close)


def _sampled(config: Config) -> bool:
    return config.collection.sample_every_seconds is not None


async def _close_part(what: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close one part; a failure is no reason to keep it, or to leave others open."""
    try:
        await close()
    except Exception:
        log.exception("a part of the exporter could not be closed", part=what)
