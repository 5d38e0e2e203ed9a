"""Untrusted names in `quotascope status`, `doctor` and `explain`, and exit codes of `doctor`."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import example, given
from rich.console import Console
from tests.cli.conftest import Run
from tests.cli.usages import rendered, usage_of
from tests.exporter.examples import COMPLETE, health, limits, snapshot, usage
from tests.strategies import HOSTILE, broken_texts, texts

from quotascope.cli import doctor, doctor_view, explain_view
from quotascope.cli.quotas import list_view
from quotascope.cli.status_view import view
from quotascope.exporter.diagnosis.catalog import Finding, FindingSeverity
from quotascope.exporter.diagnosis.explain import as_json, explain, sentence
from quotascope.exporter.diagnosis.rule_usage import RuleUsage
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.snapshot import EntityUsage, Folds, NodeUsage
from quotascope.metrics.catalog.thresholds import NEAR_LIMIT
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

WIDTHS = [80, 100, 160, 250]


def lines(width: int, *entities: EntityUsage) -> list[str]:
    text = rendered(view(snapshot(*entities), [], 10), width)
    whole = [line.rstrip() for line in text.splitlines()]
    return whole[whole.index(next(line for line in whole if "usage / limit" in line)) :]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_name_leaves_room_for_the_numbers(width: int) -> None:
    """One client with ten thousand characters takes no column from the others."""
    long = usage_of("alice", "x" * 10_000, throttle_time_seconds=1.0)
    head, first, second, *_ = lines(width, long, usage_of("bob", "app"))
    assert head.split() == ["node", "entity", "quota", "usage", "/", "limit", "used", "delay", "rule"]
    assert 'produce 0.50 / 1.00 kB/s  50% 1.00 s 1 alice / "x' in first
    assert second.startswith("1    bob / app")
    assert max(map(len, (head, first, second))) <= min(width, 150)


@pytest.mark.parametrize("width", [30, 60])
def test_a_narrow_terminal_cuts_no_figure(width: int) -> None:
    """Each row is a block with the head before each cell; a name of ten thousand characters takes three lines."""
    long = usage_of("alice", "x" * 10_000, throttle_time_seconds=1.0)
    drawn = rendered(view(snapshot(long, usage_of("checkout", "cart-service")), [], 10), width)
    text = " ".join(drawn.split())
    figures = ("usage / limit: 0.50 / 1.00 kB/s", "used: 50%", "delay: 1.00 s", "quota: produce", "dialect", "readings")
    assert all(text_part in text for text_part in ("checkout / cart-service node: 1", *figures))
    assert max(map(len, drawn.splitlines())) <= width
    assert drawn.count("x" * (width - 3)) <= 6
    levels = explain(Limits(rules={QuotaType.FETCH: QuotaRules({PAIRS: 5e9})}, read_at=0.0), "alice", "etl")
    drawn = rendered(explain_view.as_table("alice", "etl", levels), width)
    assert "2 alice / <default> produce: - fetch: > 5,000,000,000 " in " ".join(drawn.split())


def test_used_and_burst_used_are_two_things() -> None:
    """Rows have usage of the limit, and the used part of a bucket, as on the page and in `top`."""
    broke = usage(QuotaType.CONTROLLER_MUTATION, limit=1.0, usage=0.5, tokens=-2.0, burst_tokens=10.0)
    text = rendered(view(snapshot(broke), [], 10), 160)
    assert "0.50 / 1.00 mut/s 50% 120%" in " ".join(text.split())


def test_a_folded_entity_is_shown_all_the_same() -> None:
    """The terminal shows a throttled entity even if the metrics fold it."""
    waits = usage_of("bob", "app", throttle_time_seconds=1.0)
    drawn = snapshot(left_out=(waits,), folds=Folds(overflow=1))
    text = rendered(view(drawn, [], 10), 160)
    assert "1 quota entity (1 folded: not one by one in the metrics)" in text
    assert "bob / app" in text


def test_entities_are_unknown_where_no_source_is_read() -> None:
    """No agent reports any, which does not mean that there is none."""
    unread = snapshot(nodes=(), sources=(health(up=False, error="refused"),))
    assert "quota entities: unknown" in rendered(view(unread, [], 10), 160)
    assert "0 quota entities" in rendered(view(snapshot(), [], 10), 160)


def test_unknown_throttle_times_are_not_none() -> None:
    """An agent without throttle times makes it unknown whether an entity is throttled."""
    blind, limited = usage_of("bob", limit=None), usage_of("carol", usage=900.0)
    blind.throttle_time_seconds = limited.throttle_time_seconds = None
    text = rendered(view(snapshot(blind), [], 10), 160)
    assert "none of them known to be throttled; throttle times of 1 unknown" in text
    text = rendered(view(snapshot(blind, limited), [], 10), 160)
    assert "closest to the limit (throttle times of 2 unknown):" in text
    assert "90% unknown" in " ".join(text.split())


@given(name=texts)
def test_no_name_breaks_a_line_or_moves_the_cursor(name: str) -> None:
    """Sources, findings, nodes and entities come from outside; markup in them is only text."""
    hostile = f"[/][bold]{name}"
    drawn = snapshot(usage_of(hostile, hostile), sources=(health(hostile, dialect=hostile),))
    finding = Finding(code="x", check="agents", severity=FindingSeverity.ERROR, text=hostile, advice=hostile)
    text = rendered(view(drawn, [finding], 10), 5_000)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("[/][bold]") >= 5


@given(texts)
def test_no_name_can_forge_a_line_of_doctor(text: str) -> None:
    """Hostile names are shown escaped in the doctor's output, and unchanged in JSON."""
    warning = FindingSeverity.WARNING
    finding = Finding(code="x", check="agents", subject=text, severity=warning, text=text, advice=f"a{text}")
    drawn = rendered(doctor_view.as_table([finding]), 1_000_000)
    assert len(drawn.splitlines()) == len(("header", "text", "advice", "", "summary"))
    (document,) = json.loads(json.dumps(doctor_view.as_json([finding])))["findings"]
    assert (document["subject"], document["severity"]) == (text, "warning")


