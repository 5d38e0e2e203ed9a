"""Small made-up nodes: each test states the beans it is about."""

from array import array
from collections.abc import Mapping, Sequence
from math import nan

from tests.exporter.recorded import read

from quotascope.exporter.join.join import Join
from quotascope.exporter.limits import Limits
from quotascope.exporter.mapping import Bean, BeanColumn, BeanLayout, BeanTable
from quotascope.exporter.snapshot import EntityUsage, LimitsHealth, Snapshot
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.sanitizer import sanitize

Rules = Mapping[QuotaType, Mapping[QuotaEntity, float]]
Numbers = dict[BeanColumn, float]

NODE = Bean.of("kafka.server", {"type": "app-info", "id": "1"})


def entity(
    quota_type: QuotaType,
    user: str = "",
    client_id: str = "",
    *,
    usage: float | None = 0.0,
    throttle_ms: float = nan,
    tokens: float | None = None,
) -> Numbers:
    """Return the bean of an entity, in Kafka's units."""
    tags = {"user": sanitize(user), "client-id": client_id}
    properties = {key: value for key, value in tags.items() if value}
    numbers = {"throttle-time": throttle_ms, quota_type.attribute: usage, "tokens": tokens}
    present = {attribute: value for attribute, value in numbers.items() if value is not None}
    return bean(quota_type.group, present, **properties)


def bean(kind: str, numbers: Mapping[str, float], domain: str = "kafka.server", **properties: str) -> Numbers:
    """Return the numbers of a bean's attributes."""
    described = Bean.of(domain, {"type": kind, **properties})
    return {BeanColumn(described, attribute): value for attribute, value in numbers.items()}


def leads(count: float) -> Numbers:
    return bean("KafkaController", {"Value": count}, "kafka.controller", name="ActiveControllerCount")


class World:
    """A cluster whose numbers and limits change from collection to collection."""

    def __init__(self, configured: Limits | None = None) -> None:
        self.limits = configured
        self.at = 1_000.0
        self.join = Join()
        self._layouts: dict[str, BeanLayout] = {}

    def table(self, node_id: str, *parts: Numbers) -> BeanTable:
        """Return the table of a node; the layout stays the same object while its columns do."""
        numbers = {column: value for part in parts for column, value in part.items()}
        layout = self._layouts.get(node_id)
        if layout is None or layout.columns != tuple(numbers):
            layout = self._layouts[node_id] = BeanLayout(tuple(numbers))
        return BeanTable(node_id=node_id, layout=layout, values=array("d", numbers.values()))

    def collect(self, nodes: Mapping[str, Sequence[Numbers]], seconds: float = 15.0) -> Snapshot:
        """Return the snapshot of these nodes, so many seconds after the last one."""
        self.at += seconds
        reads = [read(self.table(node, *parts)) for node, parts in nodes.items()]
        return self.join.snapshot(reads, self.limits, LimitsHealth(), self.at)

    def collect_one(self, *parts: Numbers, seconds: float = 15.0) -> Snapshot:
        return self.collect({"1": parts}, seconds)


def only(snapshot: Snapshot) -> EntityUsage:
    (usage,) = snapshot.entities
    return usage
