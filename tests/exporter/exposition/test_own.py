"""What an exporter says about itself, on numbers of which each stands for one thing only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.exporter.examples import NOW, health, snapshot, usage
from tests.exporter.exposition.oracle import on_page

from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import (
    DiscoveryHealth,
    EntityUsage,
    Folds,
    LimitsHealth,
    NodeUsage,
    PushHealth,
    ReloadHealth,
    Sampling,
    Snapshot,
)
from quotascope.metrics import QuotaType

LATER: Final = 40.0
"""Seconds from the snapshot to the scrape."""
EVERYTHING: Final = snapshot(
    *(usage(user=user, usage=1.0) for user in ("alice", "bob", "carol")),
    EntityUsage(entity=replace(usage(user="__overflow__").entity, stands_in=True)),
    sources=(
        health("one", duration_seconds=0.25, readings=31, read_at=NOW - 3),
        health("two", dialect="strimzi", up=False, duration_seconds=4.5, readings=0, read_at=NOW - 9),
        health("three", readings=33, stand_by_of="7"),
        health("four", readings=34, read_at=NOW + 90),  # its clock is ahead
    ),
    discoveries=(
        DiscoveryHealth(name="kafka", targets=5, errors_total=6),
        DiscoveryHealth(name="files", targets=0, errors_total=0),
    ),
    sampling=Sampling(samples=71, missed=8),
    push=PushHealth(
        exports_total={"success": 91, "failure": 12},
        points_total={"accepted": 13_000, "lost": 14},
    ),
    reload=ReloadHealth(succeeded_at=NOW - 15, error="broken"),
    folds=Folds(
        overflow=16,
        excluded=17,
        idle=18,
        series_dropped={"overflow": 19, "idle": 20, "detail": 21},
    ),
    nodes=(
        NodeUsage(broker="1", stale_entities={QuotaType.PRODUCE: 22, QuotaType.FETCH: 1}),
        NodeUsage(broker="2", stale_entities={QuotaType.REQUEST: 100}),
    ),
    limits=None,
    limits_health=LimitsHealth(
        read_at=NOW - 24, errors_total=25, changes_total={"consumer_byte_rate": 26}
    ),
)  # fmt: skip
TOLD: Final = """
source_up source=one 1
source_up source=two 0
source_up source=three 1
source_up source=four 1
source_duration_seconds source=one 0.25
source_duration_seconds source=two 4.5
source_duration_seconds source=three 0.25
source_duration_seconds source=four 0.25
source_readings source=one 31
source_readings source=two 0
source_readings source=three 33
source_readings source=four 34
source_age_seconds source=one 43
source_age_seconds source=four 0
source_stand_by source=three broker=7 1
source_dialect_info source=one dialect=jolokia 1
source_dialect_info source=two dialect=strimzi 1
source_dialect_info source=three dialect=jolokia 1
source_dialect_info source=four dialect=jolokia 1
discovered_sources discovery=kafka 5
discovered_sources discovery=files 0
discovery_errors_total discovery=kafka 6
discovery_errors_total discovery=files 0
samples_total 71
samples_missed_total 8
otlp_exports_total outcome=success 91
otlp_exports_total outcome=failure 12
otlp_points_total outcome=accepted 13000
otlp_points_total outcome=lost 14
limits_age_seconds 64
limits_refresh_errors_total 25
limit_changes_total quota_key=producer_byte_rate 0
limit_changes_total quota_key=consumer_byte_rate 26
limit_changes_total quota_key=request_percentage 0
limit_changes_total quota_key=controller_mutation_rate 0
limit_changes_total quota_key=connection_creation_rate 0
config_last_reload_successful 0
snapshot_age_seconds 40
entities state=exported 3
entities state=overflow 16
entities state=excluded 17
entities state=idle 18
entities state=stale 123
series_dropped reason=overflow 19
series_dropped reason=excluded 0
series_dropped reason=idle 20
series_dropped reason=detail 21
"""


def told(shown: Snapshot, seconds: float) -> list[str]:
    """The exporter's own series, but for its version, times of the day and what it says of brokers."""
    page = on_page(Renderer().render(shown, shown.taken_at + seconds))
    return sorted(
        " ".join(
            (name.removeprefix("quotascope_"), *(f"{k}={v}" for k, v in labels), f"{value:g}")
        )
        for name, labels, value in page
        if name.startswith("quotascope_") and "build_info" not in name and "timestamp" not in name and "callback" not in name
    )  # fmt: skip


def _sorted_labels(line: str) -> str:
    name, *labels, value = line.split()
    return " ".join((name, *sorted(labels), value))


def test_each_number_stands_in_its_own_series() -> None:
    """Ages grow until the scrape, and are never less than nothing; a source that stands by is of no age."""
    expected = sorted(map(_sorted_labels, TOLD.strip().splitlines()))
    assert told(EVERYTHING, LATER) == expected


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"sampling": None}, "samples_"),
        ({"push": None}, "otlp_"),
        ({"reload": None}, "config_"),
        ({"discoveries": ()}, "discover"),
        ({"sources": ()}, "source_"),
        ({"limits_health": LimitsHealth(configured=False)}, "limit_changes"),
        ({"limits_health": LimitsHealth(read_at=None)}, "limits_age"),
    ],
)
def test_what_there_is_not_has_no_series(changes: dict[str, Any], absent: str) -> None:
    """No series rather than a zero that would be read as a number."""
    given = {each: getattr(EVERYTHING, each) for each in ("sources", "discoveries", "sampling", "push", "reload")}  # fmt: skip
    shown = snapshot(**{**given, **changes})
    assert not [line for line in told(shown, 0) if line.startswith(absent)]
    everything = told(EVERYTHING, 0)
    assert [line for line in everything if line.startswith(absent)]


def test_the_time_of_the_last_reload_is_a_time_of_the_day() -> None:
    """In seconds since 1970, whether a later attempt failed or not."""
    name = "quotascope_config_last_reload_success_timestamp_seconds"
    page = on_page(Renderer().render(EVERYTHING, NOW))
    assert [sample for sample in page if sample[0] == name] == [(name, (), NOW - 15)]
