"""Alerts go from a throttled broker to a pager and back: every program on the way is the real one."""

import time
from collections.abc import Callable, Iterator
from math import inf
from typing import Final

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Load, Traffic, in_background
from tests.integration.alerting.alertmanager import Message
from tests.integration.alerting.questions import linked_dashboard, linked_runbook
from tests.integration.alerting.watch import CLUSTER, Watch, watching
from tests.integration.eventually import eventually, some
from tests.integration.exporter import Exporter
from tools.demo_stack import fill

pytestmark = pytest.mark.real

USER: Final = "mallory"
CLIENTS: Final = 48
"""Number of clients with alerts of their own: more than 50 would have one together."""
LOW: Final[Rule] = ({"user": USER, "client-id": None}, {"producer_byte_rate": 5_000.0})
"""Each of them wants four times as much: about 2 s of delay for each record."""
HIGH: Final[Rule] = ({"user": USER, "client-id": None}, {"producer_byte_rate": 1e9})


PAGE = "KafkaQuotaThrottleSpike"
TICKET = "KafkaQuotaProduceThrottled"
RATE = "cluster:kafka_quota_request_throttled_seconds:rate5m"
BASELINE = "cluster:kafka_quota_request_throttled_seconds:baseline"
THRESHOLD = 25


@pytest.fixture(scope="module")
def watch(exporter: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Yield Prometheus, Alertmanager and a pager, once Prometheus knows what is usual: minutes without a throttle."""
    folder = tmp_path_factory.mktemp("watch")
    data, now = folder / "prometheus", int(time.time())
    data.mkdir()
    fill(data, [*(f'{RATE}{{cluster="{CLUSTER}"}} 0 {second}\n' for second in range(now - 120, now)), "# EOF\n"])
    with watching(folder, exporter) as watch:
        eventually(lambda: some(watch.prometheus.query(BASELINE)), seconds=60)
        yield watch


def test_on_call_is_paged_until_the_quota_is_raised(kafka: Cluster, quotas: Quotas, watch: Watch) -> None:
    """The cluster has one page instead of a ticket for each client, with links that help; it ends with the cause."""
    topic = Traffic(kafka).topic()
    quotas.set(LOW)

    def load(number: int) -> Callable[[Traffic], Load]:
        return lambda t: t.produce(USER, f"storm-{number}", topic, inf, 8_000 + 100 * number, pause=0.5)

    with in_background(*map(load, range(CLIENTS)), cluster=kafka):
        page = eventually(lambda: some(watch.pager.reported("firing", alertname=PAGE)), seconds=60)[0]
        _leads_somewhere(page)
        eventually(lambda: _tickets_are_silenced(watch), seconds=60)
        eventually(lambda: _is_throttled(watch))
        assert watch.pager.reported("resolved", alertname=PAGE) == []
        quotas.set(HIGH)
        ended = eventually(lambda: some(watch.pager.reported("resolved", alertname=PAGE)), seconds=60)[0]
        assert _throttled_seconds(watch) < THRESHOLD
    assert ended.labels == page.labels


def _is_throttled(watch: Watch) -> None:
    assert _throttled_seconds(watch) > THRESHOLD


def _throttled_seconds(watch: Watch) -> float:
    ((_, value),) = watch.prometheus.query(RATE)
    return value


def _leads_somewhere(page: Message) -> None:
    """Assert that the page is the right one, for the right cluster, and that both links lead to committed files."""
    assert page.receiver == "on-call"
    assert page.labels == {"alertname": PAGE, "severity": "critical", "scope": "cluster", "cluster": CLUSTER}
    assert page.annotations["summary"]
    assert page.annotations["description"].startswith(f"[{CLUSTER}] ")
    assert "<h2>Mitigation</h2>" in linked_runbook(page.annotations["runbook_url"])
    dashboard, variables = linked_dashboard(page.annotations["dashboard_url"])
    assert dashboard["uid"] == "quotascope-overview"
    assert variables == {"cluster": CLUSTER}


def _tickets_are_silenced(watch: Watch) -> None:
    """Assert that the alerts of most clients are there, and silent because of the page."""
    suppressed = watch.alertmanager.alerts("suppressed")
    tickets = [
        alert for alert in suppressed if alert["labels"]["alertname"] == TICKET and alert["labels"]["user"] == USER
    ]
    assert len(tickets) > CLIENTS / 2
    pages = {
        alert["fingerprint"]
        for alert in (*watch.alertmanager.alerts("active"), *suppressed)
        if alert["labels"]["severity"] == "critical"
    }
    for ticket in tickets:
        assert pages >= {*ticket["status"]["inhibitedBy"]}
        model, variables = linked_dashboard(ticket["annotations"]["dashboard_url"])
        assert model["uid"] == "quotascope-entity"
        assert variables["client_id"] == ticket["labels"]["client_id"]
    assert watch.pager.reported("firing", alertname=TICKET, user=USER) == []
