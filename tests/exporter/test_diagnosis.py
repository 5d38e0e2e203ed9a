from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.exporter.examples import ALICE, NOW, health, limits, snapshot, usage

from quotascope.exporter.diagnosis import Severity, diagnose
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import (
    Callbacks,
    Columns,
    Folds,
    LimitsHealth,
    NodeUsage,
    ReloadHealth,
    Snapshot,
)
from quotascope.metrics import QuotaRules, QuotaType

MUTATIONS = {QuotaType.CONTROLLER_MUTATION: QuotaRules({ALICE: 1.0})}


def told(shown: Snapshot) -> list[str]:
    """The findings, each as one text."""
    return [
        f"{finding.severity.value}: {finding.text} {finding.advice}".strip()
        for finding in diagnose(shown)
    ]


def test_all_is_well() -> None:
    """Somebody is measured, everything could be read: nothing to say."""
    assert diagnose(snapshot(usage())) == []


def test_no_rule_configured() -> None:
    """Kafka measures nobody without a quota: the most common empty page."""
    (text,) = told(snapshot(limits=limits(rules={})))
    assert text.startswith("warning: No client quota is configured")
    assert "`quotascope quotas set --measure-only`" in text
    assert "1048576" not in text


def test_no_traffic_yet() -> None:
    """Rules alone make no series."""
    (text,) = told(snapshot())
    assert text.startswith(
        "warning: No traffic yet: no broker has measured a client under a quota (3 rules are configured)."
    )


def test_no_traffic_or_no_rule_without_limits() -> None:
    """Where the rules are unknown their number is not made up."""
    unknown = LimitsHealth(error="cannot reach Kafka at a:1: connection refused")
    texts = told(snapshot(limits=None, limits_health=unknown))
    assert texts[0].startswith(
        "error: The Admin API cannot be reached: cannot reach Kafka at a:1: connection refused"
    )
    assert "under a quota. " in texts[1]


def test_only_stale_beans() -> None:
    """Beans of earlier rules are not shown, and that is said."""
    node = NodeUsage(broker="1", stale_entities={QuotaType.PRODUCE: 3})
    (text,) = told(snapshot(nodes=(node,)))
    assert text.startswith("warning: All 3 quota beans are left over")


def test_agent_unreachable() -> None:
    """Each source that is down is told with its reason; the rest is not guessed at."""
    shown = snapshot(sources=(health(up=False, error="connection refused"),))
    (text,) = told(shown)
    assert (
        text == "error: Source 'broker-1' (jolokia) cannot be read: connection refused"
    )


def test_background_work_that_failed_is_reported() -> None:
    """A log line scrolls by; what never failed is not mentioned."""
    restarts = {"discovery": 0, "limits": 1, "samples": 3}
    assert [text[: text.index(":", 10)] for text in told(snapshot(usage(), restarts=restarts))] == [
        "warning: The exporter's background task 'limits' failed and began again, once since it started",
        "warning: The exporter's background task 'samples' failed and began again, 3 times since it started",
    ]  # fmt: skip


def test_no_source() -> None:
    """Without a source there is nothing to be down."""
    assert told(snapshot(sources=()))[0].startswith("error: No source is configured.")


def test_permission_missing() -> None:
    """The client's own words name the ACL."""
    denied = LimitsHealth(error="needs DESCRIBE_CONFIGS", denied=True)
    texts = told(snapshot(usage(), limits=None, limits_health=denied))
    assert texts == [
        "error: The configured quotas may not be read: needs DESCRIBE_CONFIGS"
    ]


def test_age_of_old_limits_is_told() -> None:
    """Limits that could not be refreshed are shown with their age."""
    failed = LimitsHealth(read_at=NOW - 90, error="timeout")
    (text,) = told(snapshot(usage(), limits_health=failed))
    assert "timeout (the limits shown are 90 s old)" in text


def test_no_admin_api_configured() -> None:
    """Usage without limits is allowed, but not what people come for."""
    missing = LimitsHealth(configured=False)
    (text,) = told(snapshot(usage(), limits=None, limits_health=missing))
    assert text.startswith("warning: No Admin API is configured")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rules": MUTATIONS, "active_controller": "100"}, True),
        ({"rules": MUTATIONS, "active_controller": "1"}, False),
        ({"rules": MUTATIONS, "active_controller": None}, False),
        ({"active_controller": "100"}, False),
    ],
)
def test_active_controller_is_not_read(
    changes: Mapping[str, object], *, expected: bool
) -> None:
    """Mutation quotas without the node that keeps them would look unused."""
    texts = told(snapshot(usage(), limits=limits(**changes)))
    assert [
        text.startswith("warning: Node 100, the active controller, is not read")
        for text in texts
    ] == [True] * expected


def test_what_else_could_not_be_read() -> None:
    """A missing right that costs only a part is told as that."""
    incomplete = limits(missing={"the active controller": "needs DESCRIBE"})
    (text,) = told(snapshot(usage(), limits=incomplete))
    assert text.startswith(
        "warning: Not known: the active controller: needs DESCRIBE Limits and rules of clients are right"
    )


def test_a_source_that_gives_less_than_it_could() -> None:
    """Something is wrong with its answer, whatever else there is to see."""
    odd = health("b2", dialect="kafka_2_0_0", remark="names hold users: move the rules")
    (text,) = told(snapshot(usage(), sources=(odd,)))
    assert text == (
        "warning: Source 'b2' (kafka_2_0_0) gives less than it could. names hold users: move the rules"
    )


