"""Throttled clients, their rules and their distance from the limit are those of a real broker under load."""

import math

import pytest
from tests.cluster.cluster import Cluster
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter
from tests.integration.page import Page
from tests.integration.readings import LIMITS, USAGE, agree, readings_of
from tests.integration.scene import EXPECTED, Expected

pytestmark = pytest.mark.real


def who(expected: Expected) -> dict[str, str]:
    return {"user": expected.user, "client_id": expected.client_id}


def test_scene_has_every_level() -> None:
    """Each of the eight levels decides for an entity of the scene."""
    assert len({expected.level for expected in EXPECTED}) == 8


@pytest.mark.parametrize("expected", EXPECTED, ids=str)
def test_entity_has_its_rule_limit_and_utilization(scene: Exporter, expected: Expected) -> None:
    """
    The rule that decides is named with its level, and its limit is the configured one.

    Utilization is the quotient of usage and limit on the same page.
    """
    page = scene.page()
    kind, labels = expected.quota_type, who(expected)
    rule = page.labels("kafka_quota_rule_info", quota_type=kind, **labels)
    assert (rule["level"], rule["rule_user"], rule["rule_client_id"]) == (expected.level, *expected.rule)
    assert page.value(LIMITS[kind], **labels) == expected.limit
    usage = page.value(USAGE[kind][1], broker="1", **labels)
    ratio = page.value("kafka_quota_utilization_ratio", quota_type=kind, broker="1", **labels)
    assert ratio == pytest.approx(usage / expected.limit, rel=1e-9)


@pytest.mark.parametrize("expected", EXPECTED, ids=str)
def test_numbers_are_those_of_the_broker(kafka: Cluster, scene: Exporter, expected: Expected) -> None:
    """Usage, throttle time and tokens are what Jolokia itself returns, in base units."""
    readings = readings_of(expected.quota_type, expected.user, expected.client_id)
    agree(kafka.brokers[0].agents.jolokia, scene.page, readings)


def test_what_is_no_number_is_not_shown(scene: Exporter) -> None:
    """
    No NaN, no infinity, and no limit of Long.MAX reaches the page.

    Where the broker says NaN the throttle time is 0, and there is no cause; for mutations, which no node measures, both
    follow from requests. A user without a mutation limit is measured, but the broker's 1e20 tokens are not shown.
    """
    page = scene.page()
    assert [sample for sample in page.samples if not math.isfinite(sample.value) or sample.value >= 1e18] == []
    for expected in EXPECTED:
        if not expected.throttled and expected.quota_type != "controller_mutation":
            labels = {"quota_type": expected.quota_type, **who(expected)}
            assert page.get("kafka_quota_throttle_time_seconds", **labels) == 0
            assert not list(page.series("kafka_quota_throttle_cause_info", **labels))
    # other tests may mutate as carol with a client-id that has a limit
    page.value("kafka_quota_controller_mutations_per_second", user="carol", client_id="")
    for family in page.names():
        if "mutation_tokens" in family or "mutation_limit" in family or "burst" in family:
            assert not list(page.series(family, user="carol", client_id="")), family


def test_mutations_have_tokens_and_burst(scene: Exporter) -> None:
    """A mutation limit comes with its bucket: 22 tokens at 2 per second, overdrawn by the load."""

    def overdrawn() -> None:
        page = scene.page()
        tokens = page.value("kafka_quota_controller_mutation_tokens", user="bob")
        used = page.value("kafka_quota_controller_mutation_burst_used_ratio", user="bob")
        assert page.value("kafka_quota_controller_mutation_burst_tokens", user="bob") == 22
        assert used == pytest.approx(1 - tokens / 22)
        assert tokens < 0
        assert used > 1

    eventually(overdrawn)


def test_causes_are_distinguished(scene: Exporter) -> None:
    """A request throttle that the controller's mutation quota imposed is not taken for one of the request quota."""

    def reported() -> None:
        page = scene.page()
        assert _cause(page, client_id="scene-spam") == "own"
        assert _cause(page, client_id="scene-admin") == "controller_mutation"
        decided = {"quota_type": "controller_mutation", "user": "bob"}
        assert page.value("kafka_quota_throttle_time_seconds", **decided) > 0
        assert page.labels("kafka_quota_throttle_cause_info", **decided)["cause"] == "own"

    eventually(reported)


def _cause(page: Page, client_id: str) -> str:
    return page.labels("kafka_quota_throttle_cause_info", quota_type="request", client_id=client_id)["cause"]


def test_node_reports_who_is_muted_now(scene: Exporter) -> None:
    """The delay queues, the throttle time reported to clients and error 89 are shown for the broker."""
    first_page = scene.page()

    def shown() -> None:
        page = scene.page()
        assert page.value("kafka_quota_delay_queue_size", quota_type="produce", broker="1") > 0
        reported = "kafka_quota_request_throttled_seconds_total"
        for request in ("Produce", "Fetch", "DescribeCluster"):
            value_before = first_page.value(reported, request=request, broker="1")
            assert page.value(reported, request=request, broker="1") > value_before
        errors = "kafka_quota_throttling_errors_total"
        assert page.value(errors, request="CreateTopics", broker="1") > 0

    eventually(shown)


def test_rules_are_listed_and_counted(scene: Exporter) -> None:
    """
    Every configured rule is listed, used or not, and counted by quota key.

    The request threads are those of the configuration: 8 for I/O and 3 for the network.
    """
    page = scene.page()
    rule = {"level": "default_user_client", "rule_user": "<default>"}
    assert page.value("kafka_quota_rule_produce_limit_bytes_per_second", **rule) == 70_000
    assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") == 5
    assert page.value("kafka_quota_rules", quota_key="connection_creation_rate") == 0
    assert page.value("kafka_quota_request_capacity_threads", broker="1") == 11
