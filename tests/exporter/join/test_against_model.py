"""Random histories of clusters: the join, which remembers much, beside a model that remembers next to nothing."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from math import inf, nan
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.exporter.join.model import Model
from tests.exporter.join.world import World
from tests.exporter.recorded import limits
from tests.strategies import examples

from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import Bean, BeanColumn
from quotascope.exporter.snapshot import Entity, NodeUsage, Snapshot
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType


def bean(type_: str, *attributes: str, **names: str) -> list[BeanColumn]:
    properties = {key.replace("_", "-"): name for key, name in names.items()}
    one = Bean.of("kafka.server", {"type": type_, **properties})
    return [BeanColumn(one, attribute) for attribute in attributes]


def of_node(domain: str, type_: str, attribute: str, **names: str) -> BeanColumn:
    return BeanColumn(Bean.of(domain, {"type": type_, **names}), attribute)


STEADY = [
    column for at in range(20) for column in bean("Produce", "byte-rate", "throttle-time", user=f"steady-{at:02}")
]
BUCKETS = [
    column
    for user in ("bob", "carol", "x%3Ay", "x%3ay")
    for column in bean("ControllerMutation", "mutation-rate", "throttle-time", "tokens", user=user)
]
REQUESTS = [
    column
    for names in (
        {"user": "bob"},
        {"user": "bob", "client_id": "admin"},
        {"client_id": "admin"},
        {"user": "carol"},
    )
    for column in bean("Request", "request-time", "throttle-time", "quota-utilization", **names)
]
OTHERS = [
    *bean("Produce", "byte-rate", "throttle-time", user="alice", client_id="app"),
    *bean("Produce", "byte-rate", "throttle-count", "throttle-time-total", user="%zz"),
    *bean("Produce", "byte-rate", "throttle-time", client_id="app"),
    *bean("Produce", "byte-rate", "queue-size", "knows"),
    *bean("Fetch", "byte-rate", "throttle-time", "quota-utilization", user="x%3Ay"),
    *bean("Fetch", "byte-rate", "throttle-time", user="x%3ay"),
    *bean("Fetch", "queue-size"),
    *bean("Request", "exempt-request-time"),
    *bean("ControllerMutation", "tokens", "mutation-rate", client_id="admin"),
    *bean("ControllerMutation", "throttle-time-total", "throttle-count", "refusal-count", user="bob"),
    *(
        column
        for name in ("line\nbreak\r", 'quo"te', "<b>{}</b>", "é😀\u2028", "x" * 10_000)
        for column in bean("Fetch", "byte-rate", user=quote(name), client_id=name)
    ),
    *(
        of_node("kafka.network", "RequestMetrics", attribute, name=name, request=request)
        for request in ("Produce", "CreateTopics", "FetchConsumer")
        for name, attribute in (("ThrottleTimeMs", "Mean"), ("ThrottleTimeMs", "Count"))
    ),
    of_node(
        "kafka.network",
        "RequestMetrics",
        "Count",
        name="ErrorsPerSec",
        request="CreateTopics",
        error="THROTTLING_QUOTA_EXCEEDED",
    ),
    *(
        of_node("kafka.controller", "ControllerEventManager", name, name="EventQueueTimeMs")
        for name in ("Mean", "Count")
    ),
    of_node("kafka.server", "app-info", "StartTimeMs", id="1"),
    of_node("kafka.elsewhere", "Produce", "byte-rate", user="alice"),
]
LEADS = of_node("kafka.controller", "KafkaController", "Value", name="ActiveControllerCount")
MANY_TAGS = {f"k{at}": "v" for at in range(10)}
FOLDED = [
    column
    for kind, used in (("Produce", "byte-rate"), ("Request", "request-time"))
    for tag in ("a\n", 'b"', "c")
    for column in bean(kind, used, "throttle-time", **MANY_TAGS, zone=tag)
]
"""Too many tags: entities that differ in the last one are shown as one."""
CALLBACKS = [
    *bean("Produce", "byte-rate", "throttle-time", tenant="t"),
    *bean("Request", "request-time", "throttle-time", tenant="t", user="u"),
    *bean("ControllerMutation", "mutation-rate", "throttle-time", tenant="t"),
    *FOLDED,
]
FIRST = [*BUCKETS[:9], *REQUESTS, *OTHERS[:9]]
"""None of them is about an entity that another one spells otherwise: that would have all be worked out from scratch each time."""
PASSING = [*BUCKETS, *REQUESTS, *OTHERS, LEADS]

USERS = {QuotaEntity(DEFAULT): 100.0, QuotaEntity("bob"): 200.0}
PAIRS = {QuotaEntity(DEFAULT, DEFAULT): 100.0}
CLIENTS = {QuotaEntity(None, "admin"): 2.0, QuotaEntity(None, DEFAULT): inf}
SLOW = NodeSettings(quota_window_seconds=5.0, controller_quota_samples=5)
OWN_CALLBACK = NodeSettings(quota_callback_class="org.example.Quotas")
RULES: list[Limits | None] = [
    None,
    limits({}),
    limits({REQUEST: USERS, MUTATION: USERS}, nodes=("1", "2")),
    limits({REQUEST: USERS, MUTATION: USERS}, nodes=("1", "2"), active_controller="2"),
    limits({REQUEST: USERS, MUTATION: USERS}, nodes=("2",), settings=SLOW),
    limits({PRODUCE: USERS, REQUEST: PAIRS, MUTATION: CLIENTS}, active_controller="1"),
    limits({PRODUCE: {**USERS, **PAIRS}, FETCH: PAIRS, MUTATION: USERS}),
    limits({PRODUCE: CLIENTS, FETCH: {**USERS, **CLIENTS}, REQUEST: CLIENTS}),
    limits({PRODUCE: {**PAIRS, **CLIENTS}, MUTATION: PAIRS}, nodes=()),
    limits({PRODUCE: USERS, MUTATION: {QuotaEntity("carol"): 1.0}}),
    limits({PRODUCE: USERS}, settings=OWN_CALLBACK),
]

NODES = ("1", "2", "10")
COLUMNS = (
    "usage", "throttle_time", "tokens", "reported_utilization", "causes",
    "throttled_seconds", "throttled_requests", "refused_mutations",
)  # fmt: skip
values = st.sampled_from((nan, 0.0, 1.0, 1.01, 3.0, 50.0, 100.0, 500.0, 1500.0, -1.0, -3.0, inf, 1e20))
Edit = tuple[str, BeanColumn, float | None]
"""A number of one node that comes, changes, or leaves."""


def edits_of(columns: list[BeanColumn]) -> st.SearchStrategy[Edit]:
    return st.tuples(st.sampled_from(NODES), st.sampled_from(columns), st.none() | values)


edits = edits_of(FIRST) | edits_of(BUCKETS[:6]) | edits_of(PASSING)


class History:
    def __init__(self) -> None:
        self.world, self.model = World(), Model()
        self.numbers = {
            node: {column: nan if column.attribute == "throttle-time" else float(node) for column in (*STEADY, *FIRST)}
            for node in NODES
        }
        self._published: list[tuple[Snapshot, list[bytes], list[NodeUsage]]] = []
        self._last: list[Entity] = []

    def collect(self, nodes: tuple[str, ...], configured: Limits | None, after: float) -> None:
        tables = [self.world.table(node, self.numbers[node]) for node in nodes]
        self.world.limits = configured
        snapshot = self.world.collect({node: [self.numbers[node]] for node in nodes}, after)
        shown = snapshot.shown
        expected = self.model.snapshot(tables, configured, self.world.at)
        assert list(shown.usages) == expected.entities
        assert list(shown.tagged) == expected.tagged
        assert snapshot.callbacks.left_out == expected.left_out
        for node, other in zip(snapshot.nodes, expected.nodes, strict=True):
            assert {name: getattr(node, name) for name in other} == other
        for name in COLUMNS:
            column = getattr(shown, name)
            assert not column.flags.writeable
            if name != "causes":
                assert (column is shown.layout.absent) is bool(np.isnan(column).all())
        self._compare_with_last(snapshot)
        self._published.append((snapshot, contents(snapshot), deepcopy(list(snapshot.nodes))))

    def _compare_with_last(self, snapshot: Snapshot) -> None:
        """The same entities are the same rows, and keep what distinguishes them from others whatever their limits."""
        layout, entities = snapshot.shown.layout, snapshot.shown.layout.entities
        assert not entities.flags.writeable
        assert layout.limits.tolist() == pytest.approx(
            [nan if each.limit is None else each.limit for each in entities], nan_ok=True
        )
        assert [layout.nodes[at] for at in layout.node_numbers] == [each.broker for each in entities]
        before = {unlimited(each): each.serial for each in self._last}
        for each in entities:
            assert before.get(unlimited(each), each.serial) == each.serial
        if self._published and self._last == list(entities):
            assert layout is self._published[-1][0].shown.layout
        self._last = list(entities)

    def nothing_published_has_changed(self) -> None:
        for snapshot, before, nodes in self._published:
            assert contents(snapshot) == before
            assert list(snapshot.nodes) == nodes

    def edit(self, changes: list[Edit]) -> None:
        """Let numbers come, change and leave; as in the sources the last column takes the place of one that left."""
        for node, column, value in changes:
            numbers = self.numbers[node]
            if value is not None:
                numbers[column] = value
            elif column in numbers:
                last, number = numbers.popitem()
                self.numbers[node] = {
                    (last if each is column else each): (number if each is column else kept)
                    for each, kept in numbers.items()
                }

    def swap(self, one: int, other: int) -> None:
        """Let two columns of the first node change their places, the second counted from the end."""
        items = list(self.numbers["1"].items())
        items[one], items[-1 - other] = items[-1 - other], items[one]
        self.numbers["1"] = dict(items)


def contents(snapshot: Snapshot) -> list[bytes]:
    layout = snapshot.shown.layout
    return [
        repr(layout.entities.tolist()).encode(),
        *(getattr(snapshot.shown, name).tobytes() for name in COLUMNS),
    ]


def unlimited(entity: Entity) -> Entity:
    return replace(entity, resolution=None, limit=None, burst_tokens=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What changes until the next collection: mostly little."""

    edits: list[Edit]
    swapped: tuple[int, int] | None
    callbacks: list[Edit]
    rules: int | None
    """Which of ``RULES`` are in force from now on, None for those before."""
    after: float
    nodes: tuple[str, ...]


