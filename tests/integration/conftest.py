"""The exporter and the Prometheus that tests share, and the load that some of them look at."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic, in_background
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.scene import EXPECTED, RULES, load


@pytest.fixture(scope="session")
def exporter(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """Yield the exporter of the shared broker, by Jolokia; each scrape reads the broker again."""
    folder = tmp_path_factory.mktemp("exporter") / "serve"
    with serving(folder, settings_for(kafka.brokers, kafka.admin)) as exporter:
        yield exporter


@pytest.fixture(scope="module")
def scene(kafka: Cluster, traffic: Traffic, exporter: Exporter) -> Iterator[Exporter]:
    """Yield the exporter while the load of `scene` runs and every throttle of it has begun."""
    topic = traffic.topic(records=500)
    with closing(Quotas(kafka.connection())) as quotas:
        quotas.set(*RULES)
        # measured, but under no limit: the broker shows 1e20 tokens
        traffic.mutate("carol", "scene-admin", 1, validate_only=True)
        try:
            with in_background(*load(topic), cluster=kafka):
                eventually(lambda: _all_there(exporter), seconds=60)
                yield exporter
        finally:
            quotas.clear()


def _all_there(exporter: Exporter) -> None:
    page = exporter.page()
    for expected in EXPECTED:
        labels = {"user": expected.user, "client_id": expected.client_id}
        if expected.quota_type == "controller_mutation":  # no throttle is measured under KRaft
            value = page.get("kafka_quota_controller_mutations_per_second", **labels)
        else:
            value = page.get("kafka_quota_throttle_time_seconds", quota_type=expected.quota_type, **labels)
        assert value is not None, f"{expected} is not there"
        assert value > 0 or not expected.throttled, f"{expected} is not throttled"
