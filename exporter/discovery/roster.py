"""The sources that are read now: those of the configuration, and those that were found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import structlog

from ..config import SourceConfig
from ..snapshot import SourceHealth, SourceRead
from ..sources.build import build_source
from ..sources.source import Source

EXAMINE_SECONDS: Final = 60.0
"""How often a stand-by is read although the source in use answers."""
_GOOD_READS: Final = 3
"""Good reads in a row that give a node back to the source that had failed."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Candidate:
    """A source that has answered for a node."""

    node_id: str
    health: SourceHealth
    """How its last read went."""
    examined_at: float | None
    """When that was, in steady seconds; None when it is to be read anyway, for other sources came or went."""
    probation: int = 0
    """Good reads that it needs before it takes a node from a source that works."""


class Roster:
    """
    Keeps sources while they are named, and closes those that are not any more.

    A source that stays keeps its object, and with it its connection and all that it has learned of names. One that
    goes while it is read is closed when no collection reads.

    Several sources may answer for one node. Of those the first is in use: configured sources before found ones, among either
    those with an id that the configuration or a discovery confirms, then those that answered for the node first. The others
    stand by. While the source in use fails, all that stand by for its node are read, and the first that answers is in use; the one
    before gets the node back after three good reads in a row.

    Args:
        fixed: Sources that stay whatever is found, first in order.
        build: What makes a source; raises ``ConfigError``.
        clock: A steady time in seconds.

    """

    def __init__(
        self,
        fixed: Iterable[Source] = (),
        build: Callable[[SourceConfig], Source] = build_source,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fixed = tuple(fixed)
        self._build = build
        self._found: dict[str, Source] = {}
        self._configs: dict[str, SourceConfig] = {}
        """How those that were found are read, by the same names."""
        self._clock = clock
        self._confirmed: Mapping[str, str] = {}
        self._candidates: dict[str, _Candidate] = {}
        """By the name of the source, in the order in which they were first seen to answer for their nodes."""
        self._in_use: dict[str, str] = {}
        """The name of the source by its node."""
        self._failing: set[str] = set()
        """Sources that failed in their last read."""
        self._gone: list[Source] = []
        self._readers = 0
        self.settled = asyncio.Event()
        """Set once the first discovery is over, or when there is none; readers wait for it."""
        self.settled.set()

    @property
    def found(self) -> tuple[SourceConfig, ...]:
        """How those that were found are read."""
        return tuple(self._configs.values())

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources to read now: those that stand by only when they are due."""
        return (*self._fixed, *filter(self._is_due, self._found.values()))

    @property
    def all(self) -> tuple[Source, ...]:
        """The sources that are named, to be read now or not."""
        return (*self._fixed, *self._found.values())

    async def fix(self, fixed: Iterable[Source]) -> None:
        """Have these sources as the fixed ones from now on; those that are no longer among them are closed."""
        before, self._fixed = self._fixed, tuple(fixed)
        _log_changes({s.name for s in before}, {s.name for s in self._fixed})
        kept = set(map(id, self._fixed))
        gone = [source for source in before if id(source) not in kept]
        await self._dismiss(gone)

    async def follow(
        self, configs: Iterable[SourceConfig], *, renew: bool = False, confirmed: Mapping[str, str] | None = None
    ) -> None:
        """
        Have these beside the fixed ones, and no others; with ``renew`` all of them are made again.

        ``confirmed`` holds what a discovery says of addresses of fixed sources: the node's id by the source's name.
        Raises ``ConfigError`` when one of them cannot be made; then all is as before.
        """
        wanted: dict[str, SourceConfig] = {}
        found: dict[str, Source] = {}
        for config in configs:
            name = config.label
            same = self._configs.get(name) == config and not renew
            wanted[name] = config
            found[name] = self._found[name] if same else self._build(config)
        self._confirmed = confirmed or {}
        before, self._found, self._configs = self._found, found, wanted
        kept = set(map(id, found.values()))
        _log_changes(before.keys(), found.keys())
        gone = [source for source in before.values() if id(source) not in kept]
        if gone or found.keys() != before.keys():
            for candidate in self._candidates.values():
                candidate.examined_at = None
        await self._dismiss(gone)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Sequence[Source]]:
        """The sources, none of which is closed for the length of the ``with`` block."""
        self._readers += 1
        try:
            yield self.sources
        finally:
            self._readers -= 1
            if self._gone:
                await self._close_those_gone()

    def note(self, reads: Iterable[SourceRead]) -> None:
        """
        Take in how the sources did in a collection that is over: it may put other ones in use.

        Reads of sources that went meanwhile are none of it any more, and one that may still answer in time says nothing yet.
        """
        now = self._clock()
        named = set(map(attrgetter("name"), self.all))
        given: list[SourceRead] = []
        for read in reads:
            name, table = read.health.name, read.table
            if name not in named:
                continue
            given.append(read)
            if read.health.pending:
                continue
            good = table is not None and not read.health.late
            known = self._candidates.get(name)
            if table is not None and (known is None or known.node_id != table.node_id):
                self._candidates.pop(name, None)
                known = self._candidates[name] = _Candidate(table.node_id, read.health, now)
            if known is not None:
                known.probation = max(0, known.probation - 1) if good else _GOOD_READS
                known.health = read.health
                known.examined_at = now
            (self._failing.discard if good else self._failing.add)(name)
        for node_id, name in self._chosen(given).items():
            before = self._in_use.get(node_id)
            self._in_use[node_id] = name
            if before not in {None, name}:  # the numbers may have changed with it
                log.warning("node is read through another source", node=node_id, source=name, before=before)
        for node_id, name in [*self._in_use.items()]:
            known = self._candidates.get(name)
            if known is None or known.node_id != node_id:
                # else one that says another id in each read would fill the memory
                del self._in_use[node_id]

    def once_each(self, reads: Iterable[SourceRead]) -> list[SourceRead]:
        """
        The reads with one table for each node at most, and how those that stand by did when they were last read.

        A configured source that answers for the node of another one is a mistake, and reported as its error.
        """
        given = list(reads)
        chosen = self._chosen(given)
        shown: list[SourceRead] = []
        read_now: set[str] = set()
        for read in given:
            name, table = read.health.name, read.table
            read_now.add(name)
            if table is None or chosen[table.node_id] == name:
                shown.append(read)
            elif not self._found.keys().isdisjoint({name, chosen[table.node_id]}):
                shown.append(_standing_by(read.health, table.node_id))
            else:
                error = (
                    f"reads node {table.node_id}, which source {chosen[table.node_id]} reads already: "
                    "configure each node once, check url, and set node_id to say which of them it is"
                )
                health = replace(read.health, up=False, error=error)
                shown.append(SourceRead(health=health, table=None))
        for name, each in self._candidates.items():
            if name not in read_now and name in self._found:
                shown.append(_standing_by(each.health, each.node_id))
        return shown

    def _chosen(self, reads: Iterable[SourceRead]) -> dict[str, str]:
        """The name of the source that is shown for each node."""
        in_time: dict[str, list[str]] = {}
        late: dict[str, list[str]] = {}
        for read in reads:
            if read.table is not None:
                rivals = late if read.health.late else in_time
                rivals.setdefault(read.table.node_id, []).append(read.health.name)
        chosen: dict[str, str] = {}
        for node_id, names in (late | in_time).items():
            chosen[node_id] = names[0] if len(names) == 1 else self._first(node_id, names)
        return chosen

    def _first(self, node_id: str, names: list[str]) -> str:
        """Which of these is to be in use: the one that is, unless a better one is ready to take its place."""
        names = sorted(names, key=lambda name: self._place(name, node_id))
        before = self._in_use.get(node_id)
        if before not in names:
            return names[0]
        for name in names[: names.index(before)]:
            known = self._candidates.get(name)
            if known is None or known.probation == 0:
                return name
        return before

    def _place(self, name: str, node_id: str) -> tuple[bool, bool, int]:
        """Where a source stands among those that answer for a node; the least is in use."""
        known = self._candidates.get(name)
        established = known is not None and known.node_id == node_id
        order = list(self._candidates).index(name) if established else len(self._candidates)
        confirmed = self._confirmed.get(name)
        ids = (each.node_id or confirmed for each in self.all if each.name == name)
        return name in self._found, next(ids, None) != node_id, order

    def _is_due(self, source: Source) -> bool:
        """Whether a found source is to be read: it is in use, may come into use, or was not looked at for long."""
        name = source.name
        known = self._candidates.get(name)
        if known is None or known.examined_at is None:
            return True
        used = self._in_use.get(known.node_id)
        return (
            used is None
            or used == name
            or used in self._failing
            or self._place(name, known.node_id) < self._place(used, known.node_id)
            or self._clock() - known.examined_at >= EXAMINE_SECONDS
        )

    async def _dismiss(self, gone: Sequence[Source]) -> None:
        """Forget what is known of these, and close them once no collection reads."""
        names = {source.name for source in gone}
        for name in names:
            self._candidates.pop(name, None)
        self._failing -= names
        self._in_use = {node_id: name for node_id, name in self._in_use.items() if name not in names}
        self._gone += gone
        await self._close_those_gone()

    async def _close_those_gone(self) -> None:
        while self._gone and self._readers == 0:
            await _close(self._gone.pop(0))

    async def close(self) -> None:
        """Close every source."""
        gone, self._gone = self._gone, []
        for source in (*self.all, *gone):
            await _close(source)


async def _close(source: Source) -> None:
    """Release a source; that it cannot be released is no reason to keep it, or to leave others open."""
    try:
        await source.close()
    except Exception:
        log.exception("a source could not be closed", source=source.name)


def _standing_by(health: SourceHealth, node_id: str) -> SourceRead:
    return SourceRead(health=replace(health, stand_by_of=node_id), table=None)


def _log_changes(before: AbstractSet[str], now: AbstractSet[str]) -> None:
    for name in sorted(now - before):
        log.info("source found", source=name)
    for name in sorted(before - now):
        log.info("source is gone", source=name)
