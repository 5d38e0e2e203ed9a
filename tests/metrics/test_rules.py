"""Entities and rules: precedence, tags, limits and staleness, each against a literal reading of Kafka's tables."""

import copy
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, Level, Name, QuotaEntity, QuotaType
from quotascope.metrics.kafka.errors import InvalidConfig
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable

USERS: list[Name | None] = ["a", "b", DEFAULT, None]
CLIENTS: list[Name | None] = ["x", "y", "", DEFAULT, None]
ENTITIES = [
    QuotaEntity(user, client) for user, client in itertools.product(USERS, CLIENTS) if (user, client) != (None, None)
]
rule_maps = st.dictionaries(st.sampled_from(ENTITIES), st.floats(0.5, 1e9), max_size=len(ENTITIES))
requests = st.tuples(st.sampled_from(["a", "b", "fresh"]), st.sampled_from(["x", "y", "fresh", ""]))


def ordered(user: str, client: str) -> list[QuotaEntity]:
    """The eight levels of the manual, strongest first."""
    return [
        QuotaEntity(user, client),
        QuotaEntity(user, DEFAULT),
        QuotaEntity(user),
        QuotaEntity(DEFAULT, client),
        QuotaEntity(DEFAULT, DEFAULT),
        QuotaEntity(DEFAULT),
        QuotaEntity(None, client),
        QuotaEntity(None, DEFAULT),
    ]


def expected_tags(rules: dict[QuotaEntity, float], user: str, client: str) -> tuple[str, str]:
    """The tags by the shapes present, else by the first entity that exists."""
    shapes = {(e.user is not None, e.client_id is not None) for e in rules}
    if shapes <= {(False, True)}:
        return "", client
    if shapes == {(True, False)}:
        return user, ""
    if shapes == {(True, True)}:
        return user, client
    for entity in ordered(user, client):
        if entity in rules:
            return (
                user if entity.user is not None else "",
                client if entity.client_id is not None else "",
            )
    return "", client


def expected_entity(rules: dict[QuotaEntity, float], user: str, client: str) -> QuotaEntity | None:
    """Return the first configured entity with the names that the tags have."""
    levels = ordered(user, client)
    if user and client:
        levels = [levels[i] for i in (0, 1, 3, 4)]
    elif user:
        levels = [levels[i] for i in (2, 5)]
    elif client:
        levels = [levels[i] for i in (6, 7)]
    else:
        levels = []
    return next((entity for entity in levels if entity in rules), None)


@given(rule_maps, requests)
def test_a_request_is_decided_as_the_manual_says(rules: dict[QuotaEntity, float], request: tuple[str, str]) -> None:
    """A request is measured under Kafka's tags, which lead to its rule, level and bound, and are never stale."""
    table = QuotaRules(rules)
    tags = expected_tags(rules, *request)
    assert table.metric_tags(*request) == tags
    assert table.would_record(*tags)
    entity = expected_entity(rules, *tags)
    resolution = table.decide(*request)
    assert resolution.entity == entity
    assert resolution.bound == (None if entity is None else rules[entity])
    assert resolution.level is (Level.NONE if entity is None else entity.level)


@given(rule_maps, requests)
def test_limit_by_tags(rules: dict[QuotaEntity, float], tags: tuple[str, str]) -> None:
    """A metric is bounded by rules of its own shape; all eight levels are listed in order with their bounds."""
    table = QuotaRules(rules)
    resolution = table.limit(*tags)
    assert (None if resolution is None else resolution.entity) == expected_entity(rules, *tags)
    assert table.bound_of(*tags) == (None if resolution is None else resolution.bound)
    assert table.candidates(*tags) == [(entity.level, entity, rules.get(entity)) for entity in ordered(*tags)]


def test_staleness_by_brute_force() -> None:
    """
    A shape of tags is live exactly if some request would be measured under it.

    For every set of rules over one user, one client-id, the empty one and the defaults; a rule for a second name would
    bring nothing that a fresh name does not.
    """
    entities = [e for e in ENTITIES if e.user != "b" and e.client_id != "y"]
    requests = list(itertools.product(["a", "fresh"], ["x", "fresh", ""]))
    shapes = list(itertools.product(["", "a", "fresh"], ["", "x", "fresh"]))
    for chosen in itertools.product([False, True], repeat=len(entities)):
        rules = dict.fromkeys(itertools.compress(entities, chosen), 1.0)
        table = QuotaRules(rules)
        live = {table.metric_tags(*request) for request in requests}
        recorded = {shape for shape in shapes if table.would_record(*shape)}
        assert recorded == live, rules


@given(st.lists(st.tuples(st.sampled_from(ENTITIES), st.none() | st.floats(1, 9)), max_size=40))
def test_a_removed_rule_leaves_no_trace(steps: list[tuple[QuotaEntity, float | None]]) -> None:
    """Rules after any history of changes are the same as rules that were set at once (KAFKA-19282)."""
    rules, plain = QuotaRules(), dict[QuotaEntity, float]()
    for entity, bound in steps:
        if bound is None:
            assert rules.remove(entity) == (plain.pop(entity, None) is not None)
        else:
            rules.set(entity, bound)
            plain[entity] = bound
    assert rules == plain
    assert rules.flags == QuotaRules(plain).flags
    assert rules.enabled == bool(plain)


