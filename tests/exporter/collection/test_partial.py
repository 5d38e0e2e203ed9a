"""Partial answers to an impatient scraper: the same tables are joined and capped more than once, and nothing counts twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.cardinality.examples import cardinality, page
from tests.exporter.join.world import Numbers, World, entity, limits

from quotascope.exporter.mapping import Bean, BeanColumn
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics import QuotaEntity, QuotaType

PRODUCE = QuotaType.PRODUCE
RULES = {PRODUCE: {QuotaEntity(user): 100.0 for user in "abcd"}}
Moment = Mapping[str, Mapping[str, float]]
"""How often each user was throttled so far, by node."""

growths = st.fixed_dictionaries({node: st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)) for node in "12"})


@st.composite
def histories(draw: st.DrawFn) -> list[Moment]:
    """What two nodes with an embedded engine have counted, from moment to moment; which users there are stays the same."""
    names = st.sets(st.sampled_from("abcd"))
    counted = {node: dict.fromkeys(sorted(draw(names)), 0.0) for node in "12"}
    moments: list[Moment] = []
    for _ in range(draw(st.integers(2, 6))):
        for node, users in draw(growths).items():
            for user in counted[node].keys() & users.keys():
                counted[node][user] += users[user]
        moments.append({node: dict(users) for node, users in counted.items()})
    return moments


class Exporter:
    """What the collection keeps from one answer to the next."""

    def __init__(self) -> None:
        self._world = World(limits(RULES, nodes=("1", "2")))
        self._cap = cardinality(max_entities=2)

    def answer(self, moment: Moment, nodes: str, after: float) -> Snapshot:
        """What is reported when these nodes have answered."""
        parts = {node: [*map(_entity, moment[node].items())] for node in nodes}
        return self._cap.apply(self._world.collect(parts, after))


def _entity(counted: tuple[str, float]) -> Numbers:
    user, count = counted
    bean = Bean.of("kafka.server", {"type": PRODUCE.group, "user": user})
    return {**entity(PRODUCE, user, usage=float(ord(user))), BeanColumn(bean, "throttle-count"): count}


@pytest.mark.slow
@given(history=histories(), again=st.integers(1, 2))
def test_the_same_tables_again_change_nothing(history: list[Moment], again: int) -> None:
    """The next scrape shows the page that is shown without those answers."""
    one, other = Exporter(), Exporter()
    for moment in history:
        other.answer(moment, "12", 15)
        expected = page(one.answer(moment, "12", 15))
        for _ in range(again):
            assert page(other.answer(moment, "12", 0)) == expected


@pytest.mark.slow
@given(history=histories(), early=st.lists(st.sampled_from(("", "1", "2", "12"))))
def test_sums_are_right_whatever_was_answered_before(history: list[Moment], early: list[str]) -> None:
    """In each answer, partial or complete, the shown and the folds together have used what the users of its nodes have."""
    exporter = Exporter()
    for number, moment in enumerate(history):
        for nodes, after in (*((each, 0) for each in early[number::3]), ("12", 15)):
            used: dict[str, float] = defaultdict(float)
            for each in exporter.answer(moment, nodes, after).entities:
                used[each.entity.broker] += each.usage or 0.0
            assert used == {node: float(sum(map(ord, moment[node]))) for node in nodes if moment[node]}
