"""The captures: real answers of real nodes, and the rules that were in force (see `captures/README.md`)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.builders.agents import MISSING, item, items

from quotascope.exporter.join.join import Join
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import Bean, BeanColumn, BeanTable
from quotascope.exporter.snapshot import LimitsHealth, Snapshot, SourceHealth, SourceRead
from quotascope.exporter.sources import jolokia
from quotascope.exporter.sources.jolokia import BY_TYPE, REQUESTS
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.exporter.sources.source import CoverageTracker, LayoutTracker, NodeId
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import NEWEST_RELEASE, ReleaseRange
from quotascope.metrics.kafka.rules import QuotaRules

CAPTURES = Path(__file__).parent / "captures"
DIALECT_PAGES = {
    "kafka_2_0_0.txt": "kafka_2_0_0",
    "confluent.txt": "confluent",
    "jmx_default.txt": "jmx_default",
    "jmx_default_lowercase.txt": "jmx_default",
    "msk.txt": "jmx_default",
    "strimzi.txt": "strimzi",
    "../rules/throttled.txt": "quotascope_rules",
}
"""The dialect of each page in the folder `dialects`, or beside it."""
TAKEN_AT = 1_795_251_780.0
"""Time when the combined node was throttled; Unix time in seconds."""

SETTINGS = NodeSettings(request_capacity_threads=11.0)
"""Kafka's defaults: 8 + 3 threads, 11 samples of 1 s."""

COMBINED_RULES: Mapping[QuotaType, Mapping[QuotaEntity, float]] = {
    QuotaType.PRODUCE: {
        QuotaEntity("alice"): 200_000.0,
        QuotaEntity("alice", "app1"): 50_000.0,
        QuotaEntity("svc:team a"): 40_000.0,
        QuotaEntity("svc:team a", "my app/1=x,*?"): 30_000.0,
        QuotaEntity(None, DEFAULT): 1_000_000.0,
    },
    QuotaType.FETCH: {
        QuotaEntity("alice"): 300_000.0,
        QuotaEntity("alice", "app1"): 60_000.0,
        QuotaEntity("svc:team a", "my app/1=x,*?"): 30_000.0,
    },
    QuotaType.REQUEST: {
        QuotaEntity("alice"): 1_000.0,
        QuotaEntity("svc:team a"): 1_000.0,
        QuotaEntity("bob"): 1_000.0,
        QuotaEntity(DEFAULT): 2.0,
    },
    QuotaType.CONTROLLER_MUTATION: {QuotaEntity("bob"): 2.0},
}
SPLIT_RULES: Mapping[QuotaType, Mapping[QuotaEntity, float]] = {
    QuotaType.PRODUCE: {
        QuotaEntity("alice", "app1"): 50_000.0,
        QuotaEntity("alice", DEFAULT): 200_000.0,
        QuotaEntity("svc:team a"): 40_000.0,
        QuotaEntity(DEFAULT, "spam"): 100_000.0,
        QuotaEntity(DEFAULT, DEFAULT): 500_000.0,
    },
    QuotaType.FETCH: {QuotaEntity(DEFAULT): 300_000.0, QuotaEntity("alice"): 60_000.0},
    QuotaType.REQUEST: {QuotaEntity(None, "bulk"): 1.0, QuotaEntity(None, DEFAULT): 1_000.0},
    QuotaType.CONTROLLER_MUTATION: {QuotaEntity("bob"): 2.0},
}  # fmt: skip
FORWARDED_RULES: Mapping[QuotaType, Mapping[QuotaEntity, float]] = {
    QuotaType.CONTROLLER_MUTATION: {QuotaEntity("bob"): 2.0}
}
NEWEST = {"1": ReleaseRange(oldest=NEWEST_RELEASE, newest=NEWEST_RELEASE)}
PAIR_LIMITS = Limits(
    connection_limits={"127.0.0.1": 5.0, "<default>": 50.0},
    nodes={
        "1": replace(
            SETTINGS,
            connection_limit=77.0,
            listener_connection_limits={"tls": 2.0},
            replication_limits={"leader": 300_000.0, "follower": 400_000.0},
        ),
        "2": replace(SETTINGS, connection_limit=77.0, replication_limits={"follower": 400_000.0}),
    },
    active_controller="1",
    releases=NEWEST,
    read_at=TAKEN_AT,
)
TIERED_LIMITS = Limits(
    nodes={
        "1": replace(
            SETTINGS,
            replication_limits={"alter_log_dirs": 300_000.0},
            remote_storage_limits={"copy": 200_000.0, "fetch": 100_000.0},
        )
    },
    active_controller="1",
    releases=NEWEST,
    read_at=TAKEN_AT,
)


