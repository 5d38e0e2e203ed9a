"""
Clients that a broker mutes for most of their time by short throttles have their alert.

It names the client, the rule, the broker and the time.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Load, Traffic, in_background
from tests.integration.alerting.watch import CLUSTER, Watch, watching
from tests.integration.eventually import eventually, some
from tests.integration.exporter import Exporter

pytestmark = pytest.mark.real

USER: Final = "mallory"
RECORDS: Final = 80_000
OF_QUOTA: Final = {
    "produce": (
        "KafkaQuotaProduceThrottled",
        {"producer_byte_rate": 500_000.0},
        r"it produces [\d.]+% of its 500kB/s per broker",
        0.5,
    ),
    "request": (
        "KafkaQuotaRequestThrottled",
        {"request_percentage": 10.0},
        r"it uses [\d.]+% of its 10% of a thread per broker",
        1.0,
    ),
}
"""
By quota type: the alert, a rule that a producer with small batches exceeds, the words of the description, and an upper
bound of its throttles on average, in seconds.
"""


@pytest.fixture(scope="module")
def watch(exporter: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    with watching(tmp_path_factory.mktemp("watch"), exporter) as watch:
        yield watch


@pytest.mark.parametrize("quota_type", OF_QUOTA)
def test_a_client_with_short_throttles_has_its_alert(
    kafka: Cluster, quotas: Quotas, watch: Watch, exporter: Exporter, quota_type: str
) -> None:
    """
    A client has its alert though its throttles are short.

    Throttles of bytes are far below half a second, and of request time a second at most.
    """
    alert, limits, used, longest = OF_QUOTA[quota_type]
    client_id = f"small-{quota_type}"
    low: Rule = ({"user": USER, "client-id": client_id}, limits)
    high: Rule = ({"user": USER, "client-id": client_id}, dict.fromkeys(limits, 1e9))
    quotas.set(low)
    of_client = f'{{quota_type="{quota_type}",client_id="{client_id}"}}'

    def load(traffic: Traffic) -> Load:
        traffic.produce_all(USER, client_id, traffic.topic(), RECORDS)
        return Load(RECORDS)

    with in_background(load, cluster=kafka):

        def fires() -> dict[str, str]:
            alerts = [
                candidate
                for candidate in watch.prometheus.get("alerts")["alerts"]
                if (candidate["labels"]["alertname"], candidate["labels"].get("client_id")) == (alert, client_id)
                and candidate["state"] == "firing"
            ]
            assert len(alerts) == 1
            annotations: dict[str, str] = alerts[0]["annotations"]
            assert re.search(" on broker .* since ", annotations["description"])
            return annotations

        annotations = eventually(fires, seconds=120)
        (_, delay), *_ = eventually(
            lambda: some(
                watch.prometheus.query(f"max(avg_over_time(kafka_quota_throttle_time_seconds{of_client}[10s]))")
            )
        )
        quotas.set(high)
    assert 0 < delay <= longest
    text = (
        rf'\[{CLUSTER}\] Kafka has throttled user "{USER}" with client-id "{client_id}" on broker \d '
        rf"since \d\d:\d\d UTC, for [\d.]+% of the last 15 minutes, by [\d.]+m?s on average: {used} "
        rf'\(rule 1 user "{USER}" client-id "{client_id}"\)\.'
    )
    assert re.fullmatch(text, annotations["description"])
    address = annotations["entity_url"]
    assert address.startswith(f"{exporter.url}/entity?")
    assert parse_qs(urlsplit(address).query) == {"user": [USER], "client_id": [client_id]}
    with urlopen(address) as page:  # noqa: S310 - of the exporter
        assert client_id in page.read().decode()
