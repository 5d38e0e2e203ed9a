"""The exporter as it runs, pushing to a real Collector while it is scraped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.collector.collector import Collector, collecting
from tests.exporter.otlp.collected import series
from tests.exporter.otlp.messages import Key
from tests.integration.eventually import eventually
from tests.integration.exporter import serving, settings_for

pytestmark = pytest.mark.real

VOLATILE = ("quotascope_snapshot_age", "quotascope_limits_age", "quotascope_source_age", "quotascope_otlp")
"""Ages go on, and a push counts itself only afterwards."""


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    """A Collector of its own."""
    with collecting(tmp_path / "collector") as collector:
        yield collector


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.usefixtures("scene")
def test_a_push_holds_what_a_scrape_shows(kafka: Cluster, collector: Collector, tmp_path: Path, protocol: str) -> None:
    """Of the same snapshot of a broker under load, the Collector has every series that /metrics has."""
    endpoint = collector.grpc if protocol == "grpc" else collector.http
    settings = {
        **settings_for(kafka.brokers, kafka.admin),
        "collection": {"max_age_seconds": 3600},  # both look at one snapshot
        "cluster": "prod",
        "otlp": {"endpoint": endpoint, "protocol": protocol},
    }
    with serving(tmp_path / "serve", settings) as exporter:
        pushed = eventually(lambda: series(collector))
        page = exporter.page()
    scraped = {(s.name, tuple(sorted((k, v) for k, v in s.labels.items() if v))): s.value for s in page.samples}
    assert stable(pushed) == stable(scraped)
    assert len(stable(pushed)) > 100


def stable(found: dict[Key, float]) -> dict[Key, float]:
    """The series whose values stand still."""
    return {key: value for key, value in found.items() if not key[0].startswith(VOLATILE)}
