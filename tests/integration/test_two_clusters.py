"""Two clusters with the same brokers, users and client-ids in one Prometheus: an exporter for each, and the label `cluster` between them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.conftest import Agent
from tests.commands import run
from tests.integration.eventually import eventually
from tests.integration.exporter import serving
from tests.integration.prometheus import Prometheus

pytestmark = pytest.mark.real
CLUSTERS = ("east", "west")


def test_rules_and_alerts_keep_clusters_apart(tmp_path: Path) -> None:
    """Each cluster has the series, the recorded ones and the alerts that it would have alone; west alone is throttled."""
    captures = ("split/throttled.1.jolokia2.json", "combined/noquota.jolokia2.json")
    run("alerts", "write", tmp_path / "rules").check_returncode()
    with ExitStack() as running:
        targets = []
        for cluster, capture in zip(CLUSTERS, captures, strict=True):
            agent = Agent(capture)
            running.callback(agent.close)
            source = {"name": "broker", "dialect": "jolokia", "url": agent.url}
            settings = {"cluster": cluster, "sources": [source], "log": {"format": "json"}}
            exporter = running.enter_context(serving(tmp_path / cluster, settings))
            targets.append(exporter.url.removeprefix("http://"))
        prometheus = Prometheus(
            tmp_path / "prometheus",
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [f"{tmp_path}/rules/*.yaml"],
                "scrape_configs": [{"job_name": "quotascope", "static_configs": [{"targets": targets}]}],
            },
        )
        running.callback(prometheus.child.end)

        def by_cluster(promql: str) -> dict[str, float]:
            return {labels.get("cluster", ""): value for labels, value in prometheus.query(promql)}

        def apart() -> None:
            assert by_cluster("count by (cluster) (quotascope_source_up)") == {"east": 1, "west": 1}
            throttled = "count by (cluster) (kafka_quota_throttle_time_seconds > 0)"
            assert by_cluster(throttled).keys() == {"east"}
            recorded = by_cluster('count by (cluster) ({__name__=~".+:.+"})')
            assert recorded.keys() == {*CLUSTERS}
            alerts = by_cluster('count by (cluster) (ALERTS{alertname="KafkaQuotaProduceThrottled"})')
            assert alerts.keys() == {"east"}

        eventually(apart)
