"""Random histories of clusters: what the join remembers of moments that are long over changes nothing, nor does anything that it gave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import inf, nan
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.exporter.join.world import World, limits
from tests.strategies import examples

from quotascope.exporter.beans import Bean, BeanColumn
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
NODES = ("1", "2", "10")
Numbers = dict[BeanColumn, float]


def columns(kind: str, attributes: str, **names: str) -> list[BeanColumn]:
    """Columns of one bean of a quota; an underscore in a key stands for a hyphen."""
    named = {key.replace("_", "-"): name for key, name in names.items()}
    bean = Bean.of("kafka.server", {"type": kind, **named})
    return [BeanColumn(bean, attribute) for attribute in attributes.split()]


STEADY = [
    column
    for at in range(20)
    for column in columns("Produce", "byte-rate throttle-time", user=f"steady-{at:02}")
]
LEADERSHIP = {"type": "KafkaController", "name": "ActiveControllerCount"}
MANY_TAGS = {f"k{at}": "v" for at in range(10)}
PASSING = [
    *(
        column
        for user in ("bob", "carol", "x%3Ay", "x%3ay")
        for column in columns(
            "ControllerMutation", "mutation-rate throttle-time tokens", user=user
        )
    ),
    *(
        column
        for names in ({"user": "bob"}, {"user": "bob", "client_id": "admin"}, {"client_id": "admin"})
        for column in columns("Request", "request-time throttle-time quota-utilization", **names)
    ),
    *columns("Produce", "byte-rate throttle-count", user="alice", client_id="app"),
    *columns("Produce", "byte-rate throttle-time", client_id="app"),
    *columns("Produce", "byte-rate queue-size unknown"),
    *columns("Fetch", "byte-rate throttle-time", user="x%3Ay"),
    *columns("Fetch", "queue-size"),
    *columns("ControllerMutation", "rejection-count", user="bob"),
    *(
        column
        for name in ("line\nbreak\r", 'quo"te', "é😀\u2028", "x" * 10_000)
        for column in columns("Fetch", "byte-rate", user=quote(name), client_id=name)
    ),
    BeanColumn(Bean.of("kafka.controller", LEADERSHIP), "Value"),
]  # fmt: skip
CALLBACKS = [
    *columns("Produce", "byte-rate throttle-time", tenant="t"),
    *columns("Request", "request-time throttle-time", tenant="t", user="u"),
    *(
        column
        for zone in ("a\n", 'b"', "c")  # too many tags: those that differ in the last one are one entity
        for column in columns("Produce", "byte-rate throttle-time", **MANY_TAGS, zone=zone)
    ),
]  # fmt: skip
USERS = {QuotaEntity(DEFAULT): 100.0, QuotaEntity("bob"): 200.0}
PAIRS = {QuotaEntity(DEFAULT, DEFAULT): 100.0}
CLIENTS = {QuotaEntity(None, "admin"): 2.0, QuotaEntity(None, DEFAULT): inf}
SLOW = NodeSettings(quota_window_seconds=5.0, controller_quota_samples=5)
RULES: list[Limits | None] = [
    None,
    limits({}),
    limits({REQUEST: USERS, MUTATION: USERS}, nodes=("1", "2"), active_controller="2"),
    limits({REQUEST: USERS, MUTATION: USERS}, nodes=("2",), settings=SLOW),
    limits({PRODUCE: USERS, REQUEST: PAIRS, MUTATION: CLIENTS}, active_controller="1"),
    limits({PRODUCE: {**USERS, **PAIRS}, FETCH: PAIRS, MUTATION: USERS}),
    limits({PRODUCE: CLIENTS, FETCH: {**USERS, **CLIENTS}, REQUEST: CLIENTS}),
    limits({PRODUCE: USERS}, settings=NodeSettings(quota_callback_class="a.Quotas")),
]
values = st.sampled_from((nan, 0.0, 1.0, 1.01, 50.0, 100.0, 1500.0, -3.0, inf, 1e20))


def edits(some: list[BeanColumn]) -> st.SearchStrategy[Any]:
    """A number of one node that comes, changes, or leaves."""
    return st.tuples(st.sampled_from(NODES), st.sampled_from(some), st.none() | values)


moments = st.tuples(
    st.lists(edits(PASSING) | edits(STEADY[:4]), max_size=3),
    st.sampled_from((*[[]] * 12, CALLBACKS)).flatmap(
        lambda some: st.lists(edits(some), max_size=3) if some else st.just([])
    ),
    st.sampled_from((*[None] * 9, *range(len(RULES)))),
    st.sampled_from((*[15.0] * 8, 1.0, 30.0, 61.0, 301.0, 4_000.0)),
    st.sampled_from((*[NODES] * 6, NODES[::-1], ("1", "2"), ("2",), ())),
)
"""What comes, changes and leaves; whether other rules are in force; when, and which nodes have answered."""


def edit(numbers: Mapping[str, Numbers], changes: list[Any]) -> None:
    """Make changes; as in the sources the last column takes the place of one that left."""
    for node, column, value in changes:
        of_node = numbers[node]
        if value is not None:
            of_node[column] = value
        elif column in of_node:
            last, number = of_node.popitem()
            items = [(last, number) if key is column else (key, kept) for key, kept in of_node.items()]  # fmt: skip
            of_node.clear()
            of_node.update(items)


def contents(shown: Snapshot) -> dict[str, Any]:
    """All that a snapshot says, but for sums, which never go back."""
    nodes = [asdict(node) for node in shown.nodes]
    for node in nodes:
        del node["request_throttled_seconds"], node["controller_event_queue_seconds"]
    return {
        "entities": [*map(str, shown.shown.usages), *map(str, shown.shown.tagged)],
        "labels": (shown.callbacks.labels, shown.callbacks.left_out),
        "nodes": nodes,
    }


@pytest.mark.slow
@settings(max_examples=examples(60), phases=(Phase.explicit, Phase.generate))
@given(rules=st.sampled_from(RULES), history=st.lists(moments, min_size=8, max_size=12))
def test_a_minute_later_only_the_last_minute_counts(
    rules: Limits | None, history: list[Any]
) -> None:
    """Whatever came before: the same numbers twice give what they give a join that has seen nothing else."""
    seasoned, fresh = World(rules), World()
    numbers: dict[str, Numbers] = {
        node: {column: float(node) for column in STEADY} for node in NODES
    }
    published = []
    for changes, of_callbacks, number, after, nodes in history:
        edit(numbers, [*changes, *of_callbacks])
        if number is not None:
            seasoned.limits = RULES[number]
        shown = seasoned.collect({node: [numbers[node]] for node in nodes}, after)
        published.append((shown, contents(shown)))
    fresh.limits, fresh.at = seasoned.limits, seasoned.at
    for after in (15.0, 61.0):
        last, expected = (
            contents(world.collect({node: [numbers[node]] for node in NODES}, after))
            for world in (seasoned, fresh)
        )
    assert last == expected
    for shown, before in published:
        assert contents(shown) == before
        assert not shown.shown.usage.flags.writeable
