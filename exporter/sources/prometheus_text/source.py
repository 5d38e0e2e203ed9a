"""Reads a node through an agent that answers Prometheus text."""

from __future__ import annotations

from ...beans import BeanTable
from ...errors import SourceUnreadable
from ...threads import answer_thread, pool_of_answer
from ..columns import NodeId
from ..http.fetch import HttpFetch
from ..http.target import HttpTarget
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
        self.name, self.node_id = name, target.node_id
        self._fetch = HttpFetch(target, _HINT)
        self._reader = TextReader(forced)
        self._decoding = answer_thread()
        self._node_id = NodeId(target.node_id)

    @property
    def dialect(self) -> str:
        """The label ``dialect``: what the last answer was in, ``prometheus`` until one shows it."""
        return self._reader.dialect

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``."""
        self._decoding.check()
        answer = await self._fetch.read()
        reading = await self._decoding.run(
            lambda: self._reader.read(answer), pool_of_answer(len(answer))
        )
        if not answer.endswith(b"\n"):
            raise SourceUnreadable(
                "the answer ends in the middle of a line, so there should be more of it: does the agent, or a proxy before it, cut it?"
            )
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

    async def close(self) -> None:
        """Release connections."""
        await self._fetch.close()
