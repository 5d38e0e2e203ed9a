"""
Reads the nodes of a cluster through a Prometheus server: one query for all of them, a source for each.

A query for the present values has no times of samples, but leaves out at once what Prometheus knows to be gone. So a
second one asks for the times of one metric of each node: all samples of a scrape have its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ..errors import SourceError, SourceUnreachable, SourceUnreadable
from ..mapping import BeanTable
from ..steady import steady
from ..threads import ANSWERS, answer_thread
from ..untrusted import shown
from .budget import COST_OF_LINE, COST_OF_TEXT, DECODING
from .dialects import TextDialect
from .prometheus_api import PrometheusApi
from .prometheus_nodes import (
    Grouping,
    NodeSeries,
    beat_names,
    comments_of,
    page_of_node,
    query_of,
    refuse_clusters,
    wanted_names,
)
from .prometheus_text import TextReader
from .source import NodeId

SHARED_SECONDS: Final = 1.0
"""Time for which one answer serves the sources that have not read it."""
NAMES_SECONDS: Final = 30.0
"""Interval at which the names of metrics are looked at: that of the first client of a quota type is new."""
_METADATA_SECONDS: Final = 600.0
_NAMES_PERIOD_SECONDS: Final = 600.0
_BEATS: Final = "15m"
"""Period of scrapes whose times are queried: three times the age of the oldest sample that counts as present."""
_STALE_INTERVALS: Final = 2.0
"""Intervals between two scrapes after which a scrape counts as missed."""
_USUAL_INTERVAL_SECONDS: Final = 60.0
"""Interval that is assumed where only one scrape is known: Prometheus's default."""
_CHARACTERS_OF_LINE: Final = 200
_LONGEST_SECONDS: Final = 120.0
"""Age up to which stale values are shown, as for other sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusReading:
    """The pages of all nodes at one time."""

    nodes: Mapping[str, NodeSeries]
    evaluated_at: float
    """Unix time in seconds by the clock of Prometheus."""
    asked_at: float
    """Steady seconds here."""
    comments: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()


class LivePrometheus:
    """
    The present values of all nodes of a cluster, as one server has them.

    Args:
        api: The server.
        grouping: The labels that tell nodes apart.
        selector: Matchers of the cluster's series.
        clock: Steady seconds.

    """

    def __init__(
        self, api: PrometheusApi, grouping: Grouping, selector: str = "", clock: Callable[[], float] = steady
    ) -> None:
        self._api = api
        self.grouping, self.selector = grouping, selector
        self.clock = clock
        self._names: list[str] = []
        """Names of the metrics to query."""
        self._names_at = self._metadata_at = float("-inf")  # when names and comments were looked at, by the clock
        self._comments: Mapping[str, Sequence[str]] = {}
        """Lines about the type and meaning of metrics, by their names."""
        self._under_way: asyncio.Task[PrometheusReading] | None = None
        """The read that callers share, or the last one."""
        self._last: PrometheusReading | None = None

    async def reading(
        self, seen: PrometheusReading | None = None, newer_than: float | None = None
    ) -> PrometheusReading:
        """
        Return the present values; callers at the same time share one answer. Raises ``SourceError``.

        Args:
            seen: The reading that the caller has already, and does not want again.
            newer_than: Steady seconds; a reading of a later time is returned again. None for ``SHARED_SECONDS`` ago.

        """
        since = self.clock() - SHARED_SECONDS if newer_than is None else newer_than
        if self._last is not None and self._last is not seen and self._last.asked_at > since:
            return self._last
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.create_task(self._read())
            self._under_way.add_done_callback(_retrieved)
        return await asyncio.shield(self._under_way)

    async def refuse_clusters(self, reading: PrometheusReading) -> None:
        """Raise ``SourceUnreadable`` if nodes are of several clusters by their labels."""
        nodes, label = reading.nodes.values(), self.grouping.instance_label
        await asyncio.wrap_future(ANSWERS.submit(refuse_clusters, nodes, self.selector, label))

    async def close(self) -> None:
        """Release connections."""
        if self._under_way is not None:
            self._under_way.cancel()
            with suppress(asyncio.CancelledError, SourceError):
                await self._under_way
        await self._api.close()

    async def _read(self) -> PrometheusReading:
        """Return the present values, and keep them for other callers. Raises ``SourceError``."""
        asked_at = self.clock()
        if not self._names or asked_at - self._names_at >= NAMES_SECONDS:
            await self._look_for_names(asked_at)
        answer = await self._api.query(query_of(self._names, self.selector))
        groups = await asyncio.wrap_future(ANSWERS.submit(self.grouping.groups, answer.series))
        if not groups:
            self._names = []  # they are looked at again by the next read
            raise SourceUnreachable(
                f"it has no present series of a node{self._where}: are the targets of the brokers' agents up?"
            )
        evaluated_at = max(one.samples[-1][0] for one in answer.series if one.samples)
        beats = await self._api.query(f"{query_of(beat_names(groups), self.selector)}[{_BEATS}]", evaluated_at)
        nodes = self.grouping.newest(groups, beats.series)
        self._last = PrometheusReading(
            nodes={node.instance: node for node in nodes},
            evaluated_at=evaluated_at,
            asked_at=asked_at,
            comments=self._comments,
            warnings=tuple(dict.fromkeys((*answer.warnings, *beats.warnings))),
        )
        return self._last

    async def _look_for_names(self, asked_at: float) -> None:
        """Set the names of the metrics to query, and at times the comments about them. Raises ``SourceError``."""
        now_seconds = await self._api.now()
        names = await self._api.names(self.selector, now_seconds - _NAMES_PERIOD_SECONDS, now_seconds)
        self._names, self._names_at = wanted_names(names), asked_at
        if not self._names:
            raise SourceUnreadable(
                f"it has no metric of Kafka's brokers{self._where}: does it scrape their agents, and is selector right?"
            )
        if asked_at - self._metadata_at >= _METADATA_SECONDS:
            with suppress(SourceError):  # some servers have none, and most dialects show without
                self._comments = comments_of(await self._api.metadata(), self._names)
            self._metadata_at = asked_at

    @property
    def _where(self) -> str:
        """The selector in words, for messages; empty without one."""
        return f" with {{{self.selector}}}" if self.selector else ""


def _retrieved(task: asyncio.Task[PrometheusReading]) -> None:
    """Retrieve an error that no source waits for any more, which asyncio would log otherwise."""
    if not task.cancelled():
        task.exception()


class PrometheusNodeSource:
    """
    One node of those that a server has.

    Args:
        name: The label ``source``.
        live: The server.
        instance: The node's label there.
        node_id: Its id; None if its page reports it.
        forced: The dialect of its page; None to detect it.

    """

    def __init__(
        self, name: str, live: LivePrometheus, instance: str, node_id: str | None, forced: TextDialect | None = None
    ) -> None:
        self.name, self.node_id = name, node_id
        self._live, self._instance = live, instance
        self._reader = TextReader(forced)
        self._decoding = answer_thread()
        self._node_id = NodeId(node_id)
        self._seen: PrometheusReading | None = None

    @property
    def dialect(self) -> str:
        """The label ``dialect``: that of the agent whose series these are."""
        return self._reader.dialect

    async def read(self) -> BeanTable:
        """Return the quota beans as the last scrape of Prometheus had them. Raises ``SourceError``."""
        self._decoding.check()
        reading = self._seen = await self._live.reading(self._seen)
        node = reading.nodes.get(self._instance)
        if node is None:
            raise SourceUnreachable(
                f"Prometheus has no present series of {shown(self._instance)}: its last scrape failed, or it is no "
                "target any more"
            )
        if node.scrapes is None:
            raise SourceUnreadable(
                f"Prometheus has series of {shown(self._instance)}, but not the times of its scrapes, so their age is "
                "unknown: they are asked for again"
            )
        # the age when Prometheus answered, by its clock, and the time since then, by the clock here
        age_seconds = max(0.0, reading.evaluated_at - node.scrapes.last + self._live.clock() - reading.asked_at)
        interval_seconds = node.scrapes.interval_seconds or _USUAL_INTERVAL_SECONDS
        stale = age_seconds > _STALE_INTERVALS * interval_seconds
        if stale and age_seconds > _LONGEST_SECONDS:
            raise SourceUnreachable(
                f"the last scrape by Prometheus was {age_seconds:.0f} s ago, and it scrapes every "
                f"{interval_seconds:.0f} s: is it up, and is this node still its target?"
            )
        async with DECODING.turn((COST_OF_TEXT * _CHARACTERS_OF_LINE + COST_OF_LINE) * len(node.series)):
            page = await self._decoding.run(
                lambda: self._reader.read(page_of_node(node, self._live.grouping, reading.comments)), ANSWERS
            )
        try:
            node_id = self._node_id.of(page.layout)
        except SourceUnreadable as error:
            raise SourceUnreadable(page.mistake or _in_prometheus(str(error), self._instance)) from None
        remarks = [*reading.warnings, *([page.remark] if page.remark else [])]
        return BeanTable(
            node_id=node_id,
            layout=page.layout,
            values=page.values,
            remark="; ".join(remarks) or None,
            hint=page.hint,
            coverage=page.coverage,
            age_seconds=age_seconds,
            stale=stale,
        )

    async def close(self) -> None:
        """Give back the room of its numbers; the connections belong to all nodes."""
        self._reader.close()


def _in_prometheus(text: str, instance: str) -> str:
    """Return an error of a node's id, with the settings of a Prometheus source that correct it."""
    return f"{text} (of a Prometheus source: nodes, with {shown(instance)} and the id)"
