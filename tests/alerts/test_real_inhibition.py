"""What the example makes a real Alertmanager keep back, and what it must not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import permutations

import pytest
import yaml
from tests.alerts.specification import INHIBITED, SPECIFIED
from tests.integration import web
from tests.integration.alerting.alertmanager import alerting
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
    "instance": "exporter:9749",
    "source": "broker-1",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Alertmanager with the example as its configuration; each test fires in clusters of its own."""
    folder = tmp_path_factory.mktemp("alertmanager")
    with alerting(folder / "running", yaml.safe_load(alertmanager_file(Site()))) as alertmanager:
        yield f"http://{alertmanager.address}/api/v2/alerts"


def fire(url: str, *alerts: Labels) -> None:
    """Send alerts as Prometheus does, with the severity and the scope that each is specified to have."""
    body = [{"labels": _complete(labels)} for labels in alerts]
    answer = web.ask(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    assert answer.status == 200, answer.text


def kept_back(url: str, *alerts: Labels) -> list[bool]:
    """Whether each of these alerts, identified by all of its labels, is kept back."""
    found = {
        frozenset(alert["labels"].items()): bool(alert["status"]["inhibitedBy"])
        for alert in json.loads(web.ask(url).body)
    }
    wanted = [frozenset(_complete(labels).items()) for labels in alerts]
    assert {*wanted} <= {*found}
    return [found[labels] for labels in wanted]


def _complete(labels: Labels) -> dict[str, str]:
    specified = SPECIFIED[labels["alertname"]]
    return {**labels, "severity": specified.severity, "scope": specified.scope}


def pair(cause: str, effect: str) -> tuple[Labels, Labels]:
    """Two alerts that share all labels which any rule compares, in a cluster that no other pair is in."""
    shared = {**ENTITY_LABELS, "cluster": f"{cause} {effect}"}
    return {**shared, "alertname": cause, "case": "cause"}, {**shared, "alertname": effect, "case": "effect"}


def test_every_alert_keeps_back_what_is_specified(url: str) -> None:
    """Each alert beside each other one: kept back is what follows from it, and nothing else, ever."""
    pairs = [pair(*both) for both in permutations(SPECIFIED, 2)]
    fire(url, *(alert for both in pairs for alert in both))

    def as_specified() -> None:
        kept = kept_back(url, *(effect for _, effect in pairs))
        found: dict[str, set[str]] = {}
        for (cause, effect), back in zip(pairs, kept, strict=True):
            if back:
                found.setdefault(cause["alertname"], set()).add(effect["alertname"])
        expected = {cause: set[str]().union(*effects.values()) for cause, effects in INHIBITED.items()}
        assert found == expected

    eventually(as_specified)


def test_another_client_or_cluster_is_not_kept_back(url: str) -> None:
    """Alice's throttle says nothing of Bob's limit, of what Alice fetches, nor of her namesake in another cluster."""
    alike, others = [], []
    for cause, effects in INHIBITED.items():
        for labels, targets in effects.items():
            for effect in targets:
                one, other = pair(cause, effect)
                alike += [one, other]
                others += [{**other, "case": name, name: f"another {other[name]}"} for name in labels]
    fire(url, *alike, *others)

    def as_specified() -> None:
        assert kept_back(url, *alike) == [False, True] * (len(alike) // 2)
        kept = zip(others, kept_back(url, *others), strict=True)
        assert [other for other, back in kept if back] == []

    eventually(as_specified)


def test_labels_that_are_not_compared_may_differ(url: str) -> None:
    """A spike keeps back the throttle of any client on any broker; an exporter that is gone keeps back what its twin saw."""
    cases = {
        "KafkaQuotaThrottleSpike": "KafkaQuotaProduceThrottled",
        "KafkaQuotaExporterAbsent": "KafkaQuotaNearLimit",
        "KafkaQuotaLimitsStale": "KafkaQuotaNearLimit",
    }
    causes = [{"alertname": one, "cluster": f"other {one}"} for one in cases]
    effects = [{**ENTITY_LABELS, "alertname": other, "cluster": f"other {one}"} for one, other in cases.items()]
    fire(url, *causes, *effects)

    def all_kept_back() -> None:
        assert kept_back(url, *effects) == [True] * len(effects)

    eventually(all_kept_back)
