"""
Logs of brokers in ZooKeeper mode, where the controller answers clients itself.

They show which quota a throttle is put down to, and what is charged.
"""

import gzip
from functools import cache
from pathlib import Path

import pytest
from tests.builders.requests import mutation, topic
from tools.replay_check import Check, check, log_of, read_rules, rules_of_text

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import KafkaRelease

CAPTURES = Path(__file__).parents[1] / "pipeline" / "captures"
MUTATION = QuotaType.CONTROLLER_MUTATION
ZOOKEEPER = KafkaRelease(3, 9, zookeeper=True)


@cache
def checked(name: str, release: KafkaRelease) -> Check:
    log = gzip.decompress((CAPTURES / f"kafka-{name}-request.log.gz").read_bytes()).splitlines()
    return check(log_of(log, name), read_rules(CAPTURES / f"kafka-{name}-quotas.yaml"), release=release)


@pytest.mark.parametrize("name", ["2.8.2-zookeeper", "3.9.1-zookeeper"])
def test_throttles_of_mutations_are_not_those_of_request_time(name: str) -> None:
    """The controller's own line has the throttle; only bob, who has no request quota, mutates."""
    result = checked(name, KafkaRelease.parse(name))
    topics = [comparison for comparison in result.comparisons if comparison.request.api_key == ApiKey.CREATE_TOPICS]
    by_bob = [each for each in topics if each.request.principal.name == "bob" and each.reported_ms]
    assert by_bob
    assert {each.reported_by for each in by_bob} == {MUTATION}
    kinds = {total.kind: total for total in result.totals if total.user == "bob"}
    assert kinds.keys() == {MUTATION}
    total = kinds[MUTATION]
    assert total.throttled + total.unknown == len(by_bob)
    assert total.predicted_s == pytest.approx(total.reported_s, rel=0.02)


RULES = """
quotas:
  - user: alice
    controller_mutation_rate: 1
"""


def predicted(release: KafkaRelease, *, validate_only: bool) -> float:
    """Seconds of throttle that a replay predicts of one request a second for 20 partitions, unthrottled in the log."""
    lines = [
        mutation(
            "create",
            [topic(f"t{number}", 20)],
            time=f"2026-11-21 09:02:{number:02},655",
            number=number,
            more={"validateOnly": validate_only},
        )
        for number in range(10, 16)
    ]
    result = check(log_of(lines, "made up"), rules_of_text(RULES), release=release)
    return sum(comparison.prediction.mutation_ms for comparison in result.comparisons) / 1000


@pytest.mark.parametrize("text", ["2.8", "3.3-zk", "3.9-zk"])
def test_requests_that_only_validate_cost_nothing(text: str) -> None:
    """In ZooKeeper mode validations are not throttled, and the same requests are when they create topics."""
    release = KafkaRelease.parse(text)
    assert predicted(release, validate_only=True) == 0
    assert predicted(release, validate_only=False) > 10


def test_requests_that_only_validate_cost_as_much_under_kraft() -> None:
    """Under KRaft a validation costs as much as a change, which is charged before it is applied."""
    assert predicted(KafkaRelease(4, 1), validate_only=True) == predicted(KafkaRelease(4, 1), validate_only=False) > 10
