"""The exporter at work: limits refreshed in the background, collections on demand, HTTP in front."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Self

import structlog
from prometheus_client import ProcessCollector

from ..background import Background
from ..cardinality import Cardinality
from ..collection import Collection, Sampler
from ..config import Config
from ..diagnosis.catalog import FindingSeverity
from ..diagnosis.findings import diagnose
from ..discovery import Discovery, Roster
from ..discovery.discovery import discovery_of
from ..http import Handlers
from ..limits.refresh import LimitsRefresh
from ..logs import LogWriter
from ..otlp import OtlpPush
from ..otlp.push import PushCounts
from ..shadow import Shadows
from ..snapshot import OwnHealth, Sampling, Snapshot
from ..web import HttpServer
from .files import FollowedFiles
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
        runbooks: Markdown by the name of the alert.
        summaries: Severity and summary by the name of the alert.
        reloader: Reads the configuration again, where that can be done.
        log: Writes the log, where that is done beside the event loop.

    """

    def __init__(
        self,
        parts: Parts,
        *,
        runbooks: Mapping[str, str] | None = None,
        summaries: Mapping[str, tuple[str, str]] | None = None,
        reloader: Reloader | None = None,
        log: LogWriter | None = None,
    ) -> None:
        config, collection = parts.config, parts.config.collection
        self.parts = parts
        """The parts in use."""
        self.url = ""
        """Its own address, once started; that of this machine when it listens on all."""
        self._reloader = reloader
        self._log = log
        self._background = Background()
        self._sampler: Sampler | None = None
        self._push: OtlpPush | None = None
        self._past_samples = Sampling()
        """The counts of samples until sampling last ended."""
        self._pushed: PushCounts | None = None
        """The counts of all pushes, also while there are none."""
        self._process = ProcessCollector(registry=None)
        self._roster = Roster(parts.sources)
        self._discovery = discovery_of(config, parts.finders, self._roster)
        self._past_discovery_errors: dict[str, int] = {}
        """Errors by name of a discovery, also while it is not configured: counters do not go back."""
        self._refresh = LimitsRefresh(*parts.limits_reading)
        self._cardinality = Cardinality(config.cardinality, maxima=_sampled(config))
        self.collection = Collection(
            self._roster,
            self._refresh,
            collection.max_age_seconds,
            cardinality=self._cardinality,
            patience_seconds=collection.timeout_seconds,
            own_health=self._own_health,
            window_seconds=collection.sample_window_seconds,
            shadows=self._shadows(),
            thresholds=parts.alert_terms.thresholds,
            teams=parts.alert_terms.teams,
            capacity=config.broker_capacity.by_type,
        )
        self._handlers = Handlers(self.collection, config, runbooks, summaries, terms=parts.alert_terms)
        self._server = HttpServer(config.server)
        self._files = FollowedFiles(self._server, reloader)

    async def __aenter__(self) -> Self:
        # requests that wait for a collection at the end are still answered
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
        self._background.start("files", partial(self._files.run, self), lasting=True)
        self._start_sampler()
        await self._swap_push()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def snapshot(self) -> Snapshot:
        """Return the state of the cluster now, as a scrape would see it."""
        timeout = self.parts.config.collection.timeout_seconds
        return await self.collection.snapshot(timeout)

    async def swap(self, parts: Parts) -> None:
        """
        Work with the parts of another configuration, except for ``server``, while requests are answered.

        Parts that are the same objects as before are left alone. The others hand over what discovery found and counted,
        the last limits and the counts of their changes, the counts of sampling, and the ledger of pushes. They are
        closed at the end, when nothing uses them any more. A part that cannot be built is raised before anything has
        changed; one that cannot be closed is logged. To be called once it was started, and again only when it has
        returned.
        """
        old_parts, discovery = self.parts, self._discovery
        if parts.push is not None and parts.push is not self._push:
            parts.push.open(self.url)
        if parts.finders is not old_parts.finders:
            # last, because from now on collections wait for its first look
            discovery = discovery_of(parts.config, parts.finders, self._roster)
        old_discovery, self.parts = self._discovery, parts
        await self._roster.replace_fixed(parts.sources)
        await self._swap_discovery(discovery)
        if parts.limits is not old_parts.limits:
            await self._background.stop("limits")
        self._refresh.read_from(*parts.limits_reading)
        if parts.limits is not old_parts.limits:
            self._start_limits()
        await self._swap_settings(old_parts.config)
        await self._swap_push()
        if old_discovery is not None and old_discovery is not discovery:
            await _close_part("discovery", old_discovery.close)
        if old_parts.limits is not None and old_parts.limits is not parts.limits:
            await _close_part("limits", old_parts.limits.close)

    async def _swap_discovery(self, new: Discovery | None) -> None:
        """Keep the nodes found before in use until the new finders have looked."""
        config, old = self.parts.config, self._discovery
        if new is not old:
            await self._background.stop("discovery")
            self._discovery = new
            self._roster.settled.set()  # the old discovery may have ended within its first look
            if old is not None:
                self._past_discovery_errors |= {health.name: health.errors_total for health in old.health.values()}
            if new is not None:
                new.continue_counts(self._past_discovery_errors)
            if new is None:
                await self._roster.replace_found(())
            elif old is not None:
                new.resume(old)
        if new is not None and old is not None:
            common = config.discovery.source
            await new.change(config.agents, common, renew=self.parts.renew)
        if new is not old:
            self._start_discovery()

    async def _swap_settings(self, old_config: Config) -> None:
        config, collection = self.parts.config, self.parts.config.collection
        self._cardinality.configure(config.cardinality, maxima=_sampled(config))
        self.collection.configure(
            collection.max_age_seconds,
            collection.timeout_seconds,
            collection.sample_window_seconds,
            self._shadows(),
            self.parts.alert_terms.thresholds,
            self.parts.alert_terms.teams,
            config.broker_capacity.by_type,
        )
        self._handlers.configure(config, self.parts.alert_terms)
        if collection != old_config.collection:
            await self._background.stop("samples")
            self._start_sampler()

    def _shadows(self) -> Shadows | None:
        if not self.parts.shadows:
            return None
        return Shadows(self.parts.shadows, self.parts.config.shadow.max_entities, self._cardinality.allows)

    async def _swap_push(self) -> None:
        """Let the old push send its last snapshot before the new one starts, since both count in one ledger."""
        old_push, push = self._push, self.parts.push
        if push is old_push:
            return
        if old_push is not None:
            await _close_part("push", old_push.close)
        if push is not None:
            if self._pushed is not None:
                push.resume(self._pushed)
            self._pushed = push.counts
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
        collection = self.parts.config.collection
        if self._sampler is not None:
            self._past_samples = self._sampler.sampling
        self._sampler = None
        if collection.sample_every_seconds is not None:
            self._sampler = Sampler(
                self.collection.snapshot,
                collection.sample_every_seconds,
                collection.timeout_seconds,
                self._past_samples,
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
            refused_requests=self._server.refused,
            certificate_ends={str(file): end for file, end in self._files.certificate_ends.items()},
            log_lines_dropped=None if self._log is None else self._log.dropped,
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
            elif finding.severity is FindingSeverity.NOTE:
                log.info(finding.text, advice=finding.advice)
        log.info("ready", entities=len(snapshot.measured), nodes=len(snapshot.nodes))
        await self._handlers.pages.note()  # episodes are known from now on, and logged

    async def _end(self) -> None:
        if self._reloader is not None:
            async with self._reloader.between:  # a switch that stops halfway would leave connections open
                await self._background.stop("files")
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
    """Close one part, and log an error: the other parts are closed all the same."""
    try:
        await close()
    except Exception:
        log.exception("a part of the exporter could not be closed", part=what)
