"""The exporter at work: limits refreshed in the background, collections on demand, HTTP in front."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, Self

import structlog

from .background import Background
from .cardinality import Cardinality
from .collection import Collection, Sampler
from .config import Config
from .config.loaded import Loaded
from .diagnosis import FindingSeverity, diagnose
from .discovery import Discovery, Roster
from .discovery.build import discovery_of
from .http import Handlers
from .limits import LimitsSource
from .limits.build import read_timeout
from .limits.refresh import LimitsRefresh
from .otlp import OtlpPush
from .parts import Parts
from .snapshot import OwnHealth, ReloadHealth, Snapshot
from .sources.source import Source
from .web import HttpServer

log = structlog.get_logger()


class Reloads(Protocol):
    """What reads the configuration again."""

    @property
    def health(self) -> ReloadHealth:
        """How the last attempt went."""
        ...


class Exporter:
    """
    Everything between the sources and Prometheus.

    ``async with`` starts it and ends it; it owns the sources, the limits source, the discovery and the push, and
    closes them. ``refresh_seconds`` is the pause between two reads of the limits,
    ``limits_timeout_seconds`` how long one of them may take; ``runbooks`` are served as they are given, Markdown by the name of the
    alert; ``reloads`` reads the configuration again, where that can be done. Raises ``ConfigError`` when the web config file cannot be used.
    """

    def __init__(  # noqa: PLR0913 - what it puts together
        self,
        config: Config,
        sources: Sequence[Source] | Roster,
        limits: LimitsSource | None,
        *,
        discovery: Discovery | None = None,
        push: OtlpPush | None = None,
        refresh_seconds: float = 30.0,
        limits_timeout_seconds: float = 30.0,
        runbooks: Mapping[str, str] | None = None,
        reloads: Reloads | None = None,
    ) -> None:
        self._config = config
        self.parts = Parts(loaded=Loaded(config=config))
        """What ``switch`` compares with."""
        self._limits_source = limits
        self._discovery = discovery
        self._push = push
        self._reloads = reloads
        self._sampler: Sampler | None = None
        self._background = Background()
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
            own=self._own_health,
            window_seconds=config.collection.sample_window_seconds,
        )
        self._handlers = Handlers(
            self.collection, config.collection, config.cluster, runbooks=runbooks
        )
        self._server = HttpServer(config.server)
        self.url = ""
        """Where it answers, once started; the address of this machine when it listens on all."""

    async def __aenter__(self) -> Self:
        # requests that wait for a collection when the end comes are answered
        grace = self._config.collection.timeout_seconds + 1
        try:
            self.url = await self._server.open(self._handlers.app(), grace)
        except BaseException:
            await self._end()
            raise
        self._begin_discovery()
        self._begin_limits()
        self._background.start("first collection", self._first_collection)
        self._background.start("trails", self._handlers.pages.follow, lasting=True)
        self._begin_samples()
        self._begin_push()
        return self

    async def switch(self, parts: Parts) -> None:
        """
        Go on as another configuration says, but for ``server``, while requests are answered.

        Parts that are the same objects as before are not disturbed; the others are closed at the end, when nothing uses
        them any more. What cannot be made is raised before anything has changed; what cannot be closed is logged. To be
        called once it was started, and again only when it has returned.
        """
        before, config = self.parts, parts.config
        finders_changed = parts.finders is not before.finders
        if parts.push is not None and parts.push is not self._push:
            parts.push.open(self.url)
        discovery = self._discovery
        if (
            finders_changed
        ):  # last, for from here on collections wait for its first look
            discovery = (
                discovery_of(config, parts.finders, self._roster)
                if parts.finders
                else None
            )

        self._config, self.parts = config, parts
        gone: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        await self._roster.fix(parts.sources)
        if finders_changed and self._discovery is not None:
            gone.append(("discovery", self._discovery.close))
        await self._switch_discovery(discovery, parts)
        limits = self._limits_source
        if limits is not None and limits is not parts.limits:
            gone.append(("limits", limits.close))
        await self._switch_limits(parts)
        self._cardinality.configure(config.cardinality, maxima=_sampled(config))
        collection = config.collection
        self.collection.configure(
            collection.max_age_seconds,
            collection.timeout_seconds,
            collection.sample_window_seconds,
        )
        self._handlers.configure(collection, config.cluster)
        if collection != before.config.collection:
            await self._background.stop("samples")
            self._begin_samples()
        await self._switch_push(parts.push)
        for what, close in gone:
            await _close_part(what, close)

    async def _switch_discovery(self, now: Discovery | None, parts: Parts) -> None:
        """Read what was found before until the new finders have looked."""
        config, before = parts.config, self._discovery
        common = config.discovery.source
        if now is before:
            if now is not None:
                await now.change(config.sources, common, renew=parts.renew)
            return
        await self._background.stop("discovery")
        self._discovery = now
        if now is None:
            await self._roster.follow(())
            return
        if before is None:
            self._roster.settled.set()
        else:
            now.resume(before)
            await now.change(config.sources, common, renew=parts.renew)
        self._begin_discovery()

    async def _switch_limits(self, parts: Parts) -> None:
        kafka = parts.config.kafka
        if kafka is not None:
            self._refresh_seconds = kafka.refresh_interval_seconds
            self._refresh.interval_seconds = kafka.refresh_interval_seconds
        if parts.limits is self._limits_source:
            return
        await self._background.stop("limits")
        self._refresh.ask(parts.limits, read_timeout(kafka) if kafka else 0.0)
        self._limits_source = parts.limits
        self._begin_limits()

    async def _switch_push(self, push: OtlpPush | None) -> None:
        """Let the old one send its last before the new one starts: they count on in one ledger."""
        before, self._push = self._push, push
        if push is before:
            return
        if before is not None:
            await _close_part("push", before.close)
        if push is not None and before is not None:
            push.resume(before)
        self._begin_push()

    def _begin_discovery(self) -> None:
        if self._discovery is not None:
            self._background.start("discovery", self._discovery.run, lasting=True)

    def _begin_limits(self) -> None:
        if self._limits_source is not None:
            work = partial(self._refresh.run, self._refresh_seconds)
            self._background.start("limits", work, lasting=True)

    def _begin_samples(self) -> None:
        collection = self._config.collection
        if collection.sample_every_seconds is None:
            self._sampler = None
            return
        self._sampler = Sampler(
            self.collection,
            collection.sample_every_seconds,
            collection.timeout_seconds,
            self._sampler.sampling if self._sampler else None,
        )
        self._background.start("samples", self._sampler.run, lasting=True)

    def _begin_push(self) -> None:
        if self._push is not None:
            self._push.start(self.url, self.snapshot)

    def _own_health(self) -> OwnHealth:
        discovery, sampler, push = self._discovery, self._sampler, self._push
        return OwnHealth(
            discoveries=() if discovery is None else (*discovery.health.values(),),
            sampling=None if sampler is None else sampler.sampling,
            push=None if push is None else push.health,
            reload=None if self._reloads is None else self._reloads.health,
            restarts=dict(self._background.restarts),
        )

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def snapshot(self) -> Snapshot:
        """The state of the cluster now, as a scrape would see it."""
        return await self.collection.snapshot(self._config.collection.timeout_seconds)

    async def _first_collection(self) -> None:
        try:
            snapshot = await self.snapshot()
        except Exception:
            log.exception("the first collection failed")
            return
        for finding in diagnose(snapshot):
            if (
                finding.severity is FindingSeverity.WARNING
            ):  # errors were logged when they arose
                log.warning(finding.text, advice=finding.advice)
        log.info("ready", entities=len(snapshot.measured), nodes=len(snapshot.nodes))

    async def _end(self) -> None:
        await _close_part("server", self._server.close)
        if self._push is not None:
            await _close_part("push", self._push.close)
        await self._background.close()
        await _close_part("collection", self.collection.close)
        if self._discovery is not None:
            await _close_part("discovery", self._discovery.close)
        if self._limits_source is not None:
            await _close_part("limits", self._limits_source.close)


async def _close_part(what: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close one part; a failure is no reason to keep it, or to leave others open."""
    try:
        await close()
    except Exception:
        log.exception("a part of the exporter could not be closed", part=what)


def exporter_of(
    parts: Parts,
    runbooks: Mapping[str, str] | None = None,
    reloads: Reloads | None = None,
) -> Exporter:
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
        reloads=reloads,
    )
    exporter.parts = parts
    return exporter


def _sampled(config: Config) -> bool:
    return config.collection.sample_every_seconds is not None