@pytest.mark.parametrize(
    ("severities", "code"),
    [
        ("", 0),
        ("ok", 0),
        ("ok note", 0),
        ("warning ok", 1),
        ("note warning ok", 1),
        ("error ok", 2),
        ("warning error note", 2),
    ],
)
def test_exit_codes_of_doctor(severities: str, code: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst severity decides, as in docs/guides/operation.md: 0 works, 1 shows less than it could, 2 fails."""

    async def run_checks(*_: object) -> list[Finding]:
        parsed = map(FindingSeverity, severities.split())
        return [Finding(code="x", check="agents", severity=severity, text="") for severity in parsed]

    monkeypatch.setattr(doctor, "run_checks", run_checks)
    assert run("doctor", "--source", "jolokia=http://127.0.0.1:1/jolokia")[0] == code


def printed(user: str, client_id: str | None, *more: QuotaEntity) -> str:
    """Return the terminal output for a client with its own rule, or with other rules."""
    rule_entities = more or (QuotaEntity(user, client_id),)
    rules = {QuotaType.PRODUCE: QuotaRules(dict.fromkeys(rule_entities, 1.0))}
    explanations = explain(Limits(rules=rules, read_at=0.0), user, client_id)
    output = io.StringIO()
    Console(file=output, force_terminal=False, width=120).print(explain_view.as_table(user, client_id, explanations))
    return output.getvalue()


@given(texts | broken_texts, texts | broken_texts)
@example("\x1b[2J\x1b]0;owned\x07", "\u202e\x9b31m\x00")
@example(max(HOSTILE, key=len), "a")
def test_no_name_moves_the_cursor(user: str, client_id: str) -> None:
    """No name moves the cursor, breaks a line, is taken for markup, fails to be written, or hides the other columns."""
    drawn = printed(user, client_id)
    assert all(char == "\n" or char.isprintable() for char in drawn)
    assert len(drawn.encode()) < 40_000


@pytest.mark.parametrize("name", ["[bold red]x[/]", "[link=http://evil]x"])
def test_markup_is_text(name: str) -> None:
    """Markup in a name is printed as text."""
    assert name in printed(name, "")


PAIRS = QuotaEntity("alice", DEFAULT)


@pytest.mark.parametrize(
    ("client_id", "rules", "sentence"),
    [
        (None, (PAIRS,), (
            "2 alice / <default> applies, 1 B/s; without it: unlimited; each client-id of this user counted alone"
        )),
        ("", (PAIRS,), "unlimited; counted for the clients of user alice without client-id"),
        ("", (PAIRS, QuotaEntity("alice")), (
            "3 user alice applies, 1 B/s; without it: unlimited; counted for the clients of user alice without "
            "client-id"
        )),
        ("", (QuotaEntity("alice"),), (
            "3 user alice applies, 1 B/s; without it: unlimited; counted for all clients of user alice together"
        )),
        ("", (QuotaEntity(None, DEFAULT),), "unlimited; counted for all users with no client-id together"),
        (None, (QuotaEntity(None, "x"),), "unlimited; each client-id counted for all users together"),
        ("x", (QuotaEntity(None, "x"),), (
            "7 client-id x applies, 1 B/s; without it: unlimited; counted for all users with client-id x together"
        )),
    ]
)  # fmt: skip
def test_what_decides_in_a_sentence(client_id: str | None, rules: tuple[QuotaEntity, ...], sentence: str) -> None:
    """The sentence distinguishes any client-id, a client without one, and a client-id that a quota names."""
    whole = " ".join(printed("alice", client_id, *rules).split())
    assert f"produce: {sentence}" in whole


def test_levels_that_do_not_reach_a_client_without_an_id() -> None:
    """Rules of levels that do not reach a client without an id are marked."""
    drawn = printed("alice", "", PAIRS)
    assert "user alice, no client-id\n" in drawn
    assert " (1) " in drawn
    assert "(…) not for clients that send no client-id" in drawn
    assert "(1)" not in printed("alice", None, PAIRS)


def test_programs_get_the_same() -> None:
    """JSON distinguishes unlimited and a missing fallback from unknown."""
    limits = Limits(rules={QuotaType.FETCH: QuotaRules({PAIRS: 7.0})}, read_at=0.0)
    answer = as_json("alice", None, explain(limits, "alice", None), {"2": "a.B"})
    whole = json.loads(json.dumps(answer))
    assert (whole["client_id"], whole["callbacks"]) == (None, {"2": "a.B"})
    produce, fetch, *_ = whole["quotas"]
    assert (produce["limit_state"], produce["decision"]) == ("unlimited", None)
    assert (produce["fallback"], produce["fallback_limit_state"]) == (None, None)
    assert (fetch["limit_state"], fetch["decision"]["limit"]) == ("limited", 7.0)
    assert (fetch["fallback"], fetch["fallback_limit_state"]) == (None, "unlimited")
    assert fetch["measured_as"] == {"user": "alice", "client_id": None}
    names = [level["rule_client_id"] for level in fetch["levels"]]
    assert names == [None, "<default>", "", None, "<default>", "", None, "<default>"]


UNDER_PLUGIN = Limits(nodes={"1": NodeSettings(quota_callback_class="io.strimzi.kafka.quotas.A")}, read_at=0.0)


@pytest.mark.parametrize(
    ("by_node", "text", "shared"),
    [
        ({"1": 200.0}, "200 % of a thread on each node, for all", {"1": 2.0}),
        ({"1": 200.0, "2": inf}, "200 % of a thread on node 1, unlimited on node 2, for all", {"1": 2.0, "2": None}),
        ({}, "unknown; a custom quota callback sets it on every node", {}),
    ]
)  # fmt: skip
def test_the_limit_of_strimzis_plugin_has_its_rule(
    by_node: dict[str, float], text: str, shared: dict[str, float | None]
) -> None:
    """The plugin's limit is shown with its rule; a client's own stays unknown, as it may be excluded."""
    nodes = [NodeUsage(broker=node, static_limits={QuotaType.REQUEST: bound}) for node, bound in by_node.items()]
    explanations = explain(UNDER_PLUGIN, "alice", "a", nodes)
    (drawn,) = (
        sentence(explanation, "alice", "a")
        for explanation in explanations
        if explanation.quota_type is QuotaType.REQUEST
    )
    assert drawn.startswith(f"request: {text}")
    assert drawn.endswith("(client.quota.callback.static.request)") == bool(by_node)
    quotas = json.loads(json.dumps(as_json("alice", "a", explanations, {})))["quotas"]
    assert (quotas[2]["shared"], quotas[2]["limit_state"]) == (shared, "unknown")


def test_levels_stand_in_rows_below_quota_types() -> None:
    """Columns begin at the left edge, are as wide as their longest cell and two blanks, numbers right-aligned."""
    lines = [line.rstrip() for line in printed("alice", "etl").splitlines()]
    assert lines[2:12] == [
        "                                                  controller",
        "rule                     produce  fetch  request    mutation",
        "1 alice / etl                > 1      -        -           -",
        "2 alice / <default>            -      -        -           -",
        "3 user alice                   -      -        -           -",
        "4 <default> / etl              -      -        -           -",
        "5 <default> / <default>        -      -        -           -",
        "6 user <default>               -      -        -           -",
        "7 client-id etl                -      -        -           -",
        "8 client-id <default>          -      -        -           -",
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "1 quota entity, none of them throttled or near a limit"),
        (
            {"delay_queue_size": {QuotaType.FETCH: 2.0}},
            (
                "1 quota entity, none of them shown as throttled or near a limit, though 2 connections wait in delay "
                "queues"
            ),
        ),
        (
            {"delay_queue_size": {QuotaType.REQUEST: 2.0}},
            "1 quota entity; clients of node 1 not shown; none of those shown is throttled or near a limit",
        ),
    ],
)
def test_no_entity_is_called_calm_while_connections_wait(changes: dict[str, Any], text: str) -> None:
    """Connections in a delay queue are reported, whether or not any entity of their quota type is shown."""
    coverage = replace(COMPLETE, usages=frozenset({QuotaType.FETCH}))
    calm = usage_of("alice", "app", usage=0.0, throttle_time_seconds=0.0)
    node = NodeUsage(broker="1", coverage=coverage, **changes)
    assert text in rendered(view(snapshot(calm, nodes=(node,)), [], 10), 160)


def test_replication_throttles_stand_in_the_status() -> None:
    settings = NodeSettings(replication_limits={"leader": 1e6}, replication_origins={"leader": "all brokers"})
    drawn = snapshot(limits=limits(nodes={"1": settings}))
    assert "replication throttles: leader 1.00 MB/s on broker 1 (default of all brokers)" in rendered(
        view(drawn, [], 10), 160
    )


def test_a_rule_whose_clients_are_not_visible_is_not_called_idle() -> None:
    rule = RuleUsage(entity=QuotaEntity("alice"), key="producer_byte_rate", value=1.0, hits=None, hidden_on=("3",))
    text = rendered(list_view.as_table([rule], NEAR_LIMIT.value), 200)
    assert "not visible here" in text
    assert "clients of 1 may not be visible here (nodes 3)" in text
    assert list_view.as_json([rule])[0]["hidden_on"] == ["3"]
