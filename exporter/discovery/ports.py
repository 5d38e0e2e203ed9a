"""Finds the agent of a node at the ports that agents usually have, where only the address of the cluster is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import structlog

from ..config import FoundSourceConfig, SourceConfig
from ..errors import SourceError
from ..mapping import BeanTable
from ..sources.source import Source
from .target import FoundNodes, NodeTarget, source_of

log = structlog.get_logger()

NODE: Final = "http://{host}"
"""The URL of a node whose agent is not found yet."""
USUAL: Final = (
    ":9404/metrics",  # jmx_exporter's documentation, Strimzi
    ":8778/jolokia",
    ":7071/metrics",  # jmx_exporter in many guides for Kafka
    ":5556/metrics",  # jmx_exporter in Bitnami's charts
    ":11001/metrics",  # Amazon MSK
)
"""Endings of an address after the host, the likeliest first."""
_SECONDS: Final = 2.0
"""Longest wait for each address, in seconds; a port that a firewall drops never answers."""
_AT_ONCE: Final = 16
"""Nodes that are searched at the same time."""


class PortSearch:
    """
    Searches nodes, each until its agent has answered with values: then it is known where, also while it is down.

    The addresses of a node are read at once, as a scrape would read them; nothing but the request of an agent's
    metrics is sent.

    Args:
        common: Settings for reading found sources; without credentials.
        build: Makes the source that reads an address.

    """

    def __init__(self, common: FoundSourceConfig, build: Callable[[SourceConfig], Source]) -> None:
        timeout = min(_SECONDS, common.timeout_seconds)
        self._common = common.model_copy(update={"timeout_seconds": timeout})
        self._build = build
        self._known: dict[tuple[int | None, str], NodeTarget] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def located(self, nodes: FoundNodes) -> FoundNodes:
        """
        Return the nodes with the addresses of their agents.

        Nodes whose agent was not found are in the problem, with the answer of each port.
        """
        keys = {(target.node_id, target.url) for target in nodes.targets}
        self._known = {key: target for key, target in self._known.items() if key in keys}
        results = await asyncio.gather(*map(self._search, nodes.targets))
        missing = [result for result in results if isinstance(result, str)]
        problems = [nodes.problem] if nodes.problem else []
        if missing:
            further_nodes = f", nor those of {len(missing) - 1} more nodes" * (len(missing) > 1)
            problems.append(f"{missing[0]}{further_nodes}: set discovery.kafka.url to the address of the agents")
        targets = tuple(result for result in results if isinstance(result, NodeTarget))
        return FoundNodes(targets=targets, problem="; ".join(problems) or None)

    async def _search(self, node: NodeTarget) -> NodeTarget | str:
        key = node.node_id, node.url
        if key in self._known:
            return self._known[key]
        async with self._places:
            answers = await asyncio.gather(*(self._read(node, end) for end in USUAL))
        tables = [(end, answer) for end, answer in zip(USUAL, answers, strict=True) if isinstance(answer, BeanTable)]
        # an agent that has no value of Kafka's is of another program, or of a broker without quotas
        tables.sort(key=lambda entry: not len(entry[1].values))
        if not tables:
            failures = "; ".join(f"{end} {answer}" for end, answer in zip(USUAL, answers, strict=True))
            return f"the agent of node {node.node_id} at {node.name} is not found ({failures})"
        end, table = tables[0]
        target = _at(node, end)
        if len(table.values):
            log.info("agent found", node=node.node_id, url=target.url)
            self._known[key] = target
        return target

    async def _read(self, node: NodeTarget, end: str) -> BeanTable | str:
        source = self._build(source_of(_at(node, end), self._common))
        try:
            async with asyncio.timeout(_SECONDS):
                return await source.read()
        except TimeoutError:
            return f"no answer within {_SECONDS:g} s"
        except SourceError as error:
            return str(error).partition(": ")[0]
        finally:
            await source.close()


def _at(node: NodeTarget, end: str) -> NodeTarget:
    url = f"{node.url}{end}"
    return replace(node, url=url, name=urlsplit(url).netloc)
