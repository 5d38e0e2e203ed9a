from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.pipeline.prometheus.tags import Names, TagsOf
from quotascope.quotas import QuotaSet

PAIRS = {("alice", "a"), ("alice", "b"), ("bob", "a")}


def rules_of(*entities: QuotaEntity) -> RuleTable:
    quotas = QuotaSet({entity: {"producer_byte_rate": 1000.0} for entity in entities})
    return quotas.tables()[QuotaType.PRODUCE]


@pytest.mark.parametrize(
    ("entities", "names", "measured", "expected"),
    [
        # as brokers measured them
        ([QuotaEntity("alice", "a")], ("alice", "a"), PAIRS, ("alice", "a")),
        ([QuotaEntity("alice")], ("alice", ""), {("alice", "")}, ("alice", "")),
        ([QuotaEntity(None, "a")], ("", "a"), {("", "a")}, ("", "a")),
        # added up
        ([QuotaEntity("alice")], ("alice", "a"), PAIRS, ("alice", "")),
        ([QuotaEntity(DEFAULT)], ("alice", "b"), PAIRS, ("alice", "")),
        ([QuotaEntity(None, "a")], ("alice", "a"), PAIRS, ("", "a")),
        # in part measured otherwise
        ([QuotaEntity("alice")], ("alice", "a"), {*PAIRS, ("alice", "")}, None),
        ([QuotaEntity("alice"), QuotaEntity("alice", "b")], ("alice", "a"), PAIRS, None),
        # measured together, limited apart
        ([QuotaEntity("alice", "a")], ("alice", ""), {("alice", "")}, None),
        ([QuotaEntity("alice"), QuotaEntity("alice", "a")], ("alice", ""), {("alice", "")}, None),
        ([QuotaEntity("alice")], ("", "a"), {("", "a")}, None),
        ([QuotaEntity("alice"), QuotaEntity(None, "a")], ("", "a"), {("", "a")}, None),
    ],
)
def test_what_samples_tell_of_a_candidate(
    entities: list[QuotaEntity], names: Names, measured: set[Names], expected: Names | None
) -> None:
    """An entity of a candidate is a measured one or a sum of measured ones, or unknown with a reason."""
    tags, reason = TagsOf(rules_of(*entities), measured).names(names)
    assert tags == expected
    assert bool(reason) is (expected is None)


@dataclass
class Watched:
    """Names that count how often they are passed through."""

    names: Collection[Names]
    passes: int = 0

    def __iter__(self) -> Iterator[Names]:
        self.passes += 1
        return iter(self.names)


class WatchedRules(RuleTable):
    """Rules that count their look-ups."""

    asked = 0

    def __iter__(self) -> Iterator[QuotaEntity]:
        type(self).asked += len(self)
        return super().__iter__()

    def metric_tags(self, user: str, client_id: str) -> tuple[str, str]:
        type(self).asked += 1
        return super().metric_tags(user, client_id)


@pytest.mark.parametrize("client_id", ["app", ""])
def test_the_work_grows_with_the_entities_alone(client_id: str) -> None:
    """An entity takes a few look-ups, whether it is a pair or a user, and however many rules there are."""
    count = 2_000
    users = [f"user-{number}" for number in range(count)]
    rules = rules_of(*(QuotaEntity(user) for user in users), *(QuotaEntity(None, user) for user in users[::2]))
    measured = [(user, client_id) for user in users]
    WatchedRules.asked = 0
    watched = Watched(measured)
    tags = TagsOf(WatchedRules({(one.user, one.client_id): 1.0 for one in rules}, rules.flags), watched)
    assert {tags.names(names) for names in measured} == {((user, ""), "") for user in users}
    assert watched.passes == 1
    assert WatchedRules.asked < 10 * count + 3 * len(rules)


NAMES = st.sampled_from(["", "a", "b", "c"])
RULE_NAMES = st.sampled_from([None, DEFAULT, "a", "b"])


@given(
    rules=st.sets(st.tuples(RULE_NAMES, RULE_NAMES).filter(any), min_size=1, max_size=6),
    measured=st.sets(st.tuples(NAMES, NAMES).filter(any), min_size=1, max_size=6),
)
def test_only_what_is_measured_alike_whoever_asks_has_names(
    rules: set[tuple[str | None, str | None]], measured: set[Names]
) -> None:
    """An entity has names if all of its requests, and those that share its names, are measured under it."""
    table = rules_of(*(QuotaEntity(*names) for names in rules))
    tags = TagsOf(table, measured)
    for user, client_id in measured:
        some = ("a", "b", "c", "another")
        users, clients = ([name] if name else some for name in (user, client_id))
        inside = {table.metric_tags(one, other) for one in users for other in clients}
        expected = inside.pop() if len(inside) == 1 else None
        if not user and any(entity.user is not None for entity in table):
            # the users of the client-id are not known, and a rule may be of one of them
            assert tags.names((user, client_id))[0] is None
        elif expected == (user, client_id):
            assert tags.names((user, client_id))[0] == expected
        elif not (user and client_id) or expected is None:
            assert tags.names((user, client_id))[0] is None
        else:
            place = 0 if expected[0] else 1
            others = [pair for pair in measured if pair[place] == expected[place]]
            whole = all(all(pair) and table.metric_tags(*pair) == expected for pair in others)
            assert tags.names((user, client_id))[0] == (expected if whole else None)
