"""Reads a node through jmx_exporter's text, as the rules of its example ``kafka-2_0_0.yml`` shape it."""

from __future__ import annotations

import asyncio

from ...beans import BeanTable
from ..columns import Columns
from ..http.fetch import HttpFetch
from ..http.target import HttpTarget
from ..node_id import NodeId
from .kafka_2_0_0 import column_of
from .samples import numbers_in

_HINT = "the usual path of a jmx_exporter is /metrics"


class JmxExporterSource:
    """
    One broker or controller behind a jmx_exporter.

    The rules give no delay queue, no exempt request time and no throttle by request;
    all that concerns an entity is there.

    Args:
        name: The label ``source``.
        target: Where the agent answers.

    """

    dialect = "jmx_exporter"

    def __init__(self, name: str, target: HttpTarget) -> None:
        self.name = name
        self._fetch = HttpFetch(target, _HINT)
        self._columns = Columns(column_of)
        self._node_id = NodeId(target.node_id)

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``."""
        answer = await self._fetch.get()
        # Pure, and long enough on a large cluster to keep health checks waiting.
        keys, values = await asyncio.to_thread(numbers_in, answer)
        layout, numbers = self._columns.place(keys, values)
        return BeanTable(
            node_id=self._node_id.of(layout), layout=layout, values=numbers
        )

    async def close(self) -> None:
        """Release connections."""
        await self._fetch.close()
