"""Reads a node through its Jolokia agent, version 1 or 2: one bulk request for all quota beans."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from typing import Final

from yarl import URL

from ...beans import BeanTable, Layout
from ...errors import SourceNotRead
from ..columns import Columns, NodeId
from ..http.fetch import HttpFetch
from ..http.target import HttpTarget
from ..in_thread import InThread
from .protocol import (
    BY_TYPE,
    REQUESTS,
    ReadRequest,
    bulk_request,
    column_of,
    numbers_in,
)

_HINT = "the usual path of a Jolokia agent is /jolokia, and its usual port 8778"
_READS_BY_TYPE: Final = 20
"""So many reads go by type when all at once has failed; then that is tried again, for the reason may be gone."""


class JolokiaSource:
    """
    One broker or controller behind a Jolokia agent.

    Args:
        name: The label ``source``.
        target: Where the agent answers.

    """

    dialect = "jolokia"

    def __init__(self, name: str, target: HttpTarget) -> None:
        self.name, self.node_id = name, target.node_id
        self._fetch = HttpFetch(target, _HINT)
        self._url = _read_url(target.url)
        self._columns = Columns(column_of)
        self._thread = InThread()
        self._node_id = NodeId(target.node_id)
        self._reads_by_type = 0
        self._timeout_seconds = target.timeout_seconds

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``."""
        self._thread.check()
        layout, values = await self._numbers()
        return BeanTable(node_id=self._node_id.of(layout), layout=layout, values=values)

    async def _numbers(self) -> tuple[Layout, array[float]]:
        if self._reads_by_type:
            self._reads_by_type -= 1
            return await self._asked_for(BY_TYPE)
        ends = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            return await self._asked_for(REQUESTS)
        except SourceNotRead as error:
            # A bean of another product that cannot be looked at, or Jolokia 1 while a node starts, which has none yet.
            try:
                async with asyncio.timeout_at(ends):
                    found = await self._asked_for(BY_TYPE)
            except TimeoutError:
                raise error from None
        self._reads_by_type = _READS_BY_TYPE
        return found

    async def _asked_for(
        self, requests: Sequence[ReadRequest]
    ) -> tuple[Layout, array[float]]:
        answer = await self._fetch.post(self._url, bulk_request(requests))
        return await self._thread.run(
            lambda: self._columns.place(*numbers_in(answer, requests)), len(answer)
        )

    async def close(self) -> None:
        """Release connections."""
        await self._fetch.close()


def _read_url(url: str) -> URL:
    """
    Where to post.

    An error of one attribute must not spoil an answer: sensors expire while the agent
    reads them. The echo of each request would be of no use.
    """
    agent = URL(url)
    return agent.with_path(f"{agent.path.rstrip('/')}/").with_query(
        {**agent.query, "ignoreErrors": "true", "includeRequest": "false"}
    )
