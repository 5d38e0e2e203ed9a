"""Inhibitions of the example in a real Alertmanager."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Final

import pytest
import yaml
from tests.alerts.promtool import ALERTMANAGER, ALERTS
from tests.integration import web
from tests.integration.alerting.alertmanager import alerting
from tests.integration.eventually import eventually

pytestmark = pytest.mark.real

Labels = Mapping[str, str]
ENTITY: Final = ("cluster", "quota_type", "user", "client_id")
BUDGET: Final = ("cluster", "slo", "user", "client_id")
CLUSTER: Final = ("cluster",)
BROKER: Final = ("cluster", "broker")


def _of_scope(*scopes: str) -> frozenset[str]:
    return frozenset(name for name, rule in ALERTS.items() if rule["labels"]["scope"] in scopes)


_ON_CALL: Final = frozenset({"KafkaQuotaThrottleSpike", "KafkaQuotaManyClientsThrottled"})
_NEAR: Final = frozenset({"KafkaQuotaNearLimit", "KafkaQuotaLimitPredicted"})
_BY_LIMIT: Final = _NEAR | {"KafkaQuotaHeavyClientWithoutLimit", "KafkaQuotaSystemUserThrottledByDefault"}
_THROTTLED: Final = frozenset(
    f"KafkaQuota{kind}Throttled" for kind in ("Client", "Produce", "Fetch", "Request", "Mutation")
)
_BEYOND_TIMEOUT: Final = "KafkaQuotaThrottleBeyondClientTimeout"
_OF_CLUSTERS: Final = _of_scope("entity", "team", "broker", "cluster", "configuration")
INHIBITED: Final[Mapping[str, Mapping[tuple[str, ...], frozenset[str]]]] = {
    # the cluster is affected: one message instead of one for each client, broker and job
    "KafkaQuotaThrottleSpike": {
        CLUSTER: _of_scope("entity", "broker", "job") | {"KafkaQuotaManyClientsThrottled", "KafkaQuotaThrottleStorm"}
    },
    "KafkaQuotaManyClientsThrottled": {CLUSTER: _of_scope("entity", "broker", "job") | {"KafkaQuotaThrottleStorm"}},
    # too many to name: alerts that fired before keep firing for a while
    "KafkaQuotaThrottleStorm": {CLUSTER: _THROTTLED | {_BEYOND_TIMEOUT}},
    # a throttled client is at its limit
    **{name: {ENTITY: _NEAR} for name in _THROTTLED},
    _BEYOND_TIMEOUT: {ENTITY: _NEAR | {f"KafkaQuota{kind}Throttled" for kind in ("Client", "Produce", "Fetch")}},
    # an empty bucket is what throttles its client
    "KafkaQuotaMutationTokensExhausted": {("cluster", "user", "client_id"): frozenset({"KafkaQuotaMutationThrottled"})},
    # busy handlers are most of the capacity
    "KafkaQuotaBrokerSaturated": {BROKER: frozenset({"KafkaQuotaRequestTimeNearCapacity"})},
    # reads that never end are slow, too
    "KafkaQuotaSourceDown": {("cluster", "instance", "source"): frozenset({"KafkaQuotaReadsSlow"})},
    # one budget
    "KafkaQuotaBudgetBurnsFast": {BUDGET: frozenset({"KafkaQuotaBudgetBurns", "KafkaQuotaBudgetBurnsSlowly"})},
    "KafkaQuotaBudgetBurns": {BUDGET: frozenset({"KafkaQuotaBudgetBurnsSlowly"})},
    # without current numbers all others are out of date, except for jobs, which report their own; an exporter that
    # hangs may have a twin that does not, so pages are sent
    "KafkaQuotaExporterAbsent": {CLUSTER: _OF_CLUSTERS},
    "KafkaQuotaSnapshotStale": {
        CLUSTER: _OF_CLUSTERS - _ON_CALL - {"KafkaQuotaBudgetBurnsFast", "KafkaQuotaBrokerSaturated"}
    },
    # limits are unknown
    "KafkaQuotaLimitsStale": {CLUSTER: _BY_LIMIT},
}
"""Alerts that an alert inhibits, if these labels of both are equal; alerts without an entry inhibit none."""

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
    """Run an Alertmanager with the example as its configuration; each test fires in clusters of its own."""
    folder = tmp_path_factory.mktemp("alertmanager")
    with alerting(folder / "running", yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))) as alertmanager:
        yield f"http://{alertmanager.address}/api/v2/alerts"


def fire(url: str, *alerts: Labels) -> None:
    """Send alerts as Prometheus does, with the severity and scope of each."""
    body = [{"labels": _complete(labels)} for labels in alerts]
    answer = web.ask(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    assert answer.status == 200, answer.text


def inhibitions(url: str, *alerts: Labels) -> list[bool]:
    """Return for each alert, identified by all of its labels, whether it is inhibited."""
    is_inhibited = {
        frozenset(alert["labels"].items()): bool(alert["status"]["inhibitedBy"])
        for alert in json.loads(web.ask(url).body)
    }
    keys = [frozenset(_complete(labels).items()) for labels in alerts]
    assert {*keys} <= {*is_inhibited}
    return [is_inhibited[labels] for labels in keys]


def _complete(labels: Labels) -> dict[str, str]:
    return {**labels, **ALERTS[labels["alertname"]]["labels"]}


def pair(cause: str, effect: str) -> tuple[Labels, Labels]:
    """Return two alerts that share all labels which rules compare, in a cluster of their own."""
    shared = {**ENTITY_LABELS, "cluster": f"{cause} {effect}"}
    return {**shared, "alertname": cause, "case": "cause"}, {**shared, "alertname": effect, "case": "effect"}


def test_every_alert_inhibits_what_is_specified(url: str) -> None:
    """The second alert of a pair is inhibited exactly if it follows from the first."""
    pairs = [pair(*both) for both in permutations(ALERTS, 2)]
    fire(url, *(alert for both in pairs for alert in both))

    def as_specified() -> None:
        inhibited = inhibitions(url, *(effect for _, effect in pairs))
        effects_by_cause: dict[str, set[str]] = {}
        for (cause, effect), back in zip(pairs, inhibited, strict=True):
            if back:
                effects_by_cause.setdefault(cause["alertname"], set()).add(effect["alertname"])
        expected = {cause: set[str]().union(*effects.values()) for cause, effects in INHIBITED.items()}
        assert effects_by_cause == expected

    eventually(as_specified)


def test_another_client_or_cluster_is_not_inhibited(url: str) -> None:
    """An alert on Alice's throttle inhibits none on Bob, on another quota type, or on Alice in another cluster."""
    alike, strangers = [], []
    for cause, effects in INHIBITED.items():
        for labels, targets in effects.items():
            for effect in targets:
                source, target = pair(cause, effect)
                alike += [source, target]
                strangers += [{**target, "case": name, name: f"another {target[name]}"} for name in labels]
    fire(url, *alike, *strangers)

    def as_specified() -> None:
        assert inhibitions(url, *alike) == [False, True] * (len(alike) // 2)
        inhibited = zip(strangers, inhibitions(url, *strangers), strict=True)
        assert [alert for alert, back in inhibited if back] == []

    eventually(as_specified)


def test_labels_that_are_not_compared_may_differ(url: str) -> None:
    """A spike inhibits the throttle of any client on any broker; an absent exporter inhibits the alerts of its twin."""
    cases = {
        "KafkaQuotaThrottleSpike": "KafkaQuotaProduceThrottled",
        "KafkaQuotaExporterAbsent": "KafkaQuotaNearLimit",
        "KafkaQuotaLimitsStale": "KafkaQuotaNearLimit",
    }
    causes = [{"alertname": cause, "cluster": f"other {cause}"} for cause in cases]
    effects = [{**ENTITY_LABELS, "alertname": effect, "cluster": f"other {cause}"} for cause, effect in cases.items()]
    fire(url, *causes, *effects)

    def all_inhibited() -> None:
        assert inhibitions(url, *effects) == [True] * len(effects)

    eventually(all_inhibited)