def limits(
    rules: Mapping[QuotaType, Mapping[QuotaEntity, float]],
    nodes: Sequence[str] = ("1",),
    active_controller: str | None = None,
    read_at: float = TAKEN_AT,
    settings: NodeSettings = SETTINGS,
    releases: Mapping[str, ReleaseRange] = NEWEST,
) -> Limits:
    """Return the configured limits, in Kafka's units; by brokers of the newest release unless others are given."""
    return Limits(
        rules={kind: QuotaRules(bounds).snapshot() for kind, bounds in rules.items()},
        nodes=dict.fromkeys(nodes, settings),
        active_controller=active_controller,
        releases=releases,
        read_at=read_at,
    )


def jolokia_bytes(name: str) -> bytes:
    """Return the answer to our bulk request from the file `name`, recorded with a request for each kind of bean."""
    recorded = json.loads((CAPTURES / name).read_text("utf-8"))
    beans = [
        recorded[request.pattern]["value"]
        for request in BY_TYPE
        if request.pattern.startswith("kafka.server:")
        and request.pattern.endswith(",*")
        and recorded.get(request.pattern, MISSING)["status"] == 200
    ]
    together = {name: bean for some in beans for name, bean in some.items()}
    answers = {**recorded, "kafka.server:*": item(together)}
    return items(*(answers.get(request.pattern, MISSING) for request in REQUESTS))


def table(name: str) -> BeanTable:
    if "jolokia" in name:
        return jolokia_table(jolokia_bytes(name))
    reading = TextReader().read((CAPTURES / name).read_bytes())
    node_id = NodeId("1" if "confluent" in name else None).of(reading.layout)
    return BeanTable(node_id=node_id, layout=reading.layout, values=reading.values, coverage=reading.coverage)


def jolokia_table(answer: bytes, node_id: str | None = None) -> BeanTable:
    keys, values = jolokia.numbers_in(answer, REQUESTS)
    layout, numbers = LayoutTracker(jolokia.columns_of).place(keys, values)
    coverage = CoverageTracker(complete=True).of(layout)
    return BeanTable(node_id=NodeId(node_id).of(layout), layout=layout, values=numbers, coverage=coverage)


def pairs(bean_table: BeanTable) -> Iterator[tuple[BeanColumn, float]]:
    return zip(bean_table.layout.columns, bean_table.values, strict=True)


def numbers(bean_table: BeanTable) -> dict[tuple[Bean, str], float]:
    return {(column.bean, column.attribute): value for column, value in pairs(bean_table)}


def read(bean_table: BeanTable, name: str = "") -> SourceRead:
    health = SourceHealth(
        name=name or f"node-{bean_table.node_id}",
        dialect="jolokia",
        up=True,
        duration_seconds=0.01,
        readings=len(bean_table.values),
    )
    return SourceRead(health=health, table=bean_table)


def joined(
    names: Sequence[str], configured: Limits | None, join: Join | None = None, taken_at: float = TAKEN_AT
) -> Snapshot:
    """Return the snapshot of these captures, taken together."""
    health = LimitsHealth(read_at=None if configured is None else configured.read_at)
    return (join or Join()).snapshot([read(table(name)) for name in names], configured, health, taken_at)


def split(moment: str, rules: Mapping[QuotaType, Mapping[QuotaEntity, float]]) -> Snapshot:
    """Return the snapshot of a broker and a controller that are two nodes."""
    names = [f"split/{moment}.{node}.jolokia2.json" for node in ("1", "100")]
    return joined(names, limits(rules, ("1", "100"), active_controller="100"))
