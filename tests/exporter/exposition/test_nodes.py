"""Series of the quotas beside the client quotas."""

import pytest
from tests.exporter.examples import NOW, snapshot

from quotascope.exporter.exposition import SnapshotCollector
from quotascope.exporter.snapshot import ConnectionUsage, LimitedRate, NodeUsage

NODE = NodeUsage(
    broker="10",
    connections=ConnectionUsage(
        broker=LimitedRate(rate=7.0, limit=100.0),
        listeners={
            "TLS": LimitedRate(rate=2.0, throttle_time_seconds=0.0),
            "SASL": LimitedRate(rate=5.0, limit=6.0, throttle_time_seconds=0.3),
        },
        ips={"10.0.0.1": LimitedRate(rate=4.0, limit=5.0)},
        ip_throttle_time_seconds={"SASL": 0.5},
    ),
    replication={
        "leader": LimitedRate(rate=900.0, limit=1000.0),
        "follower": LimitedRate(limit=0.0),
    },
    remote_storage={
        "copy": LimitedRate(rate=50.0, limit=60.0, throttle_time_seconds=1.5)
    },
)


def shown() -> dict[str, list[tuple[dict[str, str], float]]]:
    """The families about these quotas, of a cluster with one idle node more."""
    page = SnapshotCollector(snapshot(nodes=(NODE, NodeUsage(broker="9"))), NOW)
    return {
        metric.name: [(sample.labels, sample.value) for sample in metric.samples]
        for metric in page.collect()
        if "connection" in metric.name or "_re" in metric.name
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("broker_connections_per_second", [({}, 7)]),
        ("broker_connection_limit_per_second", [({}, 100)]),
        (
            "listener_connections_per_second",
            [({"listener": "SASL"}, 5), ({"listener": "TLS"}, 2)],
        ),
        ("listener_connection_limit_per_second", [({"listener": "SASL"}, 6)]),
        (
            "listener_connection_throttle_seconds",
            [({"listener": "SASL"}, 0.3), ({"listener": "TLS"}, 0)],
        ),
        ("ip_connections_per_second", [({"ip": "10.0.0.1"}, 4)]),
        ("ip_connection_limit_per_second", [({"ip": "10.0.0.1"}, 5)]),
        ("ip_connection_throttle_seconds", [({"listener": "SASL"}, 0.5)]),
        ("replication_bytes_per_second", [({"direction": "leader"}, 900)]),
        (
            "replication_limit_bytes_per_second",
            [({"direction": "follower"}, 0), ({"direction": "leader"}, 1000)],
        ),
        ("remote_storage_bytes_per_second", [({"direction": "copy"}, 50)]),
        ("remote_storage_limit_bytes_per_second", [({"direction": "copy"}, 60)]),
        ("remote_storage_throttle_time_seconds", [({"direction": "copy"}, 1.5)]),
    ],
)
def test_each_family_has_its_scope(
    name: str, expected: list[tuple[dict[str, str], float]]
) -> None:
    """One family for each scope, so that a sum means something; what a node does not say is absent."""
    assert shown()[f"kafka_quota_{name}"] == [
        ({"broker": "10", **labels}, value) for labels, value in expected
    ]
