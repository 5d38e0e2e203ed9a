from __future__ import annotations

from tests.exporter.examples import health, limits, snapshot, usage

from quotascope.exporter.doctor import Verdict
from quotascope.exporter.doctor.finding_nodes import discoveries
from quotascope.exporter.doctor.quotas import quotas, unused
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import DiscoveryHealth
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType


def test_all_is_well() -> None:
    """How many are measured, and under how many limits of which kind."""
    result, rules = quotas(snapshot(usage(of=limits())))
    assert result.verdict is rules.verdict is Verdict.FINE
    assert rules.text.startswith("Kafka's own rules decide")
    assert result.text == (
        "1 entities are measured; limits: 2 of producer_byte_rate, 1 of request_percentage, 1 of connection_creation_rate."
    )
    (result,) = quotas(snapshot(usage(), limits=None))
    assert result.text == "1 entities are measured; the limits are unknown."


def test_no_quota_is_configured() -> None:
    """The most common reason for an empty page, with the command that sets a first one."""
    result, _ = quotas(snapshot(limits=limits(rules={})))
    assert result.verdict is Verdict.LOOK
    assert result.text.startswith("No client quota is configured")
    assert "`quotascope quotas set --measure-only`" in result.advice


def test_a_callback_of_its_own_decides() -> None:
    """Whatever is configured then, limits and utilisation are not shown."""
    nodes = {"1": NodeSettings(quota_callback_class="corp.Callback")}
    (result,) = quotas(snapshot(usage(), limits=limits(nodes=nodes)))
    assert result.verdict is Verdict.LOOK
    assert "corp.Callback" in result.text


def test_nothing_is_said_when_nothing_could_be_read() -> None:
    """That is told of the agents."""
    assert list(quotas(snapshot(sources=(health(up=False),)))) == []


def test_limits_that_nobody_meets_are_noted() -> None:
    """A few of them by name; names are a stranger's."""
    shown = snapshot(usage(of=limits()))
    (result,) = unused(shown)
    assert result.verdict is Verdict.NOTE
    assert result.text.startswith(
        "No client is measured under 3 of 4 limits now: producer_byte_rate of default user"
    )
    assert list(unused(snapshot(usage(), limits=None))) == []


def test_a_limit_without_effect_is_told_with_what_overrules_it() -> None:
    """Its clients are not away, and its name has no mistake; whether anybody is measured does not matter."""
    rules = QuotaRules({QuotaEntity(DEFAULT): 5.0, QuotaEntity(DEFAULT, DEFAULT): 7.0})
    known = limits(rules={QuotaType.PRODUCE: rules}, connection_limits={})
    (result,) = unused(snapshot(limits=known))
    assert result.verdict is Verdict.NOTE
    assert result.text == (
        "1 of 2 limits have no effect on clients that send a client-id: producer_byte_rate of default user, "
        "overruled by that of default user, default client-id."
    )
    measured = snapshot(usage(client_id="app", of=known, limit=7.0), limits=known)
    assert [each.text for each in unused(measured)] == [result.text]


def test_each_discovery_is_told() -> None:
    """How many nodes it finds, or why none."""
    good = DiscoveryHealth(name="file_sd", targets=3, found_at=1.0)
    bad = DiscoveryHealth(name="kafka", error="no answer")
    found = list(discoveries(snapshot(discoveries=(good, bad))))
    assert [(each.subject, each.verdict, each.text) for each in found] == [
        ("file_sd", Verdict.FINE, "Finds 3 nodes."),
        ("kafka", Verdict.BROKEN, "no answer"),
    ]
