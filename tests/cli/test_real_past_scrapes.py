"""Usage from a real Prometheus whose scrape interval changed, of agents and of exporters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.integration.backfilled import HOUR_S, Backfill, backfilled
from tests.integration.prometheus import Prometheus
from tests.prometheus.releases import RELEASES, Release

from quotascope.exporter.sources.prometheus_api import PrometheusApi

pytestmark = [pytest.mark.real, pytest.mark.slow]

RATE = 1e6
HOURS = 4


@cache
def begin_s() -> float:
    """Return the hour at which all samples begin; the same for all tests."""
    return time.time() // HOUR_S * HOUR_S - HOURS * HOUR_S


def times_of(*intervals: int) -> list[float]:
    """Return the times of scrapes in hours with these intervals."""
    return [
        begin_s() + hour * HOUR_S + at
        for hour, interval_s in enumerate(intervals)
        for at in range(3, HOUR_S, interval_s)
    ]


def the_series() -> Iterator[Backfill]:
    """Yield an agent whose interval changed twice, and two exporters that show one node, each at its own interval."""
    changed = times_of(30, 30, 10, 15)
    agent = {"job": "agents", "instance": "broker-1:9404"}
    yield Backfill("kafka_server_Produce_byte_rate", {**agent, "user": "alice"}, [(at, RATE) for at in changed])
    yield Backfill("kafka_server_app_info_StartTimeMs", {**agent, "id": "1"}, [(at, 1.7e12) for at in changed])
    for exporter, times in (("a:9749", times_of(30, 30, 10, 10)), ("b:9749", times_of(60, 60)[:-2])):
        target = {"job": "exporters", "instance": exporter}
        yield Backfill("quotascope_source_up", {**target, "source": "broker-1"}, [(at, 1.0) for at in times])
        for direction in ("produce", "fetch"):
            yield Backfill(
                f"kafka_quota_{direction}_bytes_per_second",
                {**target, "user": "alice", "client_id": "", "broker": "1"},
                [(at, RATE) for at in times],
            )


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def prometheus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield a Prometheus with these series."""
    release: Release = request.param
    with backfilled(tmp_path_factory.mktemp("scrapes") / "prometheus", the_series(), release) as prometheus:
        yield prometheus


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the hour in which the samples were made, however long the tests take."""

    async def in_that_hour(_api: PrometheusApi) -> float:
        return begin_s() + HOURS * HOUR_S + 60

    monkeypatch.setattr(PrometheusApi, "now", in_that_hour)


@pytest.mark.parametrize(("job", "count"), [("agents", 1), ("exporters", 2)])
def test_usage_is_whole_where_the_interval_changed(run: Run, prometheus: Prometheus, job: str, count: int) -> None:
    """Each sample stands for the time to the next one of its server; loads are marked by the longest interval."""
    address = f"http://{prometheus.address}"
    code, output, errors = run("usage", "--prometheus", address, "--selector", f'{{job="{job}"}}', "--json")
    assert code == 0, errors
    answer: dict[str, Any] = json.loads(output)
    rows = answer["clients"]
    assert len(rows) == count
    assert answer["end"] - answer["begin"] == HOURS * HOUR_S
    for row in rows:
        assert row["amount"] == pytest.approx(HOURS * HOUR_S * RATE, rel=0.002)
        assert (row["lower_bound"], row["approximate"]) == (False, True)
        assert row["seen_seconds"] == pytest.approx(HOURS * HOUR_S, rel=0.002)
    assert answer["nodes"]["1"]["shortest_scrape_interval_seconds"] == 10
    assert answer["nodes"]["1"]["scrape_interval_seconds"] == 30
    assert "every 10 to 30 s" in answer["caveats"][0]


def test_times_without_samples_are_those_of_all_families(run: Run, prometheus: Prometheus) -> None:
    """A time has a gap only if none of the exporters of two quota types was scraped."""
    address = f"http://{prometheus.address}"
    code, output, errors = run("episodes", "--prometheus", address, "--selector", '{job="exporters"}', "--json")
    assert code == 0, errors
    assert json.loads(output)["not_covered"] == []
