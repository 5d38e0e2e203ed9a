from __future__ import annotations

import io
import json
from math import inf

import pytest
from hypothesis import example, given
from rich.console import Console
from tests.strategies import HOSTILE, broken_texts, texts

from quotascope.cli.explain_view import as_table
from quotascope.exporter.diagnosis.explain import as_json, explain, sentence
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.snapshot import NodeUsage
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType


def printed(user: str, client_id: str | None, *more: QuotaEntity) -> str:
    """What a terminal gets, for a client with a rule of its own, or with others."""
    own = more or (QuotaEntity(user, client_id),)
    rules = {QuotaType.PRODUCE: QuotaRules(dict.fromkeys(own, 1.0))}
    explanations = explain(Limits(rules=rules, read_at=0.0), user, client_id)
    output = io.StringIO()
    Console(file=output, force_terminal=False, width=120).print(as_table(user, client_id, explanations))
    return output.getvalue()


@given(texts | broken_texts, texts | broken_texts)
@example("\x1b[2J\x1b]0;owned\x07", "\u202e\x9b31m\x00")
def test_no_name_moves_the_cursor(user: str, client_id: str) -> None:
    """Nor breaks a line, is taken for markup, or cannot be written."""
    shown = printed(user, client_id)
    assert all(char == "\n" or char.isprintable() for char in shown)
    shown.encode()


@pytest.mark.parametrize("name", ["[bold red]x[/]", "[link=http://evil]x"])
def test_markup_is_text(name: str) -> None:
    """Rich would make colors and links of it."""
    assert name in printed(name, "")


def test_long_names_stay_short() -> None:
    """Ten thousand characters do not push everything else away."""
    assert len(printed(max(HOSTILE, key=len), "a")) < 40_000


PAIRS = QuotaEntity("alice", DEFAULT)


@pytest.mark.parametrize(
    ("client_id", "rules", "sentence"),
    [
        (None, (PAIRS,), "2 alice / <default> applies, 1 B/s; without it: unlimited; each client-id of this user counted alone"),
        ("", (PAIRS,), "unlimited; counted for the clients of user alice without client-id"),
        ("", (PAIRS, QuotaEntity("alice")), "3 user alice applies, 1 B/s; without it: unlimited; counted for the clients of user alice without client-id"),
        ("", (QuotaEntity("alice"),), "3 user alice applies, 1 B/s; without it: unlimited; counted for all clients of user alice together"),
        ("", (QuotaEntity(None, DEFAULT),), "unlimited; counted for all users with no client-id together"),
        (None, (QuotaEntity(None, "x"),), "unlimited; each client-id counted for all users together"),
        ("x", (QuotaEntity(None, "x"),), "7 client-id x applies, 1 B/s; without it: unlimited; counted for all users with client-id x together"),
    ]
)  # fmt: skip
def test_what_decides_in_a_sentence(client_id: str | None, rules: tuple[QuotaEntity, ...], sentence: str) -> None:
    """Any client-id, a client that sends none, and one that a quota names are three things."""
    whole = " ".join(printed("alice", client_id, *rules).split())
    assert f"produce: {sentence}" in whole


def test_levels_that_do_not_reach_a_client_without_an_id() -> None:
    """What is set there is shown, but not as if it could decide."""
    shown = printed("alice", "", PAIRS)
    assert "user alice, no client-id\n" in shown
    assert " (1) " in shown
    assert "(…) not for clients that send no client-id" in shown
    assert "(1)" not in printed("alice", None, PAIRS)


def test_programs_get_the_same() -> None:
    """Unlimited, and nothing to fall back to, are distinguished from what is unknown."""
    known = Limits(rules={QuotaType.FETCH: QuotaRules({PAIRS: 7.0})}, read_at=0.0)
    answer = as_json("alice", None, explain(known, "alice", None), {"2": "a.B"})
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
    """The client's own limit stays unknown: it may be an excluded principal."""
    nodes = [NodeUsage(broker=node, static_limits={QuotaType.REQUEST: bound}) for node, bound in by_node.items()]
    explanations = explain(UNDER_PLUGIN, "alice", "a", nodes)
    (shown,) = (sentence(each, "alice", "a") for each in explanations if each.quota_type is QuotaType.REQUEST)
    assert shown.startswith(f"request: {text}")
    assert shown.endswith("(client.quota.callback.static.request)") == bool(by_node)
    quotas = json.loads(json.dumps(as_json("alice", "a", explanations, {})))["quotas"]
    assert (quotas[2]["shared"], quotas[2]["limit_state"]) == (shared, "unknown")


def test_levels_stand_in_rows_below_quota_types() -> None:
    """From the left edge on, as wide as the longest cell, two blanks after each column; numbers end below each other."""
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
