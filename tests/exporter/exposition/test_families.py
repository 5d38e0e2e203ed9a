"""Every family, on a snapshot in which each number stands for one thing only, beside the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from tests.exporter.examples import COMPLETE, NOW, changes, health, in_shadow, limits, snapshot, team, usage
from tests.exporter.exposition.oracle import on_page, page, samples

from quotascope.exporter.coverage import Coverage, EntityKind, Unplaced
from quotascope.exporter.exposition import OPENMETRICS, TEXT, Renderer, TextFormat
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import (
    Callbacks,
    CapacityOrigin,
    DiscoveryHealth,
    Folds,
    LimitsHealth,
    NodeUsage,
    Peaks,
    PushHealth,
    ReloadHealth,
    Sampling,
    Shadow,
    Snapshot,
    Sold,
    ThrottleCause,
)
from quotascope.exporter.teams import TeamAdder, TeamCounter
from quotascope.metrics import catalog
from quotascope.metrics.catalog import families
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.pages.baseline import ThrottleChange

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
CONFIGURED: Final = limits(
    rules={
        kind: QuotaRules({QuotaEntity("alice"): 101.0 + number, QuotaEntity(DEFAULT): 111.0 + number})
        for number, kind in enumerate(QuotaType)
    }
)  # fmt: skip
NODE: Final = NodeUsage(
    broker="10",
    coverage=Coverage(kinds={FETCH: frozenset({EntityKind.USER})}, unplaced=Unplaced(count=45, example="x", labels=())),
    delay_queue_size={FETCH: 2.0},
    numbers={
        catalog.EXEMPT_REQUEST_THREADS: {(): 0.1},
        catalog.REQUEST_CAPACITY_THREADS: {(): 11.0},
        catalog.REQUEST_THROTTLED_SECONDS: {("Produce",): 4.0, ("Fetch",): 1.0},
        catalog.THROTTLING_ERRORS: {("CreateTopics",): 3.0},
        catalog.CALLBACK_THROTTLE_FACTOR: {(): 0.25},
        catalog.UTILIZATION_DISAGREEMENTS: {(): 44},
        catalog.CONTROLLER_EVENTS: {(): 40.0},
        catalog.CONTROLLER_EVENT_QUEUE_SECONDS: {(): 1.5},
        catalog.REQUEST_HANDLER_IDLE: {(): 0.51},
        catalog.REQUEST_HANDLER_IDLE_SECONDS: {(): 52.0},
        catalog.REQUEST_HANDLER_POOL_IDLE: {("controller",): 0.53, ("broker",): 0.54},
        catalog.REQUEST_HANDLER_POOL_IDLE_SECONDS: {("broker",): 55.0},
        catalog.NETWORK_PROCESSOR_IDLE: {(): 0.56},
        catalog.CONTROLLER_EVENT_IDLE: {(): 0.57},
        catalog.REQUEST_QUEUE_SIZE: {(): 58.0},
        catalog.REQUEST_QUEUE_SECONDS: {("Produce", "99"): 0.59, ("Fetch", "50"): 0.61},
        catalog.BROKER_CONNECTIONS_PER_SECOND: {(): 7.0},
        catalog.BROKER_CONNECTION_LIMIT: {(): 100.0},
        catalog.LISTENER_CONNECTIONS_PER_SECOND: {("TLS",): 2.0, ("SASL",): 5.0},
        catalog.LISTENER_CONNECTION_LIMIT: {("TLS",): None, ("SASL",): 6.0},
        catalog.LISTENER_CONNECTION_THROTTLE_SECONDS: {("TLS",): 0.0, ("SASL",): 0.3},
        catalog.IP_CONNECTIONS_PER_SECOND: {("10.0.0.1",): 4.5},
        catalog.IP_CONNECTION_LIMIT: {("10.0.0.1",): 5.5},
        catalog.IP_CONNECTION_THROTTLE_SECONDS: {("SASL",): 0.5},
        catalog.REPLICATION_BYTES_PER_SECOND: {("leader",): 900.0, ("follower",): None},
        catalog.REPLICATION_LIMIT: {("leader",): 1000.0, ("follower",): 0.0},
        catalog.REMOTE_STORAGE_BYTES_PER_SECOND: {("copy",): 50.0},
        catalog.REMOTE_STORAGE_LIMIT: {("copy",): 60.0},
        catalog.REMOTE_STORAGE_THROTTLE_SECONDS: {("copy",): 1.25},
    },
    stale_entities={PRODUCE: 22, FETCH: 1},
    quota_callback=True,
)
ENTITIES: Final = (
    *(
        usage(kind, user=user, broker=broker, configured=CONFIGURED, limit=1000.0, usage=250.0 + number)
        for number, kind in enumerate(QuotaType)
        for user, broker in (("alice", "2"), ("alice", "10"), ("bob", "2"))
    ),
    usage(PRODUCE, "carol", usage=5.0),
    usage(PRODUCE, "dora", detailed=False, limit=10.0, usage=9.0),
    usage(REQUEST, "erin", throttle_time_seconds=3.0, cause=ThrottleCause.CONTROLLER_MUTATION),
    usage(MUTATION, "fred", burst_tokens=22.0, tokens=-11.0),
    usage(FETCH, "gail", reported_utilization=0.75),
    usage(PRODUCE, "hugo", throttle_time_seconds=None),
    usage(FETCH, "__overflow__", stands_in=True),
    *(
        usage(kind, "", tags=("eu",), limit=40.0 + number, usage=31.0 + number, throttle_time_seconds=number)
        for number, kind in enumerate(QuotaType)
    ),
)  # fmt: skip
TEAMS: Final = tuple(
    replace(team(name, user=user), budgets={kind: 100.0 + place for place, kind in enumerate(QuotaType)})
    for name, user in (("payments", "alice"), ('et"l\n', "bob"), ("idle", "nobody"))
)
BROKERS: Final = ("1", "2", "10")
STATE_OF_TEAMS: Final = snapshot(
    *ENTITIES,
    limits=replace(CONFIGURED, nodes=dict.fromkeys(BROKERS, NodeSettings())),
    nodes=tuple(NodeUsage(broker=broker, coverage=COMPLETE) for broker in BROKERS),
)
SUMS: Final = TeamAdder(TEAMS).add_up(STATE_OF_TEAMS)
EVERYTHING: Final = snapshot(
    *ENTITIES,
    sources=(
        health("one", duration_seconds=0.25, readings=31, read_at=NOW - 3),
        health("two", dialect="strimzi", up=False, duration_seconds=4.5, readings=0, read_at=NOW - 9),
        health("three", readings=33, stand_by_of="7"),
        health("four", readings=34, read_at=NOW + 90, node_id="10"),  # its clock is ahead
    ),
    discoveries=(
        DiscoveryHealth(name="kafka", targets=5, errors_total=6, found_at=NOW),
        DiscoveryHealth(name="files", targets=0, errors_total=0),
    ),
    sampling=Sampling(samples=71, missed=8),
    push=PushHealth(
        exports_total={"success": 91, "failure": 12},
        points_total={"accepted": 13_000, "lost": 14}
    ),
    reload=ReloadHealth(succeeded_at=NOW - 15, error="broken"),
    restarts={"limits": 2, "trails": 0},
    certificate_ends={"/etc/quotascope/ca.pem": 1.8e9, '/etc/a b/"\n.pem': 1.7e9},
    log_lines_dropped=2,
    refused_requests={"busy": 3, "one_client": 0},
    process={
        "process_cpu_seconds_total": 31.5,
        "process_resident_memory_bytes": 32e6,
        "process_virtual_memory_bytes": 33e6,
        "process_open_fds": 34,
        "process_max_fds": 35,
        "process_start_time_seconds": NOW - 36,
    },
    folds=Folds(overflow=16, excluded=17, idle=18, series_dropped={"overflow": 19, "idle": 20, "detail": 21}),
    callbacks=Callbacks(labels=("zone",), folded=23),
    peaks=Peaks(
        utilization=np.arange(1.0, len(ENTITIES) + 1),
        burst_used=np.arange(201.0, len(ENTITIES) + 201),
        delay_queue_size={("10", FETCH): 27.0}
    ),
    shadows=(
        Shadow(
            name='hal"f',
            entities=(
                in_shadow(
                    usage(FETCH, "alice", limit=8.0, usage=12.0, throttle_time_seconds=5.5),
                    ThrottleChange.LONGER,
                    change_seconds=4.5,
                ),
                in_shadow(usage(REQUEST, "bob", limit=8.0, usage=2.0)),
            ),
            evaluated={(FETCH, "1"): 301, (REQUEST, "1"): 302},
            changes={(FETCH, "1"): changes(new=303, shorter=306), (REQUEST, "1"): changes()},
            unevaluated={(PRODUCE, "1", "finer"): 304}
        ),
        Shadow(name="other", changes={(FETCH, "1"): changes(ended=305)}),
    ),
    nodes=(
        NODE,
        NodeUsage(broker="9", numbers={catalog.EXEMPT_REQUEST_THREADS: {(): 0.2}}, stale_entities={REQUEST: 100}),
    ),
    limits=CONFIGURED,
    teams=TeamCounter().count(SUMS, SUMS.usage, STATE_OF_TEAMS, 0.0),
    sold={
        (PRODUCE, "2"): Sold(limits=401.0, capacity=100.0, origin=CapacityOrigin.OBSERVED),
        (REQUEST, "10"): Sold(limits=402.0, capacity=100.0, origin=CapacityOrigin.CONFIGURED),
    },
    limits_health=LimitsHealth(read_at=NOW - 24, errors_total=25, changes_total={"consumer_byte_rate": 26})
)  # fmt: skip


@pytest.mark.parametrize("text_format", [TEXT, OPENMETRICS])
@pytest.mark.parametrize("later", [40.0, -100.0])
@pytest.mark.parametrize("cluster", [None, "prod"])
def test_each_number_stands_in_its_own_series(text_format: TextFormat, later: float, cluster: str | None) -> None:
    """Each number has its family, labels and unit; ages grow until the scrape and are never negative."""
    expected = page(EVERYTHING, NOW + later, text_format, cluster)
    assert Renderer(cluster).render(EVERYTHING, NOW + later, text_format) == expected


def test_every_family_of_the_catalog_is_filled() -> None:
    """Every declared family is exposed, and no other one."""
    names_on_page = {name for name, _, _ in on_page(Renderer().render(EVERYTHING, NOW))}
    assert names_on_page == {family.name for family in families()}


def test_openmetrics_declares_types_and_units() -> None:
    """OpenMetrics's parser accepts each family: a constant 1 is an info, and a unit ends the name."""
    text = Renderer().render(EVERYTHING, NOW, OPENMETRICS).decode()
    families_by_name = {family.name: family for family in parse_openmetrics(text)}  # type: ignore[no-untyped-call]
    infos = {name for name, family in families_by_name.items() if family.type == "info"}
    assert infos == {"kafka_quota_rule", "kafka_quota_throttle_cause", "quotascope_source_dialect", "quotascope_build"}
    for name, unit in (
        ("kafka_quota_produce_bytes_per_second", "bytes_per_second"),
        ("kafka_quota_request_throttled_seconds", "seconds"),
        ("kafka_quota_utilization_ratio", "ratio"),
        ("process_resident_memory_bytes", "bytes"),
        ("kafka_quota_rules", ""),
        ("kafka_quota_controller_mutation_burst_tokens", ""),
    ):
        assert families_by_name[name].unit == unit


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"sampling": None}, "quotascope_samples_"),
        ({"process": {}}, "process_"),
        ({"push": None}, "quotascope_otlp_"),
        ({"reload": None}, "quotascope_config_"),
        ({"discoveries": ()}, "quotascope_discover"),
        ({"sources": ()}, "quotascope_source_"),
        ({"limits_health": LimitsHealth(configured=False)}, "quotascope_limit_changes"),
        ({"limits_health": LimitsHealth(read_at=None)}, "quotascope_limits_age"),
        ({"limits": None}, "kafka_quota_rules"),
        ({"peaks": None}, "kafka_quota_utilization_max"),
        ({"shadows": ()}, "kafka_quota_shadow_"),
    ],
)
def test_what_there_is_not_has_no_series(changes: dict[str, Any], absent: str) -> None:
    """No series rather than a zero that would be read as a number."""

    def found(state: Snapshot) -> set[str]:
        series = on_page(Renderer().render(state, NOW))
        assert set(series) == samples(state, NOW)
        return {name for name, _, _ in series if name.startswith(absent)}

    assert found(EVERYTHING)
    assert not found(replace(EVERYTHING, **changes))
