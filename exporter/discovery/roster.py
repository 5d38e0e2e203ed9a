"""The sources that are read now: those of the configuration, and those that were found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager

import structlog

from ..config import SourceConfig
from ..snapshot import DiscoveryHealth, SourceRead
from ..sources.build import build_source
from ..sources.source import Source

log = structlog.get_logger()


class Roster:
    """
    Keeps sources while they are named, and closes those that are not any more.

    A source that stays keeps its object, and with it its connection and all that it has learnt of names. One that
    goes while it is read is closed when nobody reads.

    Args:
        fixed: Sources that stay whatever is found, first in order.
        build: What makes a source; raises ``ConfigError``.

    """

    def __init__(
        self,
        fixed: Iterable[Source] = (),
        build: Callable[[SourceConfig], Source] = build_source,
    ) -> None:
        self._fixed = tuple(fixed)
        self._build = build
        self._found: dict[str, tuple[SourceConfig, Source]] = {}
        self._twins: dict[str, str] = {}
        self._gone: list[Source] = []
        self._readers = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self.discoveries: tuple[DiscoveryHealth, ...] = ()
        """How the discoveries go, empty without any."""

    @property
    def fixed(self) -> tuple[Source, ...]:
        """The sources of the configuration."""
        return self._fixed

    @property
    def found(self) -> tuple[SourceConfig, ...]:
        """How those that were found are read."""
        return tuple(config for config, _ in self._found.values())

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources to read, each node once as far as that is known."""
        found = [source for _, source in self._found.values()]
        named = {source.name for source in (*self._fixed, *found)}
        read = (s for s in found if self._twins.get(s.name) not in named)
        return (*self._fixed, *read)

    def expect(self) -> None:
        """Let readers wait until the first discovery is over."""
        self._settled.clear()

    def settle(self) -> None:
        """Let them go on."""
        self._settled.set()

    async def settled(self) -> None:
        """Wait until the first discovery is over, if there is one."""
        await self._settled.wait()

    async def fix(self, fixed: Iterable[Source]) -> None:
        """Have these sources as the fixed ones from now on; those that are no longer among them are closed."""
        before, self._fixed = self._fixed, tuple(fixed)
        _tell({s.name for s in before}, {s.name for s in self._fixed})
        kept = set(map(id, self._fixed))
        await self._dismiss([source for source in before if id(source) not in kept])

    async def follow(
        self, configs: Iterable[SourceConfig], *, renew: bool = False
    ) -> None:
        """
        Have these beside the fixed ones, and no others; with ``renew`` all of them are made anew.

        Raises ``ConfigError`` when one of them cannot be made; then all is as before.
        """
        found: dict[str, tuple[SourceConfig, Source]] = {}
        for config in configs:
            known = self._found.get(config.label)
            same = known is not None and known[0] == config and not renew
            source = known[1] if known and same else self._build(config)
            found[config.label] = config, source
        await self._replace(found)

    async def _replace(self, found: dict[str, tuple[SourceConfig, Source]]) -> None:
        before, self._found = self._found, found
        kept = {id(source) for _, source in found.values()}
        _tell(before.keys(), found.keys())
        gone = [source for _, source in before.values() if id(source) not in kept]
        if gone or found.keys() != before.keys():
            self._twins.clear()
        await self._dismiss(gone)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Sequence[Source]]:
        """The sources, none of which is closed for the length of the ``with`` block."""
        self._readers += 1
        try:
            yield self.sources
        finally:
            self._readers -= 1
            await self._close_those_gone()

    def once_each(self, reads: Iterable[SourceRead]) -> list[SourceRead]:
        """
        The reads without those of found sources that gave a node which another source gave before.

        Such a source is not read again until other sources are found. Two configured sources for a
        node are a mistake, which the join tells.
        """
        kept: list[SourceRead] = []
        first: dict[str, str] = {}
        for read in reads:
            name, table = read.health.name, read.table
            if table is not None:
                other = first.setdefault(table.node_id, name)
                if other != name and name in self._found:
                    self._note_twin(name, other, table.node_id)
                    continue
            kept.append(read)
        return kept

    def _note_twin(self, name: str, other: str, node_id: str) -> None:
        if self._twins.get(name) != other:
            self._twins[name] = other
            log.info("found twice", source=name, node=node_id, read_as=other)

    async def _dismiss(self, gone: Iterable[Source]) -> None:
        self._gone += gone
        await self._close_those_gone()

    async def _close_those_gone(self) -> None:
        while self._gone and self._readers == 0:
            await self._gone.pop(0).close()

    async def close(self) -> None:
        """Close every source."""
        found = [source for _, source in self._found.values()]
        gone, self._gone = self._gone, []
        for source in (*self._fixed, *found, *gone):
            await source.close()


def _tell(before: AbstractSet[str], now: AbstractSet[str]) -> None:
    for name in sorted(now - before):
        log.info("source found", source=name)
    for name in sorted(before - now):
        log.info("source is gone", source=name)