steps = st.builds(
    Step,
    edits=st.lists(edits, max_size=3),
    swapped=st.none() | st.none() | st.none() | st.tuples(st.integers(0, 30), st.integers(0, 30)),
    callbacks=st.sampled_from(
        (
            *[st.just([])] * 12,
            st.lists(edits_of(CALLBACKS), max_size=2),
            st.tuples(st.sampled_from(NODES), st.lists(values, min_size=len(FOLDED), max_size=len(FOLDED))).map(
                lambda given: [(given[0], column, value) for column, value in zip(FOLDED, given[1], strict=False)]
            ),
        )
    ).flatmap(lambda which: which),
    rules=st.sampled_from((*[None] * 40, *range(len(RULES)))),
    after=st.sampled_from((*[15.0] * 8, 0.0, 1.0, 30.0, 61.0, 301.0, 4_000.0)),
    nodes=st.sampled_from((*[NODES] * 6, NODES[::-1], ("1", "2"), ("2",), ("10", "1"), ())),
)


@pytest.mark.slow
@settings(max_examples=examples(60), phases=(Phase.explicit, Phase.generate))
@given(
    rules=st.sampled_from(RULES), start=st.lists(edits, max_size=12), history=st.lists(steps, min_size=8, max_size=12)
)
def test_snapshots_are_those_of_the_model(rules: Limits | None, start: list[Edit], history: list[Step]) -> None:
    """Whatever came before, each snapshot is what its tables, its rules and the last minute make of it."""
    world = History()
    world.edit(start)
    for step in history:
        world.edit([*step.edits, *step.callbacks])
        if step.swapped is not None:
            world.swap(*step.swapped)
        if step.rules is not None:
            rules = RULES[step.rules]
        world.collect(step.nodes, rules, step.after)
    world.nothing_published_has_changed()
