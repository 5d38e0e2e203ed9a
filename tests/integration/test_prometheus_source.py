"""An exporter that reads a real Prometheus has the numbers of one that reads the agents, but for their age."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from math import isnan
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.exporter.recorded import CAPTURES, DIALECT_PAGES
from tests.exporter.sources.prometheus_recording import PageServer
from tests.integration.agreement import assert_agree
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.prometheus import Prometheus, running
from tests.prometheus.releases import RELEASES, Release
from tests.servers import served

from quotascope.exporter.config import PrometheusConfig
from quotascope.exporter.discovery.build import server_of
from quotascope.exporter.errors import SourceError
from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.sources.prometheus_live import PrometheusNodeSource
from quotascope.exporter.sources.prometheus_text import TextReader

pytestmark = pytest.mark.real

AGENTS = ("jmx_exporter", "own_rules", "strimzi")
"""Dialects of the shared broker, a job of its own each; recorded pages of all are in `test_prometheus_live.py`."""
INSTANCE = "broker-1:9404"


@pytest.fixture(scope="module")
def prometheus(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield a Prometheus that scrapes the agents of the shared broker."""
    jobs = [
        {
            "job_name": agent,
            "static_configs": [{"targets": [_address(kafka, agent)], "labels": {"instance": INSTANCE, "node_id": "1"}}],
        }
        for agent in AGENTS
    ]
    config = {"global": {"scrape_interval": "5s", "scrape_timeout": "5s"}, "scrape_configs": jobs}
    with running(tmp_path_factory.mktemp("prometheus-source") / "prometheus", config) as prometheus:
        yield prometheus


def _address(kafka: Cluster, agent: str) -> str:
    return str(getattr(kafka.brokers[0].agents, agent)).removeprefix("http://").removesuffix("/metrics")


@pytest.fixture(scope="module", params=AGENTS)
def exporters(
    request: pytest.FixtureRequest,
    kafka: Cluster,
    scene: Exporter,  # noqa: ARG001 - its load runs meanwhile
    prometheus: Prometheus,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Exporter, Exporter]]:
    """Yield an exporter that reads an agent, and one that reads Prometheus, which scrapes that agent."""
    agent, folder = request.param, tmp_path_factory.mktemp("exporters")
    settings = settings_for(kafka.brokers, kafka.admin)
    direct = {"url": getattr(kafka.brokers[0].agents, agent), "node_id": 1}
    through = {"prometheus": {"url": f"http://{prometheus.address}", "selector": f'{{job="{agent}"}}'}}
    with (
        serving(folder / "direct", {**settings, "sources": [direct]}) as of_agent,
        serving(folder / "prometheus", {**settings, "sources": [through]}) as of_prometheus,
    ):
        yield of_agent, of_prometheus


def test_the_numbers_are_those_of_the_agent(exporters: tuple[Exporter, Exporter]) -> None:
    """Prometheus has all series of clients and nodes, and each number was one of the agent's."""
    assert_agree(*exporters)


def test_the_age_is_that_of_the_scrape(exporters: tuple[Exporter, Exporter]) -> None:
    """The age of a scrape is shown, and the source is named after the server and the instance."""
    _, of_prometheus = exporters
    (age,) = of_prometheus.page().series("quotascope_source_age_seconds")
    assert 0 < age.value < 60
    assert age.labels["source"].endswith(f"/{INSTANCE}")


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_pages_of_every_dialect_are_read_as_they_are(release: Release, tmp_path: Path) -> None:
    """Recorded pages that a Prometheus scrapes have the columns and numbers of the pages themselves: none is wrong."""
    pages = {name: (CAPTURES / "dialects" / name).read_bytes() for name in DIALECT_PAGES}
    with served(PageServer(pages)) as server:
        jobs = [server.job(name, [name]) for name in pages]
        config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": jobs}
        with running(tmp_path / "prometheus", config, release) as prometheus:
            for name, page in pages.items():
                table = eventually(partial(_read_once, prometheus, name))
                direct = TextReader().read(page)
                ours = dict(zip(table.layout.columns, table.values, strict=True))
                theirs = dict(zip(direct.layout.columns, direct.values, strict=True))
                wrong = {column for column, value in theirs.items() if ours.get(column) != value and not isnan(value)}
                assert (ours.keys() ^ theirs.keys(), wrong, table.coverage) == (set(), set(), direct.coverage)


def _read_once(prometheus: Prometheus, instance: str) -> BeanTable:
    return asyncio.run(_read(prometheus, instance))


async def _read(prometheus: Prometheus, instance: str) -> BeanTable:
    settings = PrometheusConfig(url=f"http://{prometheus.address}", selector=f'job="{instance}"', timeout_seconds=9.5)
    live, _ = server_of(settings)
    try:
        return await PrometheusNodeSource(instance, live, instance, "1").read()
    except SourceError as error:
        raise AssertionError(str(error)) from error
    finally:
        await live.close()
