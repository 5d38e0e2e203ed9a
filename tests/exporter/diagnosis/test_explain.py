from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import limits

from quotascope.exporter.diagnosis.explain import Explanation, explain, overruling, user_of
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import LimitState
from quotascope.metrics import DEFAULT, NO_RULE, Level, QuotaEntity, QuotaRules, QuotaType, Resolution

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
LEVELS = [level for level in Level if level is not Level.NONE]


def produce(rules: dict[QuotaEntity, float], user: str = "u", client_id: str = "c") -> Explanation:
    """The explanation of the produce quota."""
    given_limits = limits(rules={QuotaType.PRODUCE: QuotaRules(rules)})
    return explain(given_limits, user, client_id)[0]


def decided(entity: QuotaEntity) -> Resolution:
    """The decision for one of ``EIGHT``."""
    return Resolution(level=entity.level, entity=entity, bound=EIGHT[entity])


def test_all_eight_levels_strongest_first() -> None:
    """The list is Kafka's order, with what is configured at each level."""
    shown = produce(EIGHT)
    assert [rule.level for rule in shown.levels] == LEVELS
    assert [rule.bound for rule in shown.levels] == list(EIGHT.values())


@pytest.mark.parametrize("first", range(8))
def test_strongest_decides_and_the_next_one_follows(first: int) -> None:
    """Removing the deciding rule leads to the next of the list."""
    entities = list(EIGHT)[first:]
    shown = produce({entity: EIGHT[entity] for entity in entities})
    assert shown.decision == decided(entities[0])
    assert shown.fallback == (decided(entities[1]) if entities[1:] else NO_RULE)


def test_nothing_configured() -> None:
    """Without a quota of this type nothing decides and nothing is measured."""
    shown = produce({})
    assert shown.decision == NO_RULE
    assert shown.fallback is None
    assert shown.measured_as is None
    assert [rule.bound for rule in shown.levels] == [None] * 8


def test_unmatched_user_is_measured_all_the_same() -> None:
    """With rules for other users only, a user without a rule is counted by user."""
    shown = produce({QuotaEntity("other"): 1.0})
    assert shown.decision == NO_RULE
    assert shown.measured_as == ("u", "")


def test_each_quota_type_is_decided_alone() -> None:
    """A produce rule says nothing about fetches."""
    configured = limits(
        rules={
            QuotaType.PRODUCE: QuotaRules({QuotaEntity("u"): 1.0}),
            QuotaType.FETCH: QuotaRules({QuotaEntity(None, "c"): 2.0}),
        }
    )
    found = {each.quota_type: each.decision.level for each in explain(configured, "u", "c")}
    assert found == {
        QuotaType.PRODUCE: Level.USER,
        QuotaType.FETCH: Level.CLIENT,
        QuotaType.REQUEST: Level.NONE,
        QuotaType.CONTROLLER_MUTATION: Level.NONE,
    }


@given(entities=st.sets(st.sampled_from(list(EIGHT))), client_id=st.sampled_from(["c", "", "x"]))
def test_explaining_changes_nothing(entities: set[QuotaEntity], client_id: str) -> None:
    """The rules are those of everybody: looking at what would be does not remove one."""
    rules = QuotaRules({entity: EIGHT[entity] for entity in entities})
    configured = limits(rules={QuotaType.PRODUCE: rules})
    before = dict(rules)
    first = explain(configured, "u", client_id)
    assert dict(rules) == before
    assert explain(configured, "u", client_id) == first
    assert first[0].decision == rules.decide("u", client_id)


def test_a_custom_callback_overrules_the_rules_of_its_node() -> None:
    """Who explains must say so."""
    nodes = {
        "1": NodeSettings(),
        "2": NodeSettings(quota_callback_class="org.acme.Quotas"),
    }
    assert overruling(limits(nodes=nodes)) == {"2": "org.acme.Quotas"}


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
    """One that no quota names is under the defaults; a client that sends none escapes every rule with a client-id."""
    given_limits = limits(rules={QuotaType.PRODUCE: QuotaRules(rules)})
    shown = explain(given_limits, "u", client_id)[0]
    assert shown.decision.bound == bound
    assert (shown.measured_as, shown.by_client) == (measured_as, by_client)
    state = LimitState.UNLIMITED if bound is None else LimitState.LIMITED
    assert shown.limit_state is state
    escapes = [not rule.applies for rule in shown.levels]
    with_client = [True, True, False, True, True, False, True, True]
    assert escapes == (with_client if client_id == "" else [False] * 8)


def test_where_callbacks_decide_everywhere_no_limit_is_known() -> None:
    """Neither a limit nor that there is none; where they do on some nodes, the rules hold on the others."""
    callback = NodeSettings(quota_callback_class="org.acme.Quotas")
    for nodes, state in (
        ({"1": callback}, LimitState.UNKNOWN),
        ({"1": callback, "2": NodeSettings()}, LimitState.UNLIMITED),
        ({}, LimitState.UNLIMITED),
    ):
        shown = explain(limits(rules={}, nodes=nodes), "u", "c")
        assert {each.limit_state for each in shown} == {state}


@pytest.mark.parametrize(
    ("name", "configured", "user"),
    [
        ("User:alice", "alice", "alice"),
        ("User:alice", "bob", "alice"),
        ("User:alice", "User:alice", "User:alice"),
        ("alice", "User:alice", "alice"),
        ("user:alice", "alice", "user:alice"),
        ("User:User:x", "x", "User:x"),
    ],
)
def test_the_string_form_of_a_principal(name: str, configured: str, user: str) -> None:
    """Its user is what follows, but for a name that some quota has just so."""
    rules = {QuotaType.FETCH: QuotaRules({QuotaEntity(configured): 1.0})}
    assert user_of(limits(rules=rules), name) == user
