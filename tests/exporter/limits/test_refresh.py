from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import ALICE, NOW, ScriptedLimits, limits

from quotascope.exporter.errors import LimitsDenied, LimitsError
from quotascope.exporter.limits import NodeSettings, version_of
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import LimitsHealth
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import ReleaseRange
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable


@pytest.fixture
def source() -> ScriptedLimits:
    return ScriptedLimits()


@pytest.fixture
def refresh(source: ScriptedLimits) -> LimitsRefresh:
    return LimitsRefresh(source, timeout_seconds=10, clock=lambda: NOW)


async def test_failure_keeps_the_last_limits(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """A failure keeps the last limits, with the time when they were read, and the cluster."""
    source.value = replace(source.value, cluster_id="x")
    await refresh.refresh()
    assert refresh.health == LimitsHealth(read_at=NOW, cluster_id="x", changes_since=NOW)
    source.error = LimitsError("cannot reach Kafka at a:1")
    await refresh.refresh()
    await refresh.refresh()
    assert refresh.limits == source.value
    assert refresh.health == LimitsHealth(
        changes_since=NOW, read_at=NOW, cluster_id="x", error="cannot reach Kafka at a:1", errors_total=2
    )


async def test_missing_permission_is_distinguished(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """The remedy differs: an ACL is missing, not a network."""
    denied = []
    for source.error in (LimitsDenied("needs DESCRIBE_CONFIGS"), None):
        await refresh.refresh()
        denied.append(refresh.health.denied)
    assert denied == [True, False]


async def test_one_log_line_for_each_change_of_state(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """An outage of a day is two lines, not thousands."""
    with capture_logs() as lines:
        for source.error in (None, None, LimitsError("x"), LimitsError("y"), None, None):
            await refresh.refresh()
    assert [(line["log_level"], line["event"], line.get("error")) for line in lines] == [
        ("info", "limits can be read", None),
        ("warning", "limits cannot be read", "x"),
        ("info", "limits can be read", None),
    ]


async def test_each_change_is_logged_and_counted(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """A limit that was set, changed or removed is one change, an absent limit is None; the first read is no change."""
    bob = QuotaEntity("bob", DEFAULT)
    source.value = limits(rules={QuotaType.PRODUCE: QuotaRules({ALICE: 1.0, bob: 2.0})})
    await refresh.refresh()
    rules = {QuotaType.PRODUCE: QuotaRules({ALICE: 1.5}), QuotaType.FETCH: QuotaRules({ALICE: 3.0})}
    source.value = limits(rules=rules, connection_limits={"10.0.0.1": 1.0})
    with capture_logs() as lines:
        await refresh.refresh()
        await refresh.refresh()
    assert {(line.pop("event"), line.pop("log_level")) for line in lines} == {("limit changed", "info")}
    assert [tuple(line.values()) for line in lines] == [
        ("connection_creation_rate", "ip <default>", 7.0, None),
        ("connection_creation_rate", "ip 10.0.0.1", None, 1.0),
        ("producer_byte_rate", "user alice", 1.0, 1.5),
        ("producer_byte_rate", "bob / <default>", 2.0, None),
        ("consumer_byte_rate", "user alice", None, 3.0),
    ]
    assert refresh.health.changes_total == {
        "connection_creation_rate": 2,
        "producer_byte_rate": 2,
        "consumer_byte_rate": 1,
    }
    latest = refresh.health.changes[0]
    assert (latest.key, latest.entity, latest.old, latest.new) == ("consumer_byte_rate", "user alice", None, 3.0)
    assert len(refresh.health.changes) == 5


async def test_rules_that_did_not_change_are_the_same_object(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """Unchanged rules are the same object, so that the join keeps what it derived from them."""
    await refresh.refresh()
    old_limits = refresh.limits
    source.value = limits()
    await refresh.refresh()
    assert old_limits is not None
    assert refresh.limits is not None
    assert all(refresh.limits.rules[quota_type] is rules for quota_type, rules in old_limits.rules.items())


async def test_limits_have_the_same_version_until_what_decides_changes(
    source: ScriptedLimits, refresh: LimitsRefresh
) -> None:
    """The version of limits changes with a rule, setting or release, and not with a read or a controller."""
    first = source.value
    versions = []
    for source.value in (
        first,
        replace(first, rules={kind: _copied(table) for kind, table in first.rules.items()}, read_at=NOW + 30),
        replace(first, active_controller="7"),
        replace(first, rules={}),
        replace(first, rules={}, nodes={"1": NodeSettings(quota_samples=3)}),
        replace(
            first,
            rules={},
            nodes={"1": NodeSettings(quota_samples=3)},
            releases={"1": ReleaseRange(oldest=None, newest=None)},
        ),
        first,
    ):
        await refresh.refresh()
        versions.append(version_of(refresh.limits))
    distinct = list(dict.fromkeys(versions))
    assert [distinct.index(version) for version in versions] == [0, 0, 0, 1, 2, 3, 4]


def _copied(table: RuleTable) -> QuotaRules:
    """Return the same rules as another object."""
    rules = QuotaRules()
    for entity, value in table.items():
        rules.set(entity, value)
    return rules


async def test_what_else_is_missing_is_reported_once(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """A missing permission that costs a part of the limits is logged when it begins and when it ends."""
    incomplete = limits(missing={"the active controller": "needs DESCRIBE"})
    with capture_logs() as lines:
        for source.value in (limits(), incomplete, incomplete, limits()):
            await refresh.refresh()
    assert refresh.health.errors_total == 2
    assert [(line["event"], line.get("what")) for line in lines[1:]] == [
        ("cannot be read", "the active controller"),
        ("can be read again", "the active controller"),
    ]


async def test_read_that_hangs_or_has_a_defect(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """A read that hangs ends at its deadline, and a defect is reported; usage is shown without limits."""
    source.error = KeyError("x")
    await refresh.refresh()
    assert refresh.health.error == "unexpected KeyError: 'x'"
    source.answers.clear()
    hanging = LimitsRefresh(source, timeout_seconds=0.001)
    await hanging.refresh()
    assert hanging.health.error == "no answer within 0.001 seconds"


async def test_settled_after_the_first_outcome(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """The first collection waits until a first read of limits has ended, even with an error."""
    waiting = asyncio.create_task(refresh.settled.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    source.error = LimitsError("x")
    await refresh.refresh()
    await waiting


async def test_run_refreshes_until_canceled(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """Limits are read, with a pause after each read; a new interval counts from the next pause on."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        refresh.read_from(source, 10, 5)
        if len(pauses) == 3:
            raise asyncio.CancelledError
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await refresh.run(pause)
    assert pauses == [30, 5, 5]
    assert source.reads == 3


@pytest.mark.parametrize(
    ("cluster_id", "changes"), [("x", {"producer_byte_rate": 2, "request_percentage": 1}), ("y", {})]
)
async def test_another_source_takes_over(cluster_id: str, changes: dict[str, int]) -> None:
    """The last limits stay until another source was read, and counts go on; another cluster's limits are no change."""
    first_source = ScriptedLimits(limits(cluster_id="x"))
    second = ScriptedLimits(limits(rules={}, cluster_id=cluster_id))
    refresh = LimitsRefresh(first_source, timeout_seconds=10, clock=lambda: NOW)
    await refresh.refresh()
    first_source.error = LimitsError("no")
    await refresh.refresh()
    refresh.read_from(second, 5, 30)
    assert refresh.limits == first_source.value
    await refresh.refresh()
    assert refresh.limits == second.value
    counted = LimitsHealth(errors_total=1, changes_total=changes)
    assert replace(refresh.health, changes=()) == replace(
        counted, read_at=NOW, cluster_id=cluster_id, changes_since=NOW
    )
    assert len(refresh.health.changes) == sum(changes.values())


async def test_without_a_source_there_are_no_limits(source: ScriptedLimits, refresh: LimitsRefresh) -> None:
    """Without a source, old limits are dropped, no scrape waits for new ones, and counts stay."""
    source.error = LimitsError("no")
    await refresh.refresh()
    refresh.read_from(None, 0, 30)
    await refresh.refresh()
    await refresh.settled.wait()
    assert refresh.limits is None
    assert refresh.health == LimitsHealth(configured=False, errors_total=1)
