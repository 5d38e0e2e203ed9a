"""Rules for names that no client has, and the clients that they may be meant for."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import limits, snapshot, usage
from tests.quotas.slips import SLIPS

from quotascope.exporter.api.answers import rules_document
from quotascope.exporter.diagnosis.catalog import Catalog, FindingSeverity
from quotascope.exporter.diagnosis.findings import quota_findings
from quotascope.exporter.diagnosis.misnamed import Misnamed, measured_names, misnamed
from quotascope.exporter.diagnosis.rule_usage import rule_usage
from quotascope.exporter.limits import Limits
from quotascope.exporter.page.rules import RuleQuery, find_rules
from quotascope.exporter.snapshot import NodeUsage, Snapshot
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.quotas import QuotaSet

EVERY = QuotaEntity(DEFAULT)
PAIRS = QuotaEntity(DEFAULT, DEFAULT)


def rules(*entities: QuotaEntity) -> Limits:
    """Return a produce quota for each."""
    return limits(rules={QuotaType.PRODUCE: QuotaRules(dict.fromkeys(entities, 2000.0))}, connection_limits={})


def measured(configured: Limits, *names: tuple[str, str], **changes: Any) -> Snapshot:
    clients = [
        usage(user=user, client_id=client, configured=configured, limit=2000.0, usage=9.0) for user, client in names
    ]
    return snapshot(*clients, limits=configured, **changes)


def found(configured: Limits, state: Snapshot) -> dict[QuotaEntity, Misnamed]:
    return {rule.misnamed.entity: rule.misnamed for rule in rule_usage(configured, state) if rule.misnamed is not None}


def test_a_rule_for_the_string_form_of_a_principal() -> None:
    """A rule for `User:name` is reported with the client meant, its present rule, and commands that correct it."""
    wrong = QuotaEntity("User:erin")
    configured = rules(wrong, EVERY)
    state = measured(configured, ("erin", ""))
    text = (
        "`3 user User:erin` applies to no client; user erin is measured under `6 user <default>`, and differs in "
        "the type of the principal (User:): is it meant?"
    )
    commands = (
        "quotascope quotas set producer_byte_rate=2000 --user erin",
        "quotascope quotas remove producer_byte_rate --user User:erin",
    )
    assert found(configured, state)[wrong].text == text
    finding, *other_findings = [
        finding for finding in quota_findings(state) if finding.severity is not FindingSeverity.OK
    ]
    assert (finding.code, finding.subject, finding.text, finding.commands) == (
        "rule_misnamed",
        wrong.rule,
        text,
        commands,
    )
    assert finding.severity is FindingSeverity.WARNING
    assert other_findings == [], "it is no limit without a client besides"
    document = next(rule for rule in rules_document(find_rules(state, RuleQuery())).rules if rule.user == "User:erin")
    assert document.misnamed is not None
    assert (document.misnamed.text, tuple(document.misnamed.commands)) == (text, commands)
    assert [(candidate.rule, candidate.measured_under) for candidate in document.misnamed.meant] == [
        ("3 user erin", "6 user <default>")
    ]


@pytest.mark.parametrize(
    ("rule", "clients", "other_rules", "meant", "words"),
    [
        (QuotaEntity("Bob"), [("bob", ""), ("BOB", "")], [EVERY], ["user BOB", "user bob"], "is one of them meant?"),
        (
            QuotaEntity("User:bob"),
            [("bob", "")],
            [QuotaEntity("bob"), EVERY],
            ["user bob"],
            "measured under `3 user bob`",
        ),
        (
            QuotaEntity("alice", "App"),
            [("alice", "app")],
            [PAIRS],
            ["alice / app"],
            "alice / app is measured under `5 <default> / <default>`",
        ),
        (QuotaEntity("Alice", "App"), [("alice", "app")], [PAIRS], ["alice / app"], "upper and lower case"),
        (QuotaEntity("Alice", "gone"), [("alice", "app")], [PAIRS], ["alice / gone"], "alice / app is measured"),
        (QuotaEntity("Alice", DEFAULT), [("alice", "app")], [PAIRS], ["alice / <default>"], "alice / app is measured"),
        (
            QuotaEntity(DEFAULT, "my%20app"),
            [("alice", "my app")],
            [PAIRS],
            ['<default> / "my app"'],
            "percent-encoding",
        ),
        (QuotaEntity(None, '"app"'), [("", "app")], [QuotaEntity(None, DEFAULT)], ["client-id app"], "quotes"),
        (QuotaEntity("erin@CORP"), [("erin", "")], [EVERY], ["user erin"], "the host and realm of Kerberos"),
        (
            QuotaEntity("default"),
            [("bob", "")],
            [QuotaEntity("bob")],
            ["user <default>"],
            "--default-user on the command line: is it meant?",
        ),
        (
            QuotaEntity(None, "default"),
            [("", "app")],
            [QuotaEntity(None, "app")],
            ["client-id <default>"],
            "--default-client-id",
        ),
        (
            QuotaEntity("<default>"),
            [("bob", "")],
            [EVERY],
            ["user <default>"],
            'the name "<default>"; the default of all users is <default> in files',
        ),
        (
            QuotaEntity("User:zoe"),
            [("bob", "")],
            [EVERY],
            ["user zoe"],
            "begins with User:, where Kafka compares with the name alone: is user zoe meant?",
        ),
    ],
)  # fmt: skip
def test_what_may_be_meant(
    rule: QuotaEntity, clients: list[tuple[str, str]], other_rules: list[QuotaEntity], meant: list[str], words: str
) -> None:
    """A misnamed rule may mean one or several entities, as far as client-ids are known, even rarely used ones."""
    configured = rules(rule, *other_rules)
    (problem,) = found(configured, measured(configured, *clients)).values()
    assert problem.entity == rule
    assert [str(candidate.entity) for candidate in problem.meant] == meant
    assert words in problem.text
    set_again = [command for command in problem.commands if " set " in command]
    assert len(set_again) == sum(not candidate.has_rule for candidate in problem.meant)
    assert problem.commands[-1].startswith("quotascope quotas remove producer_byte_rate --")


@pytest.mark.parametrize(
    ("rule", "clients", "other_rules"),
    [
        (QuotaEntity("User:bob"), [("User:bob", "x"), ("bob", "x")], [PAIRS, QuotaEntity("User:bob", DEFAULT)]),
        (QuotaEntity("default"), [("default", "")], []),
        (QuotaEntity("zoe"), [("bob", "")], [EVERY]),
        (QuotaEntity("bob", "app2"), [("bob", "app1")], [PAIRS]),
        (EVERY, [("bob", "")], [QuotaEntity("bob")]),
        (QuotaEntity(None, "App"), [("bob", "app")], [PAIRS]),
    ],
    ids=["measured under a pair", "in use", "idle", "idle client-id", "the default", "overruled"],
)
def test_no_slip(rule: QuotaEntity, clients: list[tuple[str, str]], other_rules: list[QuotaEntity]) -> None:
    """A measured name, an ordinary name, and a rule without effect under any name have no finding."""
    configured = rules(rule, *other_rules)
    assert rule not in found(configured, measured(configured, *clients))


@pytest.mark.parametrize(
    "changes", [{"nodes": ()}, {"unsent": 1}, {"nodes": (NodeUsage(broker="1", quota_callback=True, overruled=True),)}]
)
def test_what_is_not_known_is_no_slip(changes: dict[str, Any]) -> None:
    """No rule is called misnamed while a node is unread or a callback decides."""
    configured = rules(QuotaEntity("User:erin"), EVERY)
    assert found(configured, measured(configured, ("erin", ""), **changes)) == {}


@given(st.text(min_size=1, max_size=12), st.sampled_from(sorted(SLIPS)))
def test_any_slip_is_found_and_no_name_in_use(name: str, slip: str) -> None:
    """
    A rule for a measured client is in order.

    One for its name with a slip is not, and its commands are words of a shell.
    """
    misspelled = SLIPS[slip](name)
    configured = rules(*{QuotaEntity(name), QuotaEntity(misspelled), EVERY})
    problems = found(configured, measured(configured, (name, "")))
    assert QuotaEntity(name) not in problems
    if slip in {"type", "quotes", "leading", "trailing", "byte order"} and name.strip() and misspelled != name:
        assert name in {candidate.entity.user for candidate in problems[QuotaEntity(misspelled)].meant}
    for problem in problems.values():
        for command in problem.commands:
            assert command.isprintable()
            if "$'" not in command and "|" not in command:
                assert shlex.split(command)[-1] in {name, misspelled}


def test_rules_that_are_to_be_set() -> None:
    """Planned rules are checked for odd names without a snapshot, and against measured names with one."""
    planned = QuotaSet(
        {QuotaEntity(name): {"producer_byte_rate": 1.0} for name in ("User:erin", "Erin", "default", "<default>")}
    )
    nothing = misnamed(planned, measured_names(None), QuotaSet(), in_force=False)
    assert [str(entity) for entity in nothing] == ["user default", "user User:erin"]
    assert all("may apply to no client" in problem.text for problem in nothing.values())
    assert [problem.commands for problem in nothing.values()] == [
        ("quotascope quotas set producer_byte_rate=1 --default-user",),
        ("quotascope quotas set producer_byte_rate=1 --user erin",),
    ]
    configured = rules(EVERY)
    something = misnamed(planned, measured_names(measured(configured, ("erin", ""))), QuotaSet(), in_force=False)
    assert [str(entity) for entity in something] == ["user default", "user Erin", "user User:erin"]
    assert "would apply to no client; user erin is measured" in something[QuotaEntity("Erin")].text


def test_many_slips_are_counted() -> None:
    """The first misnamed rules have a finding each, and the others are counted."""
    wrong: Iterable[QuotaEntity] = [QuotaEntity(f"User:u{number}") for number in range(7)]
    configured = rules(*wrong, EVERY)
    codes = [finding.code for finding in quota_findings(measured(configured, ("erin", "")))]
    assert codes.count("rule_misnamed") == 5
    assert "2 more rules" in Catalog.RULES_MISNAMED.found(count=2).text
    assert codes.count("rules_misnamed") == 1
