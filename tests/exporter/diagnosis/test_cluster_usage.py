"""The usage of an entity on the whole cluster, in numbers and in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.exporter.examples import COMPLETE, NOW, health, limits, snapshot, usage

from quotascope.exporter.diagnosis.cluster_usage import cluster_lines, cluster_sentence, cluster_usages
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Snapshot
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

THREE = limits(rules={QuotaType.PRODUCE: QuotaRules()}, nodes=dict.fromkeys("123", NodeSettings()))
NODES = tuple(NodeUsage(broker=broker) for broker in "123")
MUTATION = QuotaType.CONTROLLER_MUTATION


def state(*rows: EntityUsage, **changes: Any) -> Snapshot:
    """Return a snapshot of three brokers."""
    fields: dict[str, Any] = {"limits": THREE, "nodes": NODES}
    return snapshot(*rows, **{**fields, **changes})


def of(
    kind: QuotaType = QuotaType.PRODUCE, limit: float | None = 20e6, **usage_by_broker: float | None
) -> list[EntityUsage]:
    """Return an entity on some brokers, called b1 and so on."""
    return [
        usage(kind, broker=broker[1:], limit=limit, configured=THREE, usage=amount)
        for broker, amount in usage_by_broker.items()
    ]


@pytest.mark.parametrize(
    ("rows", "changes", "text"),
    [
        (of(b1=6.8e6, b2=27.2e6), {}, "cluster 34.0 MB/s of at most 60.0 MB/s; broker 2 has 80% of it"),
        (of(b2=27.2e6), {}, "cluster 27.2 MB/s of at most 60.0 MB/s; broker 2 has 100% of it"),
        (of(b1=6e6, b2=None), {}, "cluster ≥ 6.00 MB/s of at most 60.0 MB/s; broker 1 has 100% of it"),
        (
            of(b1=6e6),
            {"sources": (health(up=False),)},
            "cluster ≥ 6.00 MB/s of at most 60.0 MB/s; broker 1 has 100% of it",
        ),
        (of(b1=None), {}, "cluster ? of at most 60.0 MB/s"),
        (of(b1=0.0, b2=0.0), {}, "cluster 0.00 B/s of at most 60.0 MB/s"),
        (of(limit=None, b1=1e6, b2=1e6), {}, "cluster 2.00 MB/s, unlimited; broker 1 has 50% of it"),
        (of(b1=1e6), {"limits": None}, "cluster 1.00 MB/s, limit unknown"),
        (
            of(b1=1e6),
            {"nodes": (NodeUsage(broker="1"), NodeUsage(broker="2", overruled=True), NodeUsage(broker="3"))},
            "cluster 1.00 MB/s, limit ≥ 40.0 MB/s",
        ),
        (of(MUTATION, 5.0, b1=2.0), {}, "cluster 2.00 mut/s of at most 5.00 mut/s; broker 1 has 100% of it"),
    ],
)
def test_what_an_entity_uses_on_the_cluster(rows: list[EntityUsage], changes: dict[str, Any], text: str) -> None:
    """Unknown, unlimited and zero usage differ; a sum without all brokers is a lower bound."""
    snapshot_of = state(*rows, **changes)
    (usage_of_cluster,) = cluster_usages(snapshot_of, snapshot_of.measured)
    sentence = cluster_sentence(usage_of_cluster)
    assert sentence.startswith(f"{rows[0].entity.quota_type.label.replace('_', ' ')}, user alice: ")
    assert text in sentence


def seeing(*brokers: str, **changes: Any) -> dict[str, Any]:
    """Return nodes that would show each entity, on three brokers or others."""
    return {"nodes": tuple(NodeUsage(broker=broker, coverage=COMPLETE) for broker in brokers), **changes}


def started(broker: int, seconds: float) -> NodeUsage:
    """Return a node that would show each entity, and was started so many seconds ago."""
    return NodeUsage(broker=str(broker), coverage=COMPLETE, started_at=NOW - seconds)


MANY = [str(number) for number in range(1, 8)]


@pytest.mark.parametrize(
    ("rows", "changes", "text", "fairness"),
    [
        (
            of(b1=6e6, b2=6e6),
            seeing(*"123"),
            "broker 1 has 50% of it, fairness 0.67; 20.0 MB/s stranded on broker 3",
            2 / 3,
        ),
        (
            of(b1=6e6),
            seeing(*"123"),
            "broker 1 has 100% of it, fairness 0.33; 40.0 MB/s stranded on brokers 2, 3",
            1 / 3,
        ),
        (of(b1=2e6, b2=2e6, b3=2e6), seeing(*"123"), "broker 1 has 33% of it, fairness 1.00", 1.0),
        (of(b1=0.0, b2=0.0), seeing(*"123"), "of at most 60.0 MB/s; 20.0 MB/s stranded on broker 3", None),
        # broker 3 is not read
        (of(b1=6e6), seeing(*"12"), "broker 1 has 100% of it; ≥ 20.0 MB/s stranded on broker 2", None),
        (of(b1=6e6, b2=None), seeing(*"123"), "; 20.0 MB/s stranded on broker 3", None),
        (of(limit=None, b1=6e6), seeing(*"123"), "unlimited; broker 1 has 100% of it, fairness 0.33", 1 / 3),
        # broker 3, then each, was restarted within the hour, which ended what it knew
        (
            of(b1=6e6),
            seeing(nodes=(*seeing(*"12")["nodes"], started(3, 3_599.0))),
            "fairness 0.33; ≥ 20.0 MB/s stranded on broker 2",
            1 / 3,
        ),
        (
            of(b1=6e6, b3=6e6),
            seeing(nodes=(*seeing(*"12")["nodes"], started(3, 0.0))),
            "fairness 0.67; 20.0 MB/s stranded on broker 2",
            2 / 3,
        ),
        (
            of(b1=6e6),
            seeing(nodes=(*seeing("1")["nodes"], started(2, 3_600.0), started(3, 1e9))),
            "fairness 0.33; 40.0 MB/s stranded on brokers 2, 3",
            1 / 3,
        ),
        (
            of(b1=6e6),
            seeing(nodes=[started(broker, -5.0) for broker in (1, 2, 3)]),
            "has 100% of it, fairness 0.33",
            1 / 3,
        ),
        (of(b1=6e6), seeing(*"123", unsent=1), "broker 1 has 100% of it", None),
        (
            of(b1=6e6),
            {
                "nodes": (
                    *seeing(*"12")["nodes"],
                    NodeUsage(broker="3", coverage=replace(COMPLETE, complete=False, kinds={})),
                )
            },
            "broker 1 has 100% of it; ≥ 20.0 MB/s stranded on broker 2",
            None,
        ),
        (
            of(b1=6e6),
            seeing(*MANY, limits=replace(THREE, nodes=dict.fromkeys(MANY, NodeSettings()))),
            "; 120 MB/s stranded on brokers 2, 3, 4 and 3 more",
            1 / 7,
        ),
        (of(MUTATION, 5.0, b1=2.0), seeing(*"123"), "of at most 5.00 mut/s; broker 1 has 100% of it", None),
    ],
)
def test_what_no_traffic_can_use_is_stranded(
    rows: list[EntityUsage], changes: dict[str, Any], text: str, fairness: float | None
) -> None:
    """The limit on a broker that would show the entity and does not is stranded; of unread brokers nothing is known."""
    snapshot_of = state(*rows, **changes)
    (usage_of_cluster,) = cluster_usages(snapshot_of, snapshot_of.measured)
    assert cluster_sentence(usage_of_cluster).endswith(text)
    assert usage_of_cluster.fairness == pytest.approx(fairness)


def test_each_entity_has_one_line_however_many_brokers_it_is_on() -> None:
    """An entity has one line for all brokers, without entities of another name, quota type or callback."""
    rows = (
        *of(b1=1e6, b2=1e6, b3=2e6),
        usage(user="alice2", usage=9e6),
        usage(user="alic", usage=9e6),
        usage(QuotaType.FETCH, usage=9e6),
        usage(client_id="app", usage=9e6),
        usage(tags=("alice",), usage=9e6),
    )
    lines = cluster_lines(state(*rows), lambda entity: (entity.user, entity.client_id) == ("alice", ""))
    assert lines == [
        "produce, user alice: cluster 4.00 MB/s of at most 60.0 MB/s; broker 3 has 50% of it",
        "fetch, user alice: cluster 9.00 MB/s, limit unknown; broker 1 has 100% of it",
    ]


def test_hostile_names_stay_in_one_line() -> None:
    """A hostile name stays in one line of the sentence."""
    rows = (usage(user="\n\x1b[2J" * 3_000, usage=1.0, broker="\x1b"),)
    (line,) = cluster_lines(state(*rows), lambda _: True)
    assert line.isprintable()
    assert len(line) < 600
