from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.exporter.examples import NOW, health, limits, snapshot, usage
from tests.exporter.exposition.test_own import EVERYTHING

from quotascope.exporter.exposition import SnapshotCollector, own_version
from quotascope.exporter.exposition.families import COLUMNS
from quotascope.exporter.exposition.rows import Exposed
from quotascope.exporter.snapshot import (
    Cause,
    ConnectionUsage,
    LimitedRate,
    LimitsHealth,
    NodeUsage,
    Snapshot,
)
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import families

MUTATION = QuotaType.CONTROLLER_MUTATION
ALICE = {"user": "alice", "client_id": ""}
ALICE_ON_1 = {"broker": "1", **ALICE}


def series(
    shown: Snapshot, name: str, cluster: str | None = None
) -> list[tuple[dict[str, str], float]]:
    """The series of one family: labels and value."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(shown, NOW, cluster))
    return [
        (sample.labels, sample.value)
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == name
    ]


def test_every_family_of_the_catalogue_is_filled() -> None:
    """A family that is declared is also exposed, and nothing else is."""
    rate = LimitedRate(rate=1.0, limit=2.0, throttle_time_seconds=3.0)
    each = {"name": rate}
    node = NodeUsage(
        broker="1",
        request_throttled_seconds={"exempt": 1.0},
        throttling_errors={"Produce": 1.0},
        connections=ConnectionUsage(
            listeners=each, ips=each, ip_throttle_time_seconds={"name": 1.0}
        ),
        replication=each,
        remote_storage=each,
    )
    rules = {kind: QuotaRules({QuotaEntity(DEFAULT): 1.0}) for kind in QuotaType}
    shown = replace(
        EVERYTHING,
        nodes=(node,),
        limits=limits(rules=rules, connection_limits={"10.0.0.1": 1.0}),
        restarts={"refresh": 1},
    )
    names = set(Exposed(shown, NOW).rows)
    columns = {family.name for family in COLUMNS}
    assert not names & columns
    assert names | columns == {family.name for family in families()}


@pytest.mark.parametrize(
    ("quota_type", "name"),
    [
        (QuotaType.PRODUCE, "kafka_quota_produce_bytes_per_second"),
        (QuotaType.FETCH, "kafka_quota_fetch_bytes_per_second"),
        (QuotaType.REQUEST, "kafka_quota_request_threads"),
        (MUTATION, "kafka_quota_controller_mutations_per_second"),
    ],
)
def test_usage_has_a_family_for_each_unit(quota_type: QuotaType, name: str) -> None:
    """Bytes, threads and mutations are never added up by accident."""
    assert series(snapshot(usage(quota_type, usage=3.0)), name) == [(ALICE_ON_1, 3.0)]


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("throttle_time_seconds", "kafka_quota_throttle_time_seconds"),
        ("throttled_seconds_total", "kafka_quota_throttled_seconds_total"),
        ("throttled_requests_total", "kafka_quota_throttled_requests_total"),
    ],
)
def test_throttling_is_told_by_quota_type(field: str, name: str) -> None:
    """What has the same unit for all quota types shares a family."""
    numbers: dict[str, Any] = {field: 1.5}
    labels = {"quota_type": "produce", **ALICE_ON_1}
    assert series(snapshot(usage(**numbers)), name) == [(labels, 1.5)]


def test_unthrottled_is_zero() -> None:
    """An alert on throttle time finds a series for everybody."""
    shown = series(snapshot(usage()), "kafka_quota_throttle_time_seconds")
    assert [value for _, value in shown] == [0.0]


def test_mutation_bucket() -> None:
    """Tokens, size of the bucket, how much of it is used, and refusals; debt is negative."""
    shown = snapshot(
        usage(MUTATION, burst_tokens=22.0, tokens=-11.0, rejected_mutations_total=4.0)
    )
    for name, labels, value in (
        ("kafka_quota_controller_mutation_tokens", ALICE_ON_1, -11.0),
        ("kafka_quota_controller_mutation_burst_tokens", ALICE, 22.0),
        ("kafka_quota_controller_mutation_burst_used_ratio", ALICE_ON_1, 1.5),
        ("kafka_quota_rejected_mutations_total", ALICE_ON_1, 4.0),
    ):
        assert series(shown, name) == [(labels, value)]


def test_utilisation_is_per_broker_and_the_limit_is_not() -> None:
    """Each broker applies the whole limit: two brokers, two ratios, one limit and one rule."""
    configured = limits()
    shown = snapshot(
        usage(of=configured, limit=1000.0, usage=250.0, broker="2"),
        usage(of=configured, limit=1000.0, usage=500.0, broker="10"),
    )
    ratios = series(shown, "kafka_quota_utilization_ratio")
    assert [(labels["broker"], value) for labels, value in ratios] == [
        ("2", 0.25),
        ("10", 0.5),
    ]
    limit = series(shown, "kafka_quota_produce_limit_bytes_per_second")
    assert limit == [(ALICE, 1000.0)]
    rule = {"level": "user", "rule_user": "alice", "rule_client_id": ""}
    assert series(shown, "kafka_quota_rule_info") == [
        ({"quota_type": "produce", **ALICE, **rule}, 1.0)
    ]


def test_unlimited_entity_has_usage_only() -> None:
    """No limit, rule or utilisation is made up."""
    shown = snapshot(usage(usage=5.0))
    for name in (
        "kafka_quota_produce_limit_bytes_per_second",
        "kafka_quota_rule_info",
        "kafka_quota_utilization_ratio",
        "kafka_quota_throttle_cause_info",
    ):
        assert series(shown, name) == []


def test_cause_of_a_throttle() -> None:
    """A throttle by a mutation quota is not blamed on the request quota."""
    shown = snapshot(
        usage(
            QuotaType.REQUEST,
            throttle_time_seconds=3.0,
            cause=Cause.CONTROLLER_MUTATION,
        )
    )
    assert series(shown, "kafka_quota_throttle_cause_info") == [
        (
            {"quota_type": "request", **ALICE_ON_1, "cause": "controller_mutation"},
            1.0,
        )
    ]


def test_configured_rules_are_shown_used_or_not() -> None:
    """Rules have their own families, request time in threads."""
    shown = snapshot()
    rules = series(shown, "kafka_quota_rule_produce_limit_bytes_per_second")
    assert [(tuple(labels.values()), value) for labels, value in rules] == [
        (("default_user", "<default>", ""), 500.0),
        (("user", "alice", ""), 1000.0),
    ]
    request = series(shown, "kafka_quota_rule_request_limit_threads")
    assert [value for _, value in request] == [0.5]
    connection = series(shown, "kafka_quota_rule_connection_limit_per_second")
    assert connection == [({"ip": "<default>"}, 7.0)]
    counts = {
        labels["quota_key"]: value
        for labels, value in series(shown, "kafka_quota_rules")
    }
    assert counts == {
        "producer_byte_rate": 2.0,
        "consumer_byte_rate": 0.0,
        "request_percentage": 1.0,
        "controller_mutation_rate": 0.0,
        "connection_creation_rate": 1.0,
    }


def test_without_limits_there_are_no_rules() -> None:
    """Zero rules is another statement than rules that nobody could read."""
    shown = snapshot(limits=None, limits_health=LimitsHealth(error="no"))
    assert series(shown, "kafka_quota_rules") == []
    assert series(shown, "quotascope_limits_age_seconds") == []


def test_changes_are_counted_from_zero() -> None:
    """``increase()`` needs the zero before the first change."""
    shown = snapshot(
        limits_health=LimitsHealth(changes_total={"request_percentage": 2})
    )
    changes = series(shown, "quotascope_limit_changes_total")
    assert sorted(value for _, value in changes) == [0.0, 0.0, 0.0, 0.0, 2.0]


def test_node_families() -> None:
    """What nodes say of themselves, nodes in the order of their numbers."""
    node = NodeUsage(
        broker="10",
        delay_queue_size={QuotaType.FETCH: 2.0},
        exempt_request_threads=0.1,
        request_capacity_threads=11.0,
        request_throttled_seconds={"Produce": 4.0, "Fetch": 1.0},
        throttling_errors={"CreateTopics": 3.0},
        stale_entities={QuotaType.PRODUCE: 2},
        controller_events=40.0,
        controller_event_queue_seconds=1.5,
    )
    shown = snapshot(nodes=(node, NodeUsage(broker="9", exempt_request_threads=0.2)))
    for name, expected in (
        (
            "kafka_quota_delay_queue_size",
            [({"quota_type": "fetch", "broker": "10"}, 2)],
        ),
        (
            "kafka_quota_exempt_request_threads",
            [({"broker": "9"}, 0.2), ({"broker": "10"}, 0.1)],
        ),
        ("kafka_quota_request_capacity_threads", [({"broker": "10"}, 11)]),
        (
            "kafka_quota_request_throttled_seconds_total",
            [
                ({"broker": "10", "request": "Fetch"}, 1),
                ({"broker": "10", "request": "Produce"}, 4),
            ],
        ),
        (
            "kafka_quota_throttling_errors_total",
            [({"broker": "10", "request": "CreateTopics"}, 3)],
        ),
        (
            "kafka_quota_stale_entities",
            [({"quota_type": "produce", "broker": "10"}, 2)],
        ),
        (
            "kafka_quota_controller_event_queue_seconds_total",
            [({"broker": "10"}, 1.5)],
        ),
        ("kafka_quota_controller_events_total", [({"broker": "10"}, 40)]),
        (
            "quotascope_entities",
            [
                ({"state": "exported"}, 0),
                ({"state": "overflow"}, 0),
                ({"state": "excluded"}, 0),
                ({"state": "idle"}, 0),
                ({"state": "stale"}, 2),
            ],
        ),
    ):
        assert series(shown, name) == expected


def test_own_families() -> None:
    """The exporter tells how its own work goes."""
    shown = snapshot(
        taken_at=NOW - 2,
        sources=(health(), health("b2", up=False, error="no", dialect="jmx_exporter")),
        limits_health=LimitsHealth(read_at=NOW - 5, errors_total=3),
        restarts={"limits": 2, "trails": 0},
    )
    for name, expected in (
        ("quotascope_source_up", [({"source": "broker-1"}, 1), ({"source": "b2"}, 0)]),
        (
            "quotascope_source_duration_seconds",
            [({"source": "broker-1"}, 0.25), ({"source": "b2"}, 0.25)],
        ),
        (
            "quotascope_source_readings",
            [({"source": "broker-1"}, 12), ({"source": "b2"}, 12)],
        ),
        (
            "quotascope_source_dialect_info",
            [
                ({"source": "broker-1", "dialect": "jolokia"}, 1),
                ({"source": "b2", "dialect": "jmx_exporter"}, 1),
            ],
        ),
        ("quotascope_limits_age_seconds", [({}, 5)]),
        ("quotascope_limits_refresh_errors_total", [({}, 3)]),
        (
            "quotascope_background_restarts_total",
            [({"task": "limits"}, 2), ({"task": "trails"}, 0)],
        ),
        ("quotascope_snapshot_age_seconds", [({}, 2)]),
        ("quotascope_build_info", [({"version": own_version()}, 1)]),
    ):
        assert series(shown, name) == expected


def test_ages_are_never_negative() -> None:
    """A clock that was set back does not make numbers from the future."""
    shown = snapshot(taken_at=NOW + 9, limits_health=LimitsHealth(read_at=NOW + 9))
    assert series(shown, "quotascope_snapshot_age_seconds") == [({}, 0)]
    assert series(shown, "quotascope_limits_age_seconds") == [({}, 0)]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_left_out(value: float | None) -> None:
    """No NaN ever reaches a query."""
    shown = snapshot(usage(usage=value))
    assert series(shown, "kafka_quota_produce_bytes_per_second") == []


def test_cluster_is_one_more_label() -> None:
    """One Prometheus can scrape the exporters of several clusters."""
    shown = series(
        snapshot(usage(usage=1.0)), "kafka_quota_produce_bytes_per_second", "prod"
    )
    assert shown == [({**ALICE_ON_1, "cluster": "prod"}, 1.0)]
    assert series(snapshot(), "quotascope_snapshot_age_seconds", "prod") == [
        ({"cluster": "prod"}, 0.0)
    ]


def test_nothing_is_exposed_twice() -> None:
    """Two entities of one name and node give one series, since a second one would spoil the scrape."""
    shown = snapshot(usage(usage=1.0), usage(usage=2.0))
    assert len(series(shown, "kafka_quota_produce_bytes_per_second")) == 1


def test_order_does_not_depend_on_the_snapshot() -> None:
    """Two scrapes of the same state differ in nothing."""
    first, second = usage(user="b", usage=1.0), usage(user="a", usage=2.0)
    name = "kafka_quota_produce_bytes_per_second"
    assert series(snapshot(first, second), name) == series(
        snapshot(second, first), name
    )
