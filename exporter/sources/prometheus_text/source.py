"""Reads a node through an agent that answers Prometheus text."""

from __future__ import annotations

import asyncio
from threading import Lock

from ...beans import BeanTable
from ...errors import SourceUnreadable
from ..http.fetch import HttpFetch
from ..http.target import HttpTarget
from ..node_id import NodeId
from .dialect import TextDialect
from .reader import Reading, TextReader

_HINT = "the usual path of a Prometheus agent is /metrics"


class PrometheusTextSource:
    """
    One broker or controller behind jmx_exporter, Strimzi's metrics-reporter, or the like.

    Args:
        name: The label ``source``.
        target: Where the agent answers.
        forced: The dialect of its answers, or None to find out from each.

    """

    def __init__(
        self, name: str, target: HttpTarget, forced: TextDialect | None = None
    ) -> None:
        self.name = name
        self._fetch = HttpFetch(target, _HINT)
        self._reader = TextReader(forced)
        self._reading = Lock()
        self._node_id = NodeId(target.node_id)

    @property
    def dialect(self) -> str:
        """The label ``dialect``: what the last answer was in, ``prometheus`` until one shows it."""
        return self._reader.dialect

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``."""
        answer = await self._fetch.get()
        # Long enough on a large cluster to keep health checks waiting.
        reading = await asyncio.to_thread(self._read, answer)
        return BeanTable(
            node_id=self._node_of(reading),
            layout=reading.layout,
            values=reading.values,
            remark=reading.remark,
            hint=reading.hint,
        )

    def _node_of(self, reading: Reading) -> str:
        try:
            return self._node_id.of(reading.layout)
        except SourceUnreadable as error:
            raise SourceUnreadable(reading.mistake or str(error)) from None

    def _read(self, answer: bytes) -> Reading:
        # The thread of a read that was cancelled may still be at work.
        with self._reading:
            return self._reader.read(answer)

    async def close(self) -> None:
        """Release connections."""
        await self._fetch.close()
