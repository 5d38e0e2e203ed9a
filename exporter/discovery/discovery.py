"""Looks for nodes again and again, and keeps the roster of sources up to date."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from quotascope.clients.quota_admin import QuotaAdmin

from ..config import AUTO, Config, FoundSourceConfig, KafkaConfig, SourceConfig
from ..errors import ConfigError, DiscoveryError
from ..limits.admin import read_timeout
from ..logs import FailureLog
from ..snapshot import DiscoveryHealth
from .build import build_source, build_sources
from .files import FileFinder
from .kafka import KafkaFinder
from .ports import PortSearch
from .prometheus import PrometheusFinder
from .roster import Roster
from .target import Finder, FoundNodes, NodeTarget, confirmed_ids, merged, source_of

log = structlog.get_logger()

OpenAdmin = Callable[[KafkaConfig], QuotaAdmin]
"""Opens the Admin API, which connects with its first call."""


class Discovery:
    """
    Runs finders side by side.

    After a finder failed, the nodes that it found last are kept; the log has when failures begin and when they end.

    Args:
        finders: Ways of finding nodes; of two that name the same address the first counts.
        fixed: The configured sources, which are not to be found again.
        common: Settings that all found sources share.
        roster: The roster that is kept up to date.
        timeout_seconds: Longest look of one finder.
        clock: Unix time in seconds.

    """

    def __init__(
        self,
        finders: Sequence[Finder],
        fixed: Sequence[SourceConfig],
        common: FoundSourceConfig,
        roster: Roster,
        timeout_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._finders = tuple(finders)
        self._fixed = fixed
        self._common = common
        self._roster = roster
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self.found_nodes: dict[str, FoundNodes] = {}
        """The last result of each finder, by its name."""
        self.health = {finder.name: DiscoveryHealth(name=finder.name) for finder in self._finders}
        """The state of each finder, by its name."""
        self.failures = {name: FailureLog("discovery fails") for name in self.health}
        """The log of failures of each finder, by its name."""
        self._updating = asyncio.Lock()
        roster.settled.clear()
        self._settle()

    async def run(self, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Look until canceled."""

        async def repeat(finder: Finder) -> None:
            while True:
                await self._refresh(finder)
                await pause(finder.interval_seconds)

        async with asyncio.TaskGroup() as tasks:
            for finder in self._finders:
                tasks.create_task(repeat(finder))

    async def refresh(self) -> None:
        """Look once. A failure is remembered in ``health``, not raised."""
        await asyncio.gather(*map(self._refresh, self._finders))

    def continue_counts(self, errors: Mapping[str, int]) -> None:
        """Continue the error counts of earlier finders; ``errors`` has them by the name of the finder."""
        for name in self.health.keys() & errors.keys():
            self.health[name] = replace(self.health[name], errors_total=errors[name])

    def resume(self, predecessor: Discovery) -> None:
        """
        Take over from another discovery of the same roster that has ended.

        Nodes that a finder of the other discovery found stay until the finder of the same name has looked.
        """
        for name in self.health.keys() & predecessor.health.keys():
            self.health[name], self.failures[name] = predecessor.health[name], predecessor.failures[name]
            if name in predecessor.found_nodes:
                self.found_nodes[name] = predecessor.found_nodes[name]

    async def change(self, fixed: Sequence[SourceConfig], common: FoundSourceConfig, *, renew: bool) -> None:
        """
        Read the found nodes with other settings, or beside other configured sources.

        ``renew`` makes all their sources again. When one of them cannot be made, the present ones stay until the next
        look.
        """
        async with self._updating:
            self._fixed, self._common = fixed, common
            try:
                await self._update_roster(self.found_nodes, renew=renew)
            except ConfigError as error:
                log.warning("found sources cannot be made", error=str(error))

    async def close(self) -> None:
        """Release the finders' connections; the roster is its owner's to close."""
        for finder in self._finders:
            await finder.close()

    async def _refresh(self, finder: Finder) -> None:
        """Let a finder look once, and the roster read what it finds; note the failure instead, if there is one."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                nodes = await finder.find()
            async with self._updating:
                nodes_by_finder = {**self.found_nodes, finder.name: nodes}
                await self._update_roster(nodes_by_finder, renew=False)
                self.found_nodes = nodes_by_finder
            self._succeeded(finder.name, nodes)
        except TimeoutError:
            self._failed(finder, f"no answer within {self._timeout_seconds:g} seconds")
        except (ConfigError, DiscoveryError) as error:
            self._failed(finder, str(error))
        except Exception as error:
            log.debug("a discovery failed unexpectedly", exc_info=True)
            self._failed(finder, f"unexpected {type(error).__name__}: {error}")
        self._settle()

    async def _update_roster(self, nodes_by_finder: Mapping[str, FoundNodes], *, renew: bool) -> None:
        """Let the roster read the nodes that the finders found. Raises ``ConfigError``."""
        nodes = [nodes_by_finder[finder.name] for finder in self._finders if finder.name in nodes_by_finder]
        targets = [target for nodes_of_finder in nodes for target in nodes_of_finder.targets]
        sources = [source for nodes_of_finder in nodes for source in nodes_of_finder.sources]
        await self._roster.replace_found(
            [*merged(self._fixed, targets, self._common), *sources],
            renew=renew,
            confirmed=confirmed_ids(self._fixed, targets),
        )

    def _succeeded(self, name: str, nodes: FoundNodes) -> None:
        """Note the result of a finder; a problem with some of the nodes counts as an error."""
        health = self.health[name]
        self.failures[name].works()
        if nodes.problem is not None and nodes.problem != health.error:
            log.warning("not everything was found", discovery=name, error=nodes.problem)
        elif nodes.problem is None and health.error is not None:
            log.info("discovery works again", discovery=name)
        self.health[name] = replace(
            health,
            targets=len(nodes.targets) + len(nodes.sources),
            error=nodes.problem,
            errors_total=health.errors_total + (nodes.problem is not None),
            found_at=self._clock(),
        )

    def _failed(self, finder: Finder, error: str) -> None:
        """Note the failure of a finder, and log it if it is a new one."""
        health = self.health[finder.name]
        self.failures[finder.name].fails(error, discovery=finder.name, last_ones_kept=health.targets)
        self.health[finder.name] = replace(health, error=error, errors_total=health.errors_total + 1)

    def _settle(self) -> None:
        """Let the first collection begin once every finder has looked."""
        if all(health.found_at or health.error for health in self.health.values()):
            self._roster.settled.set()


def build_roster(config: Config, open_admin: OpenAdmin) -> tuple[Roster, Discovery | None]:
    """
    Return the sources, and the discovery that finds more of them where one is configured.

    Raises ``ConfigError`` and what ``open_admin`` raises.
    """
    roster = Roster(build_sources(config.agents))
    check_found_sources(config)
    return roster, discovery_of(config, build_finders(config, open_admin), roster)


def build_finders(config: Config, open_admin: OpenAdmin) -> tuple[Finder, ...]:
    """Return the finders of a configuration. Raises as ``build_roster``."""
    finders: list[Finder] = []
    cluster, files = config.discovery.kafka, config.discovery.file_sd
    if cluster is not None and config.kafka is not None:
        search = None
        if cluster.url == AUTO:
            search = PortSearch(config.discovery.source, build_source)
        finders.append(KafkaFinder(cluster, open_admin(config.kafka), search=search))
    if files is not None:
        finders.append(FileFinder(files))
    kafka = config.kafka
    finders += [
        PrometheusFinder(server, None if kafka is None else partial(open_admin, kafka))
        for server in config.prometheus_servers
    ]
    return tuple(finders)


def discovery_of(config: Config, finders: Sequence[Finder], roster: Roster) -> Discovery | None:
    """Return the discovery that lets the roster follow these finders, if there are any."""
    if not finders:
        return None
    timeout = read_timeout(config.kafka) if config.kafka else 60.0
    common = config.discovery.source
    return Discovery(finders, config.agents, common, roster, timeout)


def check_found_sources(config: Config) -> None:
    """Raise ``ConfigError`` when sources cannot be made of found nodes, before a node is found."""
    if not config.discovery.wanted:
        return
    example = NodeTarget(url="https://node.invalid/", name="discovery.source")
    try:
        build_source(source_of(example, config.discovery.source))
    except ConfigError as error:
        raise ConfigError("discovery.source", error.problems) from None
