"""Every family, on a snapshot in which each number stands for one thing only, beside the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from tests.exporter.examples import NOW, health, limits, snapshot, usage
from tests.exporter.exposition.oracle import on_page, page, samples

from quotascope.exporter.exposition import OPENMETRICS, TEXT, Renderer, TextFormat
from quotascope.exporter.snapshot import (
    Callbacks,
    ConnectionUsage,
    DiscoveryHealth,
    Folds,
    LimitedRate,
    LimitsHealth,
    NodeLoad,
    NodeUsage,
    Peaks,
    PushHealth,
    ReloadHealth,
    Sampling,
    Shadow,
    Snapshot,
    ThrottleCause,
)
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import families

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
CONFIGURED: Final = limits(
    rules={
        kind: QuotaRules({QuotaEntity("alice"): 101.0 + at, QuotaEntity(DEFAULT): 111.0 + at})
        for at, kind in enumerate(QuotaType)
    }
)  # fmt: skip
NODE: Final = NodeUsage(
    broker="10",
    delay_queue_size={FETCH: 2.0},
    exempt_request_threads=0.1,
    request_capacity_threads=11.0,
    request_throttled_seconds={"Produce": 4.0, "Fetch": 1.0},
    throttling_errors={"CreateTopics": 3.0},
    stale_entities={PRODUCE: 22, FETCH: 1},
    quota_callback=True,
    throttle_factor=0.25,
    utilization_disagreements=44,
    controller_events=40.0,
    controller_event_queue_seconds=1.5,
    load=NodeLoad(
        handlers_idle=0.51,
        handlers_idle_seconds=52.0,
        pools_idle={"controller": 0.53, "broker": 0.54},
        pools_idle_seconds={"broker": 55.0},
        network_idle=0.56,
        controller_idle=0.57,
        request_queue_size=58.0,
        request_queue_seconds={("Produce", "99"): 0.59, ("Fetch", "50"): 0.61},
    ),
    connections=ConnectionUsage(
        broker=LimitedRate(rate=7.0, limit=100.0),
        listeners={
            "TLS": LimitedRate(rate=2.0, throttle_time_seconds=0.0),
            "SASL": LimitedRate(rate=5.0, limit=6.0, throttle_time_seconds=0.3),
        },
        ips={"10.0.0.1": LimitedRate(rate=4.5, limit=5.5)},
        ip_throttle_time_seconds={"SASL": 0.5},
    ),
    replication={
        "leader": LimitedRate(rate=900.0, limit=1000.0),
        "follower": LimitedRate(limit=0.0),
    },
    remote_storage={"copy": LimitedRate(rate=50.0, limit=60.0, throttle_time_seconds=1.25)},
)
ENTITIES: Final = (
    *(
        usage(kind, user=user, broker=broker, of=CONFIGURED, limit=1000.0, usage=250.0 + at)
        for at, kind in enumerate(QuotaType)
        for user, broker in (("alice", "2"), ("alice", "10"), ("bob", "2"))
    ),
    usage(PRODUCE, "carol", usage=5.0),
    usage(PRODUCE, "dora", detailed=False, limit=10.0, usage=9.0),
    usage(REQUEST, "erin", throttle_time_seconds=3.0, cause=ThrottleCause.CONTROLLER_MUTATION),
    usage(MUTATION, "fred", burst_tokens=22.0, tokens=-11.0, refused_mutations_total=4.0),
    usage(FETCH, "gail", throttled_seconds_total=8.0, throttled_requests_total=9.0, reported_utilization=0.75),
    usage(PRODUCE, "hugo", throttle_time_seconds=None),
    usage(FETCH, "__overflow__", stands_in=True),
    *(usage(kind, "", tags=("eu",), limit=40.0 + at, usage=31.0 + at, throttle_time_seconds=at) for at, kind in enumerate(QuotaType)),
)  # fmt: skip
EVERYTHING: Final = snapshot(
    *ENTITIES,
    sources=(
        health("one", duration_seconds=0.25, readings=31, read_at=NOW - 3),
        health("two", dialect="strimzi", up=False, duration_seconds=4.5, readings=0, read_at=NOW - 9),
        health("three", readings=33, stand_by_of="7"),
        health("four", readings=34, read_at=NOW + 90),  # its clock is ahead
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
            entities=(usage(FETCH, "alice", limit=8.0, usage=12.0, throttle_time_seconds=5.5), usage(REQUEST, "bob", limit=8.0, usage=2.0)),
            evaluated={(FETCH, "1"): 301, (REQUEST, "1"): 302},
            throttled={(FETCH, "1"): 303, (REQUEST, "1"): 0},
            unevaluated={(PRODUCE, "1", "finer"): 304}
        ),
        Shadow(name="other", throttled={(FETCH, "1"): 305}),
    ),
    nodes=(NODE, NodeUsage(broker="9", exempt_request_threads=0.2, stale_entities={REQUEST: 100})),
    limits=CONFIGURED,
    limits_health=LimitsHealth(read_at=NOW - 24, errors_total=25, changes_total={"consumer_byte_rate": 26})
)  # fmt: skip


@pytest.mark.parametrize("text_format", [TEXT, OPENMETRICS])
@pytest.mark.parametrize("later", [40.0, -100.0])
@pytest.mark.parametrize("cluster", [None, "prod"])
def test_each_number_stands_in_its_own_series(text_format: TextFormat, later: float, cluster: str | None) -> None:
    """Families, labels and units; ages grow until the scrape, and are never negative when a clock was set back."""
    expected = page(EVERYTHING, NOW + later, text_format, cluster)
    assert Renderer(cluster).render(EVERYTHING, NOW + later, text_format) == expected


def test_every_family_of_the_catalog_is_filled() -> None:
    """A family that is declared is also exposed, and nothing else is."""
    shown = {name for name, _, _ in on_page(Renderer().render(EVERYTHING, NOW))}
    assert shown == {family.name for family in families()}


def test_openmetrics_declares_types_and_units() -> None:
    """Its parser accepts each family: what is always 1 is an info, and a unit ends the name."""
    text = Renderer().render(EVERYTHING, NOW, OPENMETRICS).decode()
    found = {each.name: each for each in parse_openmetrics(text)}  # type: ignore[no-untyped-call]
    infos = {name for name, each in found.items() if each.type == "info"}
    assert infos == {"kafka_quota_rule", "kafka_quota_throttle_cause", "quotascope_source_dialect", "quotascope_build"}
    for name, unit in (
        ("kafka_quota_produce_bytes_per_second", "bytes_per_second"),
        ("kafka_quota_throttled_seconds", "seconds"),
        ("kafka_quota_utilization_ratio", "ratio"),
        ("process_resident_memory_bytes", "bytes"),
        ("kafka_quota_rules", ""),
        ("kafka_quota_controller_mutation_burst_tokens", ""),
    ):
        assert found[name].unit == unit


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

    def found(shown: Snapshot) -> set[str]:
        series = on_page(Renderer().render(shown, NOW))
        assert set(series) == samples(shown, NOW)
        return {name for name, _, _ in series if name.startswith(absent)}

    assert found(EVERYTHING)
    assert not found(replace(EVERYTHING, **changes))
