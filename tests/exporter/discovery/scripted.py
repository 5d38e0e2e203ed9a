"""A finder whose targets are scripted."""

from __future__ import annotations

from tests.exporter.examples import Scripted

from quotascope.exporter.discovery.target import FoundNodes, NodeTarget


def target(name: str, node_id: int | None = None) -> NodeTarget:
    return NodeTarget(url=f"http://{name}/jolokia", name=name, node_id=node_id)


class ScriptedFinder(Scripted):
    interval_seconds = 7.0

    def __init__(self, name: str, *targets: NodeTarget) -> None:
        super().__init__()
        self.name = name
        self.found = FoundNodes(targets=targets)

    async def find(self) -> FoundNodes:
        await self.ended()
        return self.found
