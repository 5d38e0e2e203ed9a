"""The exporter at work: limits refreshed in the background, collections on demand, HTTP in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import structlog

from .background import Background
from .cardinality import Cardinality
from .collection import Collection, Sampler
from .config import Config
from .config.loaded import Loaded
from .diagnosis import Severity, diagnose
from .discovery import Discovery, Roster
from .discovery.build import discovery_of
from .http import Handlers
from .limits import LimitsSource
from .limits.build import read_timeout
from .limits.refresh import LimitsRefresh
from .otlp import Push
from .parts import Parts
from .snapshot import PushHealth, Snapshot
from .sources.source import Source
from .web import Front

log = structlog.get_logger()


class Exporter:
    """
    Everything between the sources and Prometheus.

    ``async with`` starts it and ends it; it owns the sources, the limits source, the discovery and the push, and
    closes them. ``refresh_seconds`` is the pause between two reads of the limits,
    ``limits_timeout_seconds`` the longest one of them; ``runbooks`` are served as they are given, Markdown by the name of the
    alert. Raises ``ConfigError`` when the web config file cannot be used.
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
        runbooks: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self.parts = Parts(loaded=Loaded(config=config))
        """What ``switch`` compares with."""
        self._limits_source = limits
        self._discovery = discovery
        self._push = push
        self._refresh_seconds = refresh_seconds
        self._roster = sources if isinstance(sources, Roster) else Roster(sources)
        self._refresh = LimitsRefresh(limits, limits_timeout_seconds)
        self._cardinality = Cardinality(config.cardinality, maxima=_sampled(config))
        self.collection = Collection(
            self._roster,
            self._refresh,
            config.collection.max_age_seconds,
            cardinality=self._cardinality,
            patience_seconds=config.collection.timeout_seconds,
        )
        self.collection.push_health = self._push_health
        self._handlers = Handlers(
            self.collection, config.collection, config.cluster, runbooks=runbooks
        )
        self._background = Background()
        self._front = Front(config.server)
        self.url = ""
        """Where it answers, once started; the address of this machine when it listens on all."""

    async def __aenter__(self) -> Self:
        try:
            await self._listen()
        except BaseException:
            await self._end()
            raise
        self._begin_discovery()
        self._begin_limits()
        self._background.start("first collection", self._first_collection())
        self._background.start("trails", self._handlers.pages.follow())
        self._begin_samples()
        self._begin_push()
        return self

    async def switch(self, parts: Parts) -> None:
        """
        Go on as another configuration says, but for ``server``, while requests are answered.

        Parts that are the same objects as before are not disturbed; the others are closed. To be called once
        it was started, and again only when it has returned.
        """
        before, self._config = self._config, parts.config
        await self._roster.fix(parts.sources)
        await self._switch_discovery(parts)
        await self._switch_limits(parts)
        self._cardinality.configure(
            parts.config.cardinality, maxima=_sampled(parts.config)
        )
        collection = parts.config.collection
        self.collection.configure(
            collection.max_age_seconds, collection.timeout_seconds
        )
        self._handlers.configure(collection, parts.config.cluster)
        if collection != before.collection:
            await self._background.stop("samples")
            self._begin_samples()
        await self._switch_push(parts.push)
        self.parts = parts

    async def _switch_discovery(self, parts: Parts) -> None:
        config, before = parts.config, self._discovery
        if parts.finders is self.parts.finders:
            if before is not None:
                common = config.discovery.source
                await before.change(config.sources, common, renew=parts.renew)
            return
        await self._background.stop("discovery")
        await self._follow(parts)
        self._begin_discovery()
        if before is not None:
            await before.close()

    async def _follow(self, parts: Parts) -> None:
        """Have the sources of other finders; what those before have found stays until these have looked."""
        before, self._discovery = self._discovery, None
        if not parts.finders:
            self._roster.discoveries = ()
            await self._roster.follow(())
            return
        self._discovery = discovery_of(parts.config, parts.finders, self._roster)
        if before is None:
            self._roster.settle()
            return
        self._discovery.resume(before)
        common = parts.config.discovery.source
        await self._discovery.change(parts.config.sources, common, renew=parts.renew)

    async def _switch_limits(self, parts: Parts) -> None:
        kafka, before = parts.config.kafka, self._limits_source
        if kafka is not None:
            self._refresh_seconds = kafka.refresh_interval_seconds
            self._refresh.interval_seconds = kafka.refresh_interval_seconds
        if parts.limits is before:
            return
        await self._background.stop("limits")
        self._refresh.ask(parts.limits, read_timeout(kafka) if kafka else 0.0)
        self._limits_source = parts.limits
        self._begin_limits()
        if before is not None:
            await before.close()

    async def _switch_push(self, push: Push | None) -> None:
        before = self._push
        if push is before:
            return
        if before is not None:
            await before.close()
        if push is not None and before is not None:
            push.resume(before)
        self._push = push
        self._begin_push()

    def _begin_discovery(self) -> None:
        if self._discovery is not None:
            self._background.start("discovery", self._discovery.run())

    def _begin_limits(self) -> None:
        if self._limits_source is not None:
            work = self._refresh.run(self._refresh_seconds)
            self._background.start("limits", work)

    def _begin_samples(self) -> None:
        collection = self._config.collection
        if collection.sample_every_seconds is None:
            self.collection.sampling = None
            return
        sampler = Sampler(
            self.collection,
            collection.sample_every_seconds,
            collection.timeout_seconds,
        )
        self._background.start("samples", sampler.run())

    def _begin_push(self) -> None:
        if self._push is not None:
            self._push.start(self.url, lambda: self._snapshot_for("otlp"))

    def _push_health(self) -> PushHealth | None:
        return None if self._push is None else self._push.health

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def snapshot(self) -> Snapshot:
        """The state of the cluster now, as a scrape would see it."""
        return await self.collection.snapshot(self._config.collection.timeout_seconds)

    async def _snapshot_for(self, scraper: str) -> Snapshot:
        timeout = self._config.collection.timeout_seconds
        return await self.collection.snapshot(timeout, scraper)

    async def _listen(self) -> None:
        grace = self._config.collection.timeout_seconds + 1
        self.url = await self._front.open(self._handlers.app(), grace)

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
        await self._front.close()
        if self._push is not None:
            await self._push.close()
        await self._background.close()
        await self.collection.close()
        if self._discovery is not None:
            await self._discovery.close()
        if self._limits_source is not None:
            await self._limits_source.close()


def exporter_of(parts: Parts, runbooks: Mapping[str, str] | None = None) -> Exporter:
    """The exporter of these parts, which serves these runbooks; not started yet."""
    config, kafka = parts.config, parts.config.kafka
    roster = Roster(parts.sources)
    discovery = discovery_of(config, parts.finders, roster) if parts.finders else None
    exporter = Exporter(
        config,
        roster,
        parts.limits,
        discovery=discovery,
        push=parts.push,
        refresh_seconds=kafka.refresh_interval_seconds if kafka else 30.0,
        limits_timeout_seconds=read_timeout(kafka) if kafka else 30.0,
        runbooks=runbooks,
    )
    exporter.parts = parts
    return exporter


def _sampled(config: Config) -> bool:
    return config.collection.sample_every_seconds is not None
