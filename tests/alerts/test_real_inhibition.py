"""What the example makes a real Alertmanager keep back, and what it must not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import pytest
from tests.alerts.specification import INHIBITED, SPECIFIED
from tests.cluster.ports import free_port
from tests.integration import web
from tests.integration.child import Child
from tests.integration.eventually import eventually

from quotascope.alerts import Site
from quotascope.alerts.files import alertmanager_file

pytestmark = pytest.mark.real

Labels = Mapping[str, str]
ENTITY_LABELS: Labels = {
    "quota_type": "produce",
    "user": "alice",
    "client_id": "app",
    "broker": "1",
    "slo": "billing",
}


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running Alertmanager with the example as its configuration."""

    url: str

    def fire(self, *alerts: Labels) -> None:
        """Send alerts as Prometheus does, with the severity and the scope that each is specified to have."""
        body = [{"labels": _complete(labels)} for labels in alerts]
        answer = web.ask(f"{self.url}/api/v2/alerts", json.dumps(body).encode(), {"Content-Type": "application/json"})
        assert answer.status == 200, answer.text

    def kept_back(self, *alerts: Labels) -> list[bool]:
        """Whether each of these alerts, identified by all of its labels, is kept back."""
        answer = web.ask(f"{self.url}/api/v2/alerts")
        found = {
            frozenset(alert["labels"].items()): bool(alert["status"]["inhibitedBy"])
            for alert in json.loads(answer.body)
        }
        wanted = [frozenset(_complete(labels).items()) for labels in alerts]
        assert {*wanted} <= {*found}
        return [found[labels] for labels in wanted]


def _complete(labels: Labels) -> dict[str, str]:
    specified = SPECIFIED[labels["alertname"]]
    return {**labels, "severity": specified.severity, "scope": specified.scope}


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    """One for all tests of this file: each fires in clusters of its own."""
    tmp_path = tmp_path_factory.mktemp("alertmanager")
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    assert program is not None, "no `prometheus-alertmanager`: run `make services`"
    address = f"127.0.0.1:{free_port()}"
    example = tmp_path / "alertmanager.yaml"
    example.write_text(alertmanager_file(Site()), encoding="utf-8")
    command = [
        program,
        f"--config.file={example}",
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


def pair(cause: str, effect: str) -> tuple[Labels, Labels]:
    """Two alerts that share all labels which any rule compares, in a cluster that no other pair is in."""
    shared = {**ENTITY_LABELS, "cluster": f"{cause} {effect}"}
    return (
        {**shared, "alertname": cause, "case": "cause"},
        {**shared, "alertname": effect, "case": "effect"},
    )


def test_every_alert_keeps_back_what_is_specified(alertmanager: Alertmanager) -> None:
    """Each alert beside each other one: kept back is what follows from it, and nothing else, ever."""
    pairs = [pair(*both) for both in permutations(SPECIFIED, 2)]
    alertmanager.fire(*(alert for both in pairs for alert in both))

    def as_specified() -> None:
        kept = alertmanager.kept_back(*(effect for _, effect in pairs))
        found: dict[str, set[str]] = {}
        for (cause, effect), back in zip(pairs, kept, strict=True):
            if back:
                found.setdefault(cause["alertname"], set()).add(effect["alertname"])
        expected = {cause: set[str]().union(*effects.values()) for cause, effects in INHIBITED.items()}
        assert found == expected

    eventually(as_specified)


def test_another_client_or_cluster_is_not_kept_back(alertmanager: Alertmanager) -> None:
    """Alice's throttle says nothing of Bob's limit, of what Alice fetches, nor of her namesake in another cluster."""
    alike, others = [], []
    for cause, effects in INHIBITED.items():
        for labels, targets in effects.items():
            for effect in targets:
                one, other = pair(cause, effect)
                alike += [one, other]
                others += [{**other, "case": name, name: f"another {other[name]}"} for name in labels]
    alertmanager.fire(*alike, *others)

    def as_specified() -> None:
        assert alertmanager.kept_back(*alike) == [False, True] * (len(alike) // 2)
        kept = zip(others, alertmanager.kept_back(*others), strict=True)
        assert [other for other, back in kept if back] == []

    eventually(as_specified)


def test_labels_that_are_not_compared_may_differ(alertmanager: Alertmanager) -> None:
    """A spike keeps back the throttle of any client on any broker; an exporter that is gone keeps back what its twin saw."""
    cases = {
        "KafkaQuotaThrottleSpike": "KafkaQuotaProduceThrottled",
        "KafkaQuotaExporterAbsent": "KafkaQuotaNearLimit",
        "KafkaQuotaLimitsStale": "KafkaQuotaNearLimit",
    }
    causes = [{"alertname": one, "cluster": f"other {one}"} for one in cases]
    effects: list[Labels] = [
        {**ENTITY_LABELS, "alertname": other, "cluster": f"other {one}"} for one, other in cases.items()
    ]
    alertmanager.fire(*causes, *effects)
    eventually(lambda: _all(alertmanager.kept_back(*effects)))


def _all(kept: list[bool]) -> None:
    assert kept == [True] * len(kept)
