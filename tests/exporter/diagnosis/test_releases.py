"""Rules that a release stores and does not enforce, in the findings of a snapshot and in explanations."""

import pytest
from tests.exporter.examples import snapshot
from tests.exporter.recorded import limits

from quotascope.exporter.diagnosis.explain import as_json, explain, sentence
from quotascope.exporter.diagnosis.findings import diagnose
from quotascope.exporter.diagnosis.releases import TESTED, is_tested, release_line, unenforced
from quotascope.exporter.snapshot import LimitState
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import EXACT_RELEASES, KafkaRelease, ReleaseRange

MUTATION = QuotaType.CONTROLLER_MUTATION
RULES = {MUTATION: {QuotaEntity("bob"): 2.0}, QuotaType.PRODUCE: {QuotaEntity("bob"): 5.0}}


def of(text: str, newest: str | None = "") -> ReleaseRange:
    newest_release = None if newest is None else KafkaRelease.parse(newest or text)
    return ReleaseRange(oldest=KafkaRelease.parse(text), newest=newest_release)


ENFORCED = ("2.8", "3.3-zk", "3.4-zk", "3.5", "3.9", "4.0", "4.4")
NOT_ENFORCED = ("3.3", "3.4")


@pytest.mark.parametrize("text", [*ENFORCED, *NOT_ENFORCED])
def test_a_rule_without_effect_is_said_to_be_one(text: str) -> None:
    """KRaft 3.3 and 3.4 do not enforce mutation quotas; the rule is named, with the releases that do."""
    configured = limits(RULES, releases={"1": of(text)})
    findings = [finding for finding in diagnose(snapshot(limits=configured)) if finding.code == "rules_not_enforced"]
    produce, *_, mutation = explain(configured, "bob", "app")
    said = sentence(mutation, "bob", "app")
    document = as_json("bob", "app", [mutation], {})["quotas"]
    if text in NOT_ENFORCED:
        (finding,) = findings
        assert finding.text == (
            f"1 configured limit of controller_mutation_rate without effect: Kafka {text} does not enforce "
            "controller mutation quotas in KRaft mode (3.5 and later do)."
        )
        assert mutation.limit_state is LimitState.UNLIMITED
        assert "unlimited; 3 user bob, 2 mutations/s, has no effect" in said
        assert "3.5 and later do" in document[0]["not_enforced"]  # type: ignore[index]
        assert document[0]["limit_state"] == "unlimited"  # type: ignore[index]
    else:
        assert findings == []
        assert mutation.limit_state is LimitState.LIMITED
        assert "user bob applies, 2 mutations/s" in said
        assert document[0]["not_enforced"] is None  # type: ignore[index]
    assert "user bob applies" in sentence(produce, "bob", "app")


@pytest.mark.parametrize("releases", [{}, {"1": of("3.4", None)}, {"1": of("3.4", "3.5")}], ids=str)
def test_what_may_be_enforced_is_not_said_to_have_no_effect(releases: dict[str, ReleaseRange]) -> None:
    """A release that may enforce the rule, or that is unknown, has no finding."""
    assert unenforced(releases.values(), MUTATION) is None


def test_a_rule_without_effect_needs_a_rule() -> None:
    """A release that ignores mutation quotas is a finding only if such a quota is configured."""
    configured = limits({QuotaType.PRODUCE: {QuotaEntity("bob"): 5.0}}, releases={"1": of("3.4")})
    assert "rules_not_enforced" not in {finding.code for finding in diagnose(snapshot(limits=configured))}
    assert sentence(explain(configured, "bob", "app")[-1], "bob", "app").endswith("because no such quota is configured")


@pytest.mark.parametrize(
    ("releases", "line"),
    [
        ({}, "unknown"),
        ({"1": of("4.1")}, "4.1, tested"),
        ({"1": of("3.9-zk"), "2": of("3.9-zk")}, "3.9 in ZooKeeper mode, tested"),
        ({"1": of("3.5")}, "3.5, not tested"),
        ({"10": of("3.9"), "9": of("4.0")}, "3.9 (broker 10), 4.0 (broker 9), in part not tested"),
        ({"1": of("4.4", None)}, "4.4 or later, not tested"),
    ],
)
def test_the_release_in_a_line(releases: dict[str, ReleaseRange], line: str) -> None:
    """Status and the page show the release in one line, with the doctor's words."""
    assert release_line(limits({}, releases=releases)) == line


def test_no_limits_are_of_no_known_release() -> None:
    """The release is unknown without the Admin API."""
    assert release_line(None) == "unknown"


def test_only_releases_that_the_engine_follows_are_tested() -> None:
    """A release is said to be tested where its figures are right to the last digit."""
    assert TESTED <= EXACT_RELEASES
    assert all(is_tested(ReleaseRange(oldest=release, newest=release)) for release in TESTED)
