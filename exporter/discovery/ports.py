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
USUAL_ENDINGS: Final = (
    ":9404/metrics",  # jmx_exporter's documentation, Strimzi
    ":8778/jolokia",
    ":7071/metrics",  # jmx_exporter in many guides for Kafka
    ":5556/metrics",  # jmx_exporter in Bitnami's charts
    ":11001/metrics",  # Amazon MSK
)
"""Endings of an address after the host, the likeliest first."""
_TIMEOUT_SECONDS: Final = 2.0
"""Longest wait for each address, in seconds; a port that a firewall drops never answers."""
_NODES_AT_ONCE: Final = 16
"""Nodes that are searched at the same time."""


class PortSearch:
    """
    Searches the addresses of nodes' agents.

    A node is searched until its agent has answered with values. Then the address is kept, also while the agent is down.
    All usual addresses of a node are read at once, as a scrape would read them; no other request is sent.

    Args:
        common: Settings for reading found sources; without credentials.
        build: Makes the source that reads an address.

    """

    def __init__(self, common: FoundSourceConfig, build: Callable[[SourceConfig], Source]) -> None:
        timeout = min(_TIMEOUT_SECONDS, common.timeout_seconds)
        self._common = common.model_copy(update={"timeout_seconds": timeout})
        self._build = build
        self._known: dict[tuple[int | None, str], NodeTarget] = {}
        self._slots = asyncio.Semaphore(_NODES_AT_ONCE)

    async def locate(self, nodes: FoundNodes) -> FoundNodes:
        """
        Return the nodes with the addresses of their agents.

        The problem has the nodes whose agents were not found, with the answers of all ports of the first.
        """
        keys = {(target.node_id, target.url) for target in nodes.targets}
        self._known = {key: target for key, target in self._known.items() if key in keys}
        results = await asyncio.gather(*map(self._search, nodes.targets))
        missing = [result for result in results if isinstance(result, str)]
        problems = [nodes.problem] if nodes.problem else []
        if missing:
            further_nodes = f", nor those of {len(missing) - 1} more nodes" if len(missing) > 1 else ""
            problems.append(f"{missing[0]}{further_nodes}: set discovery.kafka.url to the address of the agents")
        targets = tuple(result for result in results if isinstance(result, NodeTarget))
        return FoundNodes(targets=targets, problem="; ".join(problems) or None)

    async def _search(self, node: NodeTarget) -> NodeTarget | str:
        """Return the node at the address of its agent, or a sentence on why there is none."""
        key = node.node_id, node.url
        if key in self._known:
            return self._known[key]
        async with self._slots:
            read_answers = await asyncio.gather(*(self._read(node, ending) for ending in USUAL_ENDINGS))
        answers = dict(zip(USUAL_ENDINGS, read_answers, strict=True))
        tables = [(ending, answer) for ending, answer in answers.items() if isinstance(answer, BeanTable)]
        if not tables:
            failures = "; ".join(f"{ending} {answer}" for ending, answer in answers.items())
            return f"the agent of node {node.node_id} at {node.name} is not found ({failures})"
        # an agent without a value of Kafka's is of another program, or of a broker without quotas: it comes last
        ending, table = min(tables, key=lambda entry: len(entry[1].values) == 0)
        target = _at(node, ending)
        if len(table.values):
            log.info("agent found", node=node.node_id, url=target.url)
            self._known[key] = target
        return target

    async def _read(self, node: NodeTarget, ending: str) -> BeanTable | str:
        """Return the table of an agent at this address, or the reason why there is none."""
        source = self._build(source_of(_at(node, ending), self._common))
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                return await source.read()
        except TimeoutError:
            return f"no answer within {_TIMEOUT_SECONDS:g} s"
        except SourceError as error:
            return str(error).partition(": ")[0]
        finally:
            await source.close()


def _at(node: NodeTarget, ending: str) -> NodeTarget:
    """Return a node at the address of an agent, which is also its name."""
    url = f"{node.url}{ending}"
    return replace(node, url=url, name=urlsplit(url).netloc)
