"""Rules that change while the exporter runs."""

import time
from math import inf

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic, in_background
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter
from tests.integration.page import Page

pytestmark = pytest.mark.real

ENTITY = {"user": "alice"}
LIMIT = "kafka_quota_produce_limit_bytes_per_second"
RATE = "kafka_quota_produce_bytes_per_second"


def test_rule_is_followed_from_its_beginning_to_its_end(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter
) -> None:
    """A new limit, another value and its removal show with the next refresh, and each is counted and logged once."""
    topic = traffic.topic()
    seen_changes = _changes(_refreshed(exporter))
    seen_lines = len(exporter.log())
    with in_background(lambda t: t.produce("alice", "changes", topic, inf, pause=0.05), of=kafka):
        quotas.set((ENTITY, {"producer_byte_rate": 300_000.0}))
        assert _refreshed(exporter).value(LIMIT, user="alice") == 300_000
        eventually(lambda: _measured(exporter.page()))

        quotas.set((ENTITY, {"producer_byte_rate": 400_000.0}))
        assert _refreshed(exporter).value(LIMIT, user="alice") == 400_000

        stale = _stale(exporter.page())
        quotas.remove((ENTITY, {"producer_byte_rate": 400_000.0}))
        page = _refreshed(exporter)
    for family in (LIMIT, RATE, "kafka_quota_rule_info"):
        assert not list(page.series(family, user="alice")), family
    assert _stale(page) > stale
    assert _changes(page) == seen_changes + 3
    reported = [
        (line["quota_key"], line["entity"], line["old"], line["new"])
        for line in exporter.log()[seen_lines:]
        if line["msg"] == "limit changed"
    ]
    assert reported == [
        ("producer_byte_rate", "user alice", None, 300_000),
        ("producer_byte_rate", "user alice", 300_000, 400_000),
        ("producer_byte_rate", "user alice", 400_000, None),
    ]


def _refreshed(exporter: Exporter) -> Page:
    """The first page whose limits were read after now."""
    now = time.time()

    def refreshed() -> Page:
        asked = time.time()
        page = exporter.page()
        assert asked - page.value("quotascope_limits_age_seconds") > now
        return page

    return eventually(refreshed)


def _measured(page: Page) -> None:
    assert page.value(RATE, user="alice") > 0


def _changes(page: Page) -> float:
    return page.value("quotascope_limit_changes_total", quota_key="producer_byte_rate")


def _stale(page: Page) -> float:
    return page.value("kafka_quota_stale_entities", quota_type="produce", broker="1")