@pytest.mark.parametrize(
    ("rules", "flags", "tags"),
    [
        ([], 0, ("", "c")),
        ([QuotaEntity(None, "other")], 1, ("", "c")),
        ([QuotaEntity("other")], 2, ("u", "")),
        ([QuotaEntity("other", "other")], 4, ("u", "c")),
        ([QuotaEntity("other"), QuotaEntity(None, "other")], 3, ("", "c")),
        ([QuotaEntity("other"), QuotaEntity(DEFAULT, DEFAULT)], 6, ("u", "c")),
        ([QuotaEntity("o", "o"), QuotaEntity(None, "o")], 5, ("", "c")),
        ([QuotaEntity("u"), QuotaEntity("u", "o"), QuotaEntity(None, "c")], 7, ("u", "")),
    ]
)  # fmt: skip
def test_flags(rules: list[QuotaEntity], flags: int, tags: tuple[str, str]) -> None:
    """The tags follow the shape of the rules if there is one shape, and otherwise the match."""
    table = QuotaRules(dict.fromkeys(rules, 1.0))
    assert (table.flags, table.metric_tags("u", "c")) == (flags, tags)


def test_an_empty_client_id_escapes_pair_rules() -> None:
    """
    Under rules for pairs a client without an id is measured under its user, whom no pair bounds.

    A metric without tags is bounded by nothing, not even by the default client's rule.
    """
    rules = QuotaRules({QuotaEntity("u", DEFAULT): 5.0})
    assert rules.metric_tags("u", "") == ("u", "")
    assert rules.decide("u", "") == NO_RULE
    rules = QuotaRules({QuotaEntity(None, DEFAULT): 5.0})
    assert rules.limit("", "") is None
    assert rules.would_record("", "")


def test_snapshot_is_independent() -> None:
    """A snapshot is made once per change and does not follow later ones; removing what is not there changes nothing."""
    rules = QuotaRules({QuotaEntity("u"): 1.0})
    old_snapshot = rules.snapshot()
    assert not rules.remove(QuotaEntity("v"))
    assert rules.snapshot() is old_snapshot
    rules.set(QuotaEntity(None, "c"), 2.0)
    new_snapshot = rules.snapshot()
    rules.remove(QuotaEntity("u"))
    assert dict(old_snapshot) == {QuotaEntity("u"): 1.0}
    assert (old_snapshot.flags, new_snapshot.flags, rules.flags) == (2, 3, 1)
    assert dict(new_snapshot) == {QuotaEntity("u"): 1.0, QuotaEntity(None, "c"): 2.0}


def test_is_a_mapping() -> None:
    """Rules read like a dictionary of entities."""
    rules: RuleTable = QuotaRules({QuotaEntity("u"): 1.0})
    assert QuotaEntity("u") in rules
    assert QuotaEntity("v") not in rules
    assert (list(rules.items()), len(rules)) == ([(QuotaEntity("u"), 1.0)], 1)


def test_default_is_single_and_no_string() -> None:
    """A client named <default> is not the default client; copying and pickling an entity keeps the default."""
    assert QuotaEntity(client_id="<default>") != QuotaEntity(client_id=DEFAULT)
    assert repr(DEFAULT) == "DEFAULT"
    entity = QuotaEntity("alice", DEFAULT)
    assert copy.deepcopy(entity).client_id is DEFAULT
    assert pickle.loads(pickle.dumps(entity)).client_id is DEFAULT  # noqa: S301 - our own


def test_an_entity_has_a_dimension() -> None:
    """An entity with neither a user nor a client-id means nothing."""
    with pytest.raises(InvalidConfig, match="a user, a client-id, or both"):
        QuotaEntity()


def test_levels() -> None:
    """Named, default and absent dimensions make the level; the order of the enum is the precedence."""
    assert [*(entity.level for entity in ordered("u", "c")), Level.NONE] == list(Level)
    assert [level.value for level in Level] == [
        "user_client",
        "user_default_client",
        "user",
        "default_user_client",
        "default_user_default_client",
        "default_user",
        "client",
        "default_client",
        "none",
    ]


def test_names_of_a_type() -> None:
    """Each type is known by a metric group, a label and a configuration key; the connection rate is no client quota."""
    assert [(quota_type.group, quota_type.label, quota_type.quota_key) for quota_type in QuotaType] == [
        ("Produce", "produce", "producer_byte_rate"),
        ("Fetch", "fetch", "consumer_byte_rate"),
        ("Request", "request", "request_percentage"),
        ("ControllerMutation", "controller_mutation", "controller_mutation_rate"),
    ]
    assert [QuotaType.of_quota_key(quota_type.quota_key) for quota_type in QuotaType] == list(QuotaType)
    assert QuotaType.of_quota_key("connection_creation_rate") is None
