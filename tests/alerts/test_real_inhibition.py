"""What the example makes a real Alertmanager keep back, and what it must not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.alerts.promtool import ALERTS, GENERATED
from tests.cluster.ports import free_port
from tests.integration import web
from tests.integration.child import Child
from tests.integration.eventually import eventually

pytestmark = pytest.mark.real


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running Alertmanager with the example as its configuration."""

    url: str

    def fire(self, name: str, **labels: str) -> None:
        """Send an alert as Prometheus does."""
        alert = ALERTS[name]
        own = {"severity": alert.severity.value, "scope": alert.scope.value}
        body = [{"labels": {"alertname": name, **own, **labels}}]
        answer = web.ask(
            f"{self.url}/api/v2/alerts",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        assert answer.status == 200, answer.text

    def kept_back(self) -> dict[tuple[str, str], bool]:
        """Whether each alert is kept back, by its name and cluster."""
        alerts = json.loads(web.ask(f"{self.url}/api/v2/alerts").body)
        return {_key(alert["labels"]): _inhibited(alert) for alert in alerts}


def _key(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels["alertname"], labels.get("cluster", "")


def _inhibited(alert: Mapping[str, Mapping[str, object]]) -> bool:
    return bool(alert["status"]["inhibitedBy"])


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    """An Alertmanager of its own."""
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    assert program is not None, "no `prometheus-alertmanager`: run `make services`"
    address = f"127.0.0.1:{free_port()}"
    command = [
        program,
        f"--config.file={GENERATED / 'alertmanager-example.yaml'}",
        f"--storage.path={tmp_path / 'data'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    child = Child(command, tmp_path / "alertmanager.log")
    try:
        eventually(lambda: web.ask(f"http://{address}/-/ready"))
        yield Alertmanager(f"http://{address}")
    finally:
        child.end()


ENTITY = {"quota_type": "produce", "user": "alice"}
EVERYWHERE: Mapping[str, Mapping[str, str]] = {
    "KafkaQuotaProduceThrottled": ENTITY,
    "KafkaQuotaNearLimit": ENTITY,
    "KafkaQuotaHeavyClientWithoutLimit": ENTITY,
    "KafkaQuotaDelayQueueGrowing": {"quota_type": "produce", "broker": "1"},
    "KafkaQuotaSourceDown": {"instance": "x:1", "source": "broker-1"},
    "KafkaQuotaRuleChanged": {"quota_key": "producer_byte_rate"},
}


@pytest.mark.parametrize(
    ("cause", "kept_back"),
    [
        (
            "KafkaQuotaThrottleSpike",
            {
                "KafkaQuotaProduceThrottled",
                "KafkaQuotaNearLimit",
                "KafkaQuotaHeavyClientWithoutLimit",
                "KafkaQuotaDelayQueueGrowing",
            },
        ),
        (
            "KafkaQuotaExporterAbsent",
            {*EVERYWHERE} - {"KafkaQuotaSourceDown"},
        ),
        (
            "KafkaQuotaSnapshotStale",
            {*EVERYWHERE} - {"KafkaQuotaSourceDown"},
        ),
        (
            "KafkaQuotaLimitsStale",
            {"KafkaQuotaNearLimit", "KafkaQuotaHeavyClientWithoutLimit"},
        ),
    ],
)
def test_one_cause_keeps_its_effects_back(
    alertmanager: Alertmanager, cause: str, kept_back: set[str]
) -> None:
    """What follows from one alert is not told beside it, but only in the same cluster."""
    for name, labels in EVERYWHERE.items():
        for cluster in ("paris", "rome"):
            alertmanager.fire(name, cluster=cluster, **labels)
    alertmanager.fire(cause, cluster="paris")

    def as_expected() -> None:
        told = alertmanager.kept_back()
        for name in EVERYWHERE:
            near = name == "KafkaQuotaNearLimit"  # for who is throttled is at the limit
            assert told[name, "paris"] == (near or name in kept_back), name
            assert told[name, "rome"] == near, name
        assert not told[cause, "paris"]

    eventually(as_expected)


def test_an_exporter_that_hangs_keeps_no_page_back(alertmanager: Alertmanager) -> None:
    """Its twin still sees that many clients wait, and somebody must be woken up."""
    alertmanager.fire("KafkaQuotaSnapshotStale", cluster="paris", instance="x:1")
    alertmanager.fire("KafkaQuotaManyClientsThrottled", cluster="paris")
    alertmanager.fire("KafkaQuotaRuleChanged", cluster="paris", quota_key="k")

    def told() -> None:
        assert alertmanager.kept_back() == {
            ("KafkaQuotaSnapshotStale", "paris"): False,
            ("KafkaQuotaManyClientsThrottled", "paris"): False,
            ("KafkaQuotaRuleChanged", "paris"): True,
        }

    eventually(told)


def test_another_client_is_not_kept_back(alertmanager: Alertmanager) -> None:
    """Alice's throttle says nothing of Bob, nor of what Alice fetches."""
    alertmanager.fire("KafkaQuotaProduceThrottled", cluster="paris", **ENTITY)
    others = {
        "rome": ENTITY,
        "bob": {**ENTITY, "user": "bob"},
        "fetch": {**ENTITY, "quota_type": "fetch"},
    }
    for case, labels in others.items():
        cluster = "rome" if case == "rome" else "paris"
        alertmanager.fire("KafkaQuotaNearLimit", cluster=cluster, case=case, **labels)

    def told() -> None:
        assert alertmanager.kept_back() == {
            ("KafkaQuotaProduceThrottled", "paris"): False,
            ("KafkaQuotaNearLimit", "paris"): False,
            ("KafkaQuotaNearLimit", "rome"): False,
        }

    eventually(told)
