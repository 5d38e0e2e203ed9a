from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import limits

from quotascope.exporter.diagnosis.explain import Explanation, explain, overruling, user_of
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import LimitState
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, Level, QuotaEntity, QuotaType, Resolution
from quotascope.metrics.kafka.rules import QuotaRules

EIGHT = {
    QuotaEntity("u", "c"): 1.0,
    QuotaEntity("u", DEFAULT): 2.0,
    QuotaEntity("u"): 3.0,
    QuotaEntity(DEFAULT, "c"): 4.0,
    QuotaEntity(DEFAULT, DEFAULT): 5.0,
    QuotaEntity(DEFAULT): 6.0,
    QuotaEntity(None, "c"): 7.0,
    QuotaEntity(None, DEFAULT): 8.0,
}


def produce(rules: dict[QuotaEntity, float], user: str = "u", client_id: str = "c") -> Explanation:
    given_limits = limits(rules={QuotaType.PRODUCE: QuotaRules(rules)})
    return explain(given_limits, user, client_id)[0]


def decided(entity: QuotaEntity) -> Resolution:
    return Resolution(level=entity.level, entity=entity, bound=EIGHT[entity])


def test_all_eight_levels_strongest_first() -> None:
    """The levels are listed in Kafka's order, each with its configured quota."""
    explanation = produce(EIGHT)
    levels = [level for level in Level if level is not Level.NONE]
    assert [(rule.level, rule.bound) for rule in explanation.levels] == list(zip(levels, EIGHT.values(), strict=True))


@pytest.mark.parametrize("strongest", range(8))
def test_strongest_decides_and_the_next_one_follows(strongest: int) -> None:
    """Removing the deciding rule leads to the next of the list."""
    entities = list(EIGHT)[strongest:]
    explanation = produce({entity: EIGHT[entity] for entity in entities})
    assert explanation.decision == decided(entities[0])
    assert explanation.fallback == (decided(entities[1]) if entities[1:] else NO_RULE)


def test_nothing_configured() -> None:
    """Without a quota of the type nothing is measured; with rules for other users only, a user is measured."""
    explanation = produce({})
    assert (explanation.decision, explanation.fallback, explanation.measured_as) == (NO_RULE, None, None)
    assert [rule.bound for rule in explanation.levels] == [None] * 8
    explanation = produce({QuotaEntity("other"): 1.0})
    assert (explanation.decision, explanation.measured_as) == (NO_RULE, ("u", ""))


def test_each_quota_type_is_decided_alone() -> None:
    """Each quota type is decided by its own rules."""
    rules = {
        QuotaType.PRODUCE: QuotaRules({QuotaEntity("u"): 1.0}),
        QuotaType.FETCH: QuotaRules({QuotaEntity(None, "c"): 2.0}),
    }
    levels = [
        (explanation.quota_type, explanation.decision.level) for explanation in explain(limits(rules=rules), "u", "c")
    ]
    assert levels == list(zip(QuotaType, (Level.USER, Level.CLIENT, Level.NONE, Level.NONE), strict=True))


@given(entities=st.sets(st.sampled_from(list(EIGHT))), client_id=st.sampled_from(["c", "", "x"]))
def test_explaining_changes_nothing(entities: set[QuotaEntity], client_id: str) -> None:
    """An explanation changes no rule, since requests share the rules."""
    rules = QuotaRules({entity: EIGHT[entity] for entity in entities})
    configured = limits(rules={QuotaType.PRODUCE: rules})
    rules_before = dict(rules)
    first_explanations = explain(configured, "u", client_id)
    assert dict(rules) == rules_before
    assert explain(configured, "u", client_id) == first_explanations
    assert first_explanations[0].decision == rules.decide("u", client_id)


PAIRS = {QuotaEntity("u", DEFAULT): 2.0, QuotaEntity("u"): 3.0}


@pytest.mark.parametrize(
    ("rules", "client_id", "bound", "measured_as", "by_client"),
    [
        (PAIRS, None, 2.0, ("u", None), True),
        (PAIRS, "x", 2.0, ("u", "x"), True),
        (PAIRS, "", 3.0, ("u", ""), True),
        ({QuotaEntity("u"): 3.0}, None, 3.0, ("u", ""), False),
        ({QuotaEntity("u"): 3.0}, "", 3.0, ("u", ""), False),
        ({QuotaEntity(None, DEFAULT): 8.0}, None, 8.0, ("", None), True),
        ({QuotaEntity(None, DEFAULT): 8.0}, "", None, ("", ""), True),
        ({QuotaEntity(DEFAULT, DEFAULT): 5.0}, None, 5.0, ("u", None), True),
        ({QuotaEntity(DEFAULT, DEFAULT): 5.0}, "", None, ("u", ""), True),
        ({QuotaEntity(None, "any-other-0"): 7.0}, None, None, ("", None), True),
    ],
)
def test_any_client_id_and_none(
    rules: dict[QuotaEntity, float],
    client_id: str | None,
    bound: float | None,
    measured_as: tuple[str, str | None],
    *,
    by_client: bool,
) -> None:
    """A client-id that no quota names is under the defaults; a client without one escapes rules for client-ids."""
    explanation = explain(limits(rules={QuotaType.PRODUCE: QuotaRules(rules)}), "u", client_id)[0]
    state = LimitState.UNLIMITED if bound is None else LimitState.LIMITED
    assert (explanation.decision.bound, explanation.limit_state) == (bound, state)
    assert (explanation.measured_as, explanation.by_client) == (measured_as, by_client)
    with_client = [True, True, False, True, True, False, True, True]
    assert [not rule.applies for rule in explanation.levels] == (with_client if client_id == "" else [False] * 8)


CALLBACK = NodeSettings(quota_callback_class="org.acme.Quotas")


@pytest.mark.parametrize(
    ("nodes", "state", "callbacks"),
    [
        ({"1": CALLBACK}, LimitState.UNKNOWN, {"1": "org.acme.Quotas"}),
        ({"1": NodeSettings(), "2": CALLBACK}, LimitState.UNLIMITED, {"2": "org.acme.Quotas"}),
        ({}, LimitState.UNLIMITED, {}),
    ],
)
def test_where_callbacks_decide_everywhere_no_limit_is_known(
    nodes: dict[str, NodeSettings], state: LimitState, callbacks: dict[str, str]
) -> None:
    """Callbacks on all nodes make a limit unknown; where they are on some, the rules hold on the others."""
    configured = limits(rules={}, nodes=nodes)
    assert overruling(configured) == callbacks
    assert {explanation.limit_state for explanation in explain(configured, "u", "c")} == {state}


def test_the_string_form_of_a_principal() -> None:
    """`User:` is cut from a principal, unless some quota has the whole text as its user."""
    users = {
        ("User:alice", "alice"): "alice",
        ("User:alice", "bob"): "alice",
        ("User:alice", "User:alice"): "User:alice",
        ("alice", "User:alice"): "alice",
        ("user:alice", "alice"): "user:alice",
        ("User:User:x", "x"): "User:x",
    }
    rules = {user: {QuotaType.FETCH: QuotaRules({QuotaEntity(user[1]): 1.0})} for user in users}
    assert {user: user_of(limits(rules=rules[user]), user[0]) for user in users} == users
