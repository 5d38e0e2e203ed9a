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
from ..snapshot import SourceRead
from ..sources.source import Source
from .build import build_source
from .target import FoundSource

EXAMINE_SECONDS: Final = 60.0
"""Interval at which a stand-by is read although the source in use answers."""
_GOOD_READS: Final = 3
"""Good reads in a row that give a node back to the source that had failed."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Candidate:
    """A source that has answered for a node."""

    node_id: str
    last_read: SourceRead
    """The outcome of its last read, without its table."""
    examined_at: float | None
    """The time of that read in steady seconds; None for a read that is due anyway, since other sources came or went."""
    probation: int = 0
    """Good reads that it needs before it takes a node from a source that works."""


class Roster:
    """
    Keeps the sources that are configured or found, and closes removed ones.

    A source that stays keeps its object, and with it its connection and all that it has learned of names. A source that
    is removed while it is read is closed when no collection reads.

    Several sources may answer for one node. One of them is in use, and the others stand by. Configured sources come
    before found ones; among either, sources with an id that the configuration or a discovery confirms come before the
    others, and then the order in which they first answered for the node decides. While the source in use fails, all
    that stand by for its node are read, and the first that answers is in use; the one before gets the node back after
    three good reads in a row.

    Args:
        fixed: Configured sources, which stay whatever is found.
        build: Function that makes a source; raises ``ConfigError``.
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
        """The found sources by name."""
        self._configs: dict[str, SourceConfig | FoundSource] = {}
        """The configurations of the found sources, by the same names."""
        self._clock = clock
        self._confirmed: Mapping[str, str] = {}
        """Node ids that a discovery confirms, by the name of a fixed source."""
        self._candidates: dict[str, _Candidate] = {}
        """Candidates by the name of the source, in the order in which they first answered for their nodes."""
        self._in_use: dict[str, str] = {}
        """The name of the source by its node."""
        self._failing: set[str] = set()
        """Sources that failed in their last read."""
        self._removed: list[Source] = []
        """Sources to be closed when no collection reads."""
        self._readers = 0
        self.settled = asyncio.Event()
        """Set once the first discovery is over, or when there is none; readers wait for it."""
        self.settled.set()

    @property
    def found_configs(self) -> tuple[SourceConfig, ...]:
        """The configurations of the found sources that have one."""
        return tuple(config for config in self._configs.values() if isinstance(config, SourceConfig))

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources to read now; a source that stands by is only among them when it is due."""
        return (*self._fixed, *filter(self._is_due, self._found.values()))

    @property
    def all(self) -> tuple[Source, ...]:
        """All named sources, also sources that are not due."""
        return (*self._fixed, *self._found.values())

    async def replace_fixed(self, fixed: Iterable[Source]) -> None:
        """Replace the fixed sources, and close the sources that are no longer used."""
        previous, self._fixed = self._fixed, tuple(fixed)
        _log_changes({s.name for s in previous}, {s.name for s in self._fixed})
        kept_ids = set(map(id, self._fixed))
        removed = [source for source in previous if id(source) not in kept_ids]
        await self._dismiss(removed)

    async def replace_found(
        self,
        configs: Iterable[SourceConfig | FoundSource],
        *,
        renew: bool = False,
        confirmed: Mapping[str, str] | None = None,
    ) -> None:
        """
        Replace the found sources, and close the sources that are no longer used.

        Raises ``ConfigError`` when a source cannot be made; then all is as before.

        Args:
            configs: The found sources. One whose configuration is the same as before keeps its object.
            renew: Whether sources with a configuration of their own are made again although it is the same.
            confirmed: Node ids that a discovery has for addresses of fixed sources, by the name of the source.

        """
        configs_by_name: dict[str, SourceConfig | FoundSource] = {}
        sources_by_name: dict[str, Source] = {}
        for config in configs:
            name = config.label
            is_unchanged = self._configs.get(name) == config and not (renew and isinstance(config, SourceConfig))
            configs_by_name[name] = config
            if is_unchanged:
                sources_by_name[name] = self._found[name]
            else:
                sources_by_name[name] = self._build(config) if isinstance(config, SourceConfig) else config.open()
        self._confirmed = confirmed or {}
        previous, self._found, self._configs = self._found, sources_by_name, configs_by_name
        kept_ids = set(map(id, sources_by_name.values()))
        _log_changes(previous.keys(), sources_by_name.keys())
        removed = [source for source in previous.values() if id(source) not in kept_ids]
        if removed or sources_by_name.keys() != previous.keys():
            for candidate in self._candidates.values():
                candidate.examined_at = None
        await self._dismiss(removed)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Sequence[Source]]:
        """Yield the sources. None of them is closed until the end of the ``with`` block."""
        self._readers += 1
        try:
            yield self.sources
        finally:
            self._readers -= 1
            if self._removed:
                await self._close_removed()

    def record(self, reads: Iterable[SourceRead]) -> None:
        """
        Record the outcomes of a collection, which may put other sources in use.

        Reads of sources that were removed meanwhile are ignored. A read that is pending is no outcome yet.
        """
        now_seconds = self._clock()
        named = set(map(attrgetter("name"), self.all))
        current_reads: list[SourceRead] = []
        for source_read in reads:
            if source_read.health.name not in named:
                continue
            current_reads.append(source_read)
            if not source_read.health.pending:
                self._record_outcome(source_read, now_seconds)
        for node_id, name in self._sources_to_use(current_reads).items():
            name_before = self._in_use.get(node_id)
            self._in_use[node_id] = name
            if name_before not in {None, name}:  # the counts may have changed with the source
                log.warning("node is read through another source", node=node_id, source=name, before=name_before)
        for node_id, name in [*self._in_use.items()]:
            candidate = self._candidates.get(name)
            if candidate is None or candidate.node_id != node_id:
                # the source answers for another node now; one that does so in each read would fill the memory
                del self._in_use[node_id]

    def _record_outcome(self, source_read: SourceRead, now_seconds: float) -> None:
        """Record whether the read of a source was good, and the node that the source answers for."""
        name, table = source_read.health.name, source_read.table
        good = table is not None and not source_read.health.late and not source_read.health.stale
        candidate = self._candidates.get(name)
        if table is not None and (candidate is None or candidate.node_id != table.node_id):
            self._candidates.pop(name, None)  # the source is the last that has answered for its new node
            last_read = replace(source_read, table=None)
            candidate = self._candidates[name] = _Candidate(table.node_id, last_read, now_seconds)
        if candidate is not None:
            candidate.probation = max(0, candidate.probation - 1) if good else _GOOD_READS
            candidate.last_read = replace(source_read, table=None)
            candidate.examined_at = now_seconds
        if good:
            self._failing.discard(name)
        else:
            self._failing.add(name)

    def one_table_per_node(self, reads: Iterable[SourceRead]) -> list[SourceRead]:
        """
        Return the reads with the table of one source for each node.

        A source that stands by has a read without its table; if it was not due, its last one. A configured source that
        answers for the node of another configured one is a mistake, and has an error.
        """
        # a source that discovery finds may have the name of a configured one, which comes first and counts
        by_name: dict[str, SourceRead] = {}
        for source_read in reads:
            by_name.setdefault(source_read.health.name, source_read)
        all_reads = list(by_name.values())
        in_use = self._sources_to_use(all_reads)
        exposed_reads: list[SourceRead] = []
        read_now: set[str] = set()
        for source_read in all_reads:
            name, table = source_read.health.name, source_read.table
            read_now.add(name)
            if table is None or in_use[table.node_id] == name:
                exposed_reads.append(source_read)
            elif name in self._found or in_use[table.node_id] in self._found:
                exposed_reads.append(_standing_by(source_read, table.node_id))
            else:
                error = (
                    f"reads node {table.node_id}, which source {in_use[table.node_id]} reads already: "
                    "configure each node once, check url, and set node_id to say which of them it is"
                )
                health = replace(source_read.health, up=False, error=error)
                exposed_reads.append(SourceRead(health=health, table=None))
        for name, candidate in self._candidates.items():
            if name not in read_now and name in self._found:
                exposed_reads.append(_standing_by(candidate.last_read, candidate.node_id))
        return exposed_reads

    def _sources_to_use(self, reads: Iterable[SourceRead]) -> dict[str, str]:
        """Return the names of the sources to be in use, by node; late and stale ones only for nodes without others."""
        in_time: dict[str, list[str]] = {}
        late: dict[str, list[str]] = {}
        for source_read in reads:
            if source_read.table is not None:
                rivals = late if source_read.health.late or source_read.health.stale else in_time
                rivals.setdefault(source_read.table.node_id, []).append(source_read.health.name)
        return {
            node_id: names[0] if len(names) == 1 else self._choose(node_id, names)
            for node_id, names in (late | in_time).items()  # of a node in both, the names of in_time count
        }

    def _choose(self, node_id: str, names: list[str]) -> str:
        """Return the source to be in use: the present one, unless a better one is ready to take its place."""
        names = sorted(names, key=lambda name: self._rank(name, node_id))
        name_in_use = self._in_use.get(node_id)
        if name_in_use not in names:
            return names[0]
        better_names = names[: names.index(name_in_use)]
        for name in better_names:
            candidate = self._candidates.get(name)
            if candidate is None or candidate.probation == 0:
                return name
        return name_in_use

    def _rank(self, name: str, node_id: str) -> tuple[bool, bool, int]:
        """Return the rank of a source among the sources that answer for a node; the lowest one is in use."""
        candidate = self._candidates.get(name)
        has_answered = candidate is not None and candidate.node_id == node_id
        order = list(self._candidates).index(name) if has_answered else len(self._candidates)
        is_found = name in self._found
        confirmed_id = self._confirmed.get(name)
        ids = (source.node_id or confirmed_id for source in self.all if source.name == name)
        is_unconfirmed = next(ids, None) != node_id
        return is_found, is_unconfirmed, order

    def _is_due(self, source: Source) -> bool:
        """Return whether a found source is to be read: it is in use, may come into use, or was last read long ago."""
        name = source.name
        candidate = self._candidates.get(name)
        if candidate is None or candidate.examined_at is None:
            return True
        name_in_use = self._in_use.get(candidate.node_id)
        return (
            name_in_use is None
            or name_in_use == name
            or name_in_use in self._failing
            or self._rank(name, candidate.node_id) < self._rank(name_in_use, candidate.node_id)
            or self._clock() - candidate.examined_at >= EXAMINE_SECONDS
        )

    async def _dismiss(self, removed: Sequence[Source]) -> None:
        """Forget these sources, and close them once no collection reads."""
        names = {source.name for source in removed}
        for name in names:
            self._candidates.pop(name, None)
        self._failing -= names
        self._in_use = {node_id: name for node_id, name in self._in_use.items() if name not in names}
        self._removed += removed
        await self._close_removed()

    async def _close_removed(self) -> None:
        """Close the removed sources, unless a collection reads."""
        while self._removed and self._readers == 0:
            await _close(self._removed.pop(0))

    async def close(self) -> None:
        """Close every source."""
        removed, self._removed = self._removed, []
        for source in (*self.all, *removed):
            await _close(source)


async def _close(source: Source) -> None:
    """Release a source; log a failure, which must not leave others open."""
    try:
        await source.close()
    except Exception:
        log.exception("a source could not be closed", source=source.name)


def _standing_by(source_read: SourceRead, node_id: str) -> SourceRead:
    """Return a read as that of a stand-by of a node: without its table."""
    return replace(source_read, health=replace(source_read.health, stand_by_of=node_id), table=None)


def _log_changes(old_names: AbstractSet[str], new_names: AbstractSet[str]) -> None:
    """Log the names of the sources that are new, and of those that are gone."""
    for name in sorted(new_names - old_names):
        log.info("source found", source=name)
    for name in sorted(old_names - new_names):
        log.info("source is gone", source=name)