def test_an_agent_that_may_keep_quotas_to_itself() -> None:
    """With rules and nobody measured it may be the agent; without rules, or with entities of others, nobody asks."""
    quiet = health("b2", dialect="strimzi", hint="widen the allowlist")
    _, text = told(snapshot(sources=(quiet,)))
    assert text == (
        "warning: Source 'b2' (strimzi) told of no client under a quota. If there is traffic, widen the allowlist."
    )
    assert len(told(snapshot(sources=(quiet,), limits=limits(rules={})))) == 1
    assert told(snapshot(usage(), sources=(quiet,))) == []
    assert len(told(snapshot(sources=(health(), replace(quiet, up=False))))) == 2


def test_quota_callback() -> None:
    """Where a class of the operator decides, the eight levels mean nothing."""
    custom = limits(nodes={"1": NodeSettings(quota_callback_class="org.acme.Quotas")})
    (text,) = told(snapshot(usage(), limits=custom))
    assert text.startswith("warning: Node 1 leaves quotas to org.acme.Quotas")


def test_quota_callback_by_its_tags() -> None:
    """Without the configuration, tags of beans give it away; it is not taken for a cluster without quotas."""
    node = NodeUsage(broker="2", quota_callback=True)
    (text,) = told(snapshot(usage(), nodes=(node,), limits=limits(rules={})))
    assert text.startswith("warning: Node 2 leaves quotas to a custom callback")
    texts = told(snapshot(nodes=(node,), limits=limits(rules={})))
    assert texts[0].startswith("warning: No traffic yet")
    tagged = usage(QuotaType.FETCH, broker="2", user="", client_id="", tags=())
    assert told(snapshot(tagged, nodes=(node,))) == [text]


def test_more_tags_than_are_shown() -> None:
    """Tags that are left out are named, on one line."""
    texts = told(
        replace(snapshot(usage()), callbacks=Callbacks(left_out=("k", "l\nm")))
    )
    assert len(texts) == 1
    assert "not shown: k, l" in texts[0]
    assert "\n" not in texts[0]


@pytest.mark.parametrize(("count", "findings"), [(None, 0), (0, 0), (2, 1)])
def test_broker_tells_another_utilisation(count: int | None, findings: int) -> None:
    """Limits that differ from those that the broker enforces, here or there, are out of date."""
    node = NodeUsage(broker="1", utilization_disagreements=count)
    texts = told(snapshot(usage(), nodes=(node,)))
    assert len(texts) == findings
    assert all("for 2 entities" in text for text in texts)


def test_recorded_nodes(
    combined_without_quotas: Snapshot,
    split_removed: Snapshot,
    split_throttled: Snapshot,
) -> None:
    """What real nodes lead to: no rule yet, all rules removed, all well."""
    for shown, expected in (
        (combined_without_quotas, "No client quota is configured"),
        (split_removed, "No client quota is configured"),
    ):
        (finding,) = diagnose(shown)
        assert finding.severity is Severity.WARNING
        assert finding.text.startswith(expected)
    assert diagnose(split_throttled) == []
    assert diagnose(replace(split_throttled, shown=Columns.none())) != []


def test_more_entities_than_are_shown() -> None:
    """A fold is never silent."""
    folds = Folds(overflow=7, crowded={QuotaType.PRODUCE: 17}, max_entities=10)
    (text,) = told(snapshot(usage(), folds=folds))
    assert text == (
        "warning: More pairs of user and client id than are shown one by one: 17 of produce. "
        "The 10 that matter most are shown, the others together as __overflow__. "
        "Raise cardinality.max_entities, or choose with include_users, exclude_client_ids and so on."
    )


def test_more_entities_of_callbacks_than_are_shown() -> None:
    """Nor is a fold of what a custom callback tells apart."""
    crowded = Callbacks(crowded={QuotaType.FETCH: 12})
    (text,) = told(
        replace(snapshot(usage()), callbacks=crowded, folds=Folds(max_entities=10))
    )
    assert text == (
        "warning: Custom callbacks tell more entities apart than are shown one by one: 12 of fetch. "
        "The 10 that matter most are shown, the others together as __overflow__. "
        "Raise cardinality.max_entities, or let the callback use fewer tags."
    )


def test_everybody_is_left_out() -> None:
    """An empty page that was asked for is told from one without traffic."""
    folds = Folds(excluded=1, idle=1)
    (text,) = told(snapshot(left_out=(usage(), usage(user="b")), folds=folds))
    assert text.startswith(
        "warning: All 2 quota entities are left out: 1 for their names, 1 as idle."
    )


def test_configuration_that_cannot_be_used() -> None:
    """Where it is and what is wrong with it; the one before is in force."""
    reload = ReloadHealth(succeeded_at=NOW, error="/etc/q.yaml: line 3: no")
    (finding,) = diagnose(snapshot(usage(), reload=reload))
    assert finding.severity is Severity.ERROR
    assert "/etc/q.yaml: line 3: no" in finding.text


def test_change_that_needs_a_restart() -> None:
    """It is easily forgotten, so it is told until then."""
    reload = ReloadHealth(succeeded_at=NOW, needs_restart=("server.port",))
    (finding,) = diagnose(snapshot(usage(), reload=reload))
    assert finding.severity is Severity.WARNING
    assert finding.text.endswith("only after a restart: server.port.")
