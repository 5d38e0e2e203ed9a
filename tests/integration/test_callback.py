"""A broker whose quotas come from a class of the operator (`java/TenantQuotas.java`)."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from tests.cluster import provision
from tests.cluster.cluster import Cluster, Layout, Plugin, running
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.commands import run
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for

pytestmark = pytest.mark.real

SOURCE: Final = Path(__file__).parent / "java" / "TenantQuotas.java"
TENANT: Final = 'alice\'s, "all" of *'
TAGS: Final = {"tag_quota_type": "PRODUCE", "tenant": TENANT}
THROTTLE: Final = "kafka_quota_callback_throttle_time_seconds"


@pytest.fixture(scope="module")
def tenant_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a node with that callback, a configured quota that it ignores, and a client that it has throttled."""
    folder = tmp_path_factory.mktemp("tenant")
    classes = folder / "classes"
    command = ["javac", "-Xlint:all", "-Werror", "-proc:none", "-cp", f"{provision.libs()}/*"]
    subprocess.run([*command, "-d", classes, SOURCE], check=True)
    settings = {"client.quota.callback.class": "TenantQuotas"}
    plugin = Plugin(settings=settings, classes=classes)
    with running(Layout.COMBINED, folder / "kafka", plugin=plugin) as cluster:
        with closing(Quotas(cluster.connection())) as quotas:
            quotas.set(({"user": "alice"}, {"producer_byte_rate": 1e6}))
        traffic = Traffic(cluster)
        traffic.produce("alice", "app", traffic.topic(), seconds=3)
        yield cluster


@pytest.fixture(scope="module", params=["jolokia", "own_rules"])
def exporter(
    tenant_kafka: Cluster, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Exporter]:
    """Yield an exporter of it, by Jolokia or by the page of our own rules."""
    settings = settings_for(tenant_kafka.brokers, tenant_kafka.admin)
    if request.param == "own_rules":
        url = tenant_kafka.brokers[0].agents.own_rules
        settings["sources"] = [{"dialect": "prometheus", "url": url}]
    with serving(tmp_path_factory.mktemp(request.param) / "serve", settings) as served:
        yield served


def test_tags_are_labels_and_no_limit_is_made_up(tenant_kafka: Cluster, exporter: Exporter) -> None:
    """
    Tags are labels as they are: no name is decoded, and one that a family needs itself is renamed.

    The number is the bean's.

    The configured rule is shown as what it is, and no client under it.
    """
    requests = [{"type": "read", "mbean": "kafka.server:type=Produce,*"}]

    def shown() -> None:
        (item,) = agent.ask(tenant_kafka.brokers[0].agents.jolokia, requests)
        (bean,) = (reported for name, reported in item["value"].items() if "alice" in name)
        page = exporter.page()
        assert page.value("quotascope_callback_detected", broker="1") == 1
        throttle = page.value(THROTTLE, quota_type="produce", broker="1", **TAGS)
        assert throttle == pytest.approx((bean["throttle-time"] or 0) / 1000)
        assert throttle > 0
        usage = "kafka_quota_callback_produce_bytes_per_second"
        assert page.labels(usage, tenant=TENANT) == {"broker": "1", **TAGS}
        assert page.get("kafka_quota_callback_request_threads", tenant=TENANT, tag_quota_type="REQUEST") is not None
        assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") == 1
        names = page.names()
        assert "kafka_quota_rule_produce_limit_bytes_per_second" in names
        assert not names & {
            "kafka_quota_produce_limit_bytes_per_second",
            "kafka_quota_utilization_ratio",
            "kafka_quota_rule_info",
            "kafka_quota_produce_bytes_per_second",
        }

    eventually(shown)


def test_commands_say_whose_quotas_they_are(exporter: Exporter) -> None:
    """The commands name the class of the broker's configuration; the configured quotas do not decide here."""
    assert "leaves quotas to TenantQuotas" in run("status", "--config", exporter.config).stdout
    process = run("explain", "--config", exporter.config, "--user", "alice", "--client-id", "app")
    assert process.returncode == 0
    assert "node 1 leaves quotas to TenantQuotas" in process.stderr
