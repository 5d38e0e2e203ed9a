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
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType


def bean(type_: str, *attributes: str, **names: str) -> list[BeanColumn]:
    properties = {key.replace("_", "-"): name for key, name in names.items()}
    described = Bean.of("kafka.server", {"type": type_, **properties})
    return [BeanColumn(described, attribute) for attribute in attributes]


def of_node(domain: str, type_: str, attribute: str, **names: str) -> BeanColumn:
    return BeanColumn(Bean.of(domain, {"type": type_, **names}), attribute)


STEADY = [
    column
    for number in range(20)
    for column in bean("Produce", "byte-rate", "throttle-time", user=f"steady-{number:02}")
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
    *bean("Produce", "byte-rate", user="%zz"),
    *bean("Produce", "byte-rate", "throttle-time", client_id="app"),
    *bean("Produce", "byte-rate", "queue-size", "knows"),
    *bean("Fetch", "byte-rate", "throttle-time", "quota-utilization", user="x%3Ay"),
    *bean("Fetch", "byte-rate", "throttle-time", user="x%3ay"),
    *bean("Fetch", "queue-size"),
    *bean("Request", "exempt-request-time"),
    *bean("ControllerMutation", "tokens", "mutation-rate", client_id="admin"),
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
MANY_TAGS = {f"k{number}": "v" for number in range(10)}
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
"""
None of them is about an entity that another one spells otherwise: that would have all be worked out from scratch each
time.
"""
PASSING = [*BUCKETS, *REQUESTS, *OTHERS, LEADS]

USERS = {QuotaEntity(DEFAULT): 100.0, QuotaEntity("bob"): 200.0}
PAIRS = {QuotaEntity(DEFAULT, DEFAULT): 100.0}
CLIENTS = {QuotaEntity(None, "admin"): 2.0, QuotaEntity(None, DEFAULT): inf}
SLOW = NodeSettings(quota_window_seconds=5.0, controller_quota_samples=5)
OLD = ReleaseRange(oldest=KafkaRelease(3, 3), newest=KafkaRelease(4, 1))
NEW = ReleaseRange(oldest=KafkaRelease(4, 2), newest=None)
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
    limits({REQUEST: USERS, MUTATION: {QuotaEntity("dave"): 1.0}}, nodes=("1", "2"), releases={}),
    limits({PRODUCE: PAIRS, FETCH: USERS, REQUEST: {QuotaEntity("dave"): 1.0}}, releases={"1": OLD, "2": NEW}),
    limits({REQUEST: {QuotaEntity(None, "x"): 1.0}}, nodes=("1", "2"), releases={"1": NEW, "2": OLD}),
    replace(limits({PRODUCE: USERS, REQUEST: USERS, MUTATION: USERS}), nodes={"1": OWN_CALLBACK, "2": NodeSettings()}),
    replace(
        limits({PRODUCE: USERS, REQUEST: USERS, MUTATION: CLIENTS}), nodes={"1": NodeSettings(), "10": NodeSettings()}
    ),
]

NUMBERS = {
    "exempt_request_threads": catalog.EXEMPT_REQUEST_THREADS,
    "controller_events": catalog.CONTROLLER_EVENTS,
    "controller_event_queue_seconds": catalog.CONTROLLER_EVENT_QUEUE_SECONDS,
    "utilization_disagreements": catalog.UTILIZATION_DISAGREEMENTS,
}
BY_REQUEST = {
    "throttling_errors": catalog.THROTTLING_ERRORS,
    "request_throttled_seconds": catalog.REQUEST_THROTTLED_SECONDS,
}


def value_of(node: NodeUsage, name: str) -> object:
    """Return the model's value under this name."""
    if name in NUMBERS:
        return node.number(NUMBERS[name])
    return node.by_name(BY_REQUEST[name]) if name in BY_REQUEST else getattr(node, name)


NODES = ("1", "2", "10")
COLUMNS = ("usage", "throttle_time", "tokens", "reported_utilization", "causes")
values = st.sampled_from((nan, 0.0, 1.0, 1.01, 3.0, 50.0, 100.0, 500.0, 1500.0, -1.0, -3.0, inf, 1e20))
Edit = tuple[str, BeanColumn, float | None]
"""A number of one node that comes, changes, or leaves."""


def edits_of(columns: list[BeanColumn]) -> st.SearchStrategy[Edit]:
    return st.tuples(st.sampled_from(NODES), st.sampled_from(columns), st.none() | values)


edits = edits_of(FIRST) | edits_of(BUCKETS[:6]) | edits_of(PASSING)


class History:
    def __init__(self) -> None:
        self.world, self.model = World(), Model()
        self._known: Limits | None = None
        self.numbers = {
            node: {column: nan if column.attribute == "throttle-time" else float(node) for column in (*STEADY, *FIRST)}
            for node in NODES
        }
        self._published: list[tuple[Snapshot, list[bytes], list[NodeUsage]]] = []
        self._last: list[Entity] = []

    def collect(self, nodes: tuple[str, ...], configured: Limits | None, seconds: float) -> None:
        tables = [self.world.table(node, self.numbers[node]) for node in nodes]
        if configured is not None:
            self._known = configured = configured.after(self._known) if self._known else configured
        self.world.limits = configured
        snapshot = self.world.collect({node: [self.numbers[node]] for node in nodes}, seconds)
        columns = snapshot.columns
        expected = self.model.snapshot(tables, configured, self.world.at)
        assert list(columns.usages) == expected.entities
        assert list(columns.tagged) == expected.tagged
        assert snapshot.callbacks.left_out == expected.left_out
        for node, expected_node in zip(snapshot.nodes, expected.nodes, strict=True):
            assert {name: value_of(node, name) for name in expected_node} == expected_node
        for name in COLUMNS:
            column = getattr(columns, name)
            assert not column.flags.writeable
            if name != "causes":
                assert (column is columns.layout.absent) is bool(np.isnan(column).all())
        self._compare_with_last(snapshot)
        self._published.append((snapshot, contents(snapshot), deepcopy(list(snapshot.nodes))))

    def _compare_with_last(self, snapshot: Snapshot) -> None:
        """Require that an entity keeps its serial number, and that unchanged entities keep the layout."""
        layout, entities = snapshot.columns.layout, snapshot.columns.layout.entities
        assert not entities.flags.writeable
        assert layout.limits.tolist() == pytest.approx(
            [nan if entity.limit is None else entity.limit for entity in entities], nan_ok=True
        )
        assert [layout.nodes[number] for number in layout.node_numbers] == [entity.broker for entity in entities]
        old_serials = {unlimited(entity): entity.serial for entity in self._last}
        for entity in entities:
            assert old_serials.get(unlimited(entity), entity.serial) == entity.serial
        if self._published and self._last == list(entities):
            assert layout is self._published[-1][0].columns.layout
        self._last = list(entities)

    def nothing_published_has_changed(self) -> None:
        for snapshot, old_numbers, nodes in self._published:
            assert contents(snapshot) == old_numbers
            assert list(snapshot.nodes) == nodes

    def edit(self, changes: list[Edit]) -> None:
        """Add, change and remove numbers; as in the sources, the last column takes the place of a removed one."""
        for node, column, value in changes:
            numbers = self.numbers[node]
            if value is not None:
                numbers[column] = value
            elif column in numbers:
                last_column, number = numbers.popitem()
                self.numbers[node] = {
                    (last_column if key is column else key): (number if key is column else old_number)
                    for key, old_number in numbers.items()
                }

    def swap(self, first_column: int, second_column: int) -> None:
        """Let two columns of the first node change their places, the second counted from the end."""
        items = list(self.numbers["1"].items())
        items[first_column], items[-1 - second_column] = items[-1 - second_column], items[first_column]
        self.numbers["1"] = dict(items)


def contents(snapshot: Snapshot) -> list[bytes]:
    layout = snapshot.columns.layout
    return [
        repr(layout.entities.tolist()).encode(),
        *(getattr(snapshot.columns, name).tobytes() for name in COLUMNS),
    ]


def unlimited(entity: Entity) -> Entity:
    return replace(entity, resolution=None, limit=None, burst_tokens=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The changes until the next collection: mostly little."""

    edits: list[Edit]
    swapped: tuple[int, int] | None
    callbacks: list[Edit]
    rules: int | None
    """Which of ``RULES`` are in force from now on, None for those before."""
    seconds: float
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
                lambda pair: [(pair[0], column, value) for column, value in zip(FOLDED, pair[1], strict=False)]
            ),
        )
    ).flatmap(lambda which: which),
    rules=st.sampled_from((*[None] * 40, *range(len(RULES)))),
    seconds=st.sampled_from((*[15.0] * 8, 0.0, 1.0, 30.0, 61.0, 301.0, 4_000.0)),
    nodes=st.sampled_from((*[NODES] * 6, NODES[::-1], ("1", "2"), ("2",), ("10", "1"), ())),
)


@pytest.mark.slow
@settings(max_examples=examples(30), phases=(Phase.explicit, Phase.generate))
@given(
    rules=st.sampled_from(RULES), start=st.lists(edits, max_size=12), history=st.lists(steps, min_size=8, max_size=12)
)
def test_snapshots_are_those_of_the_model(rules: Limits | None, start: list[Edit], history: list[Step]) -> None:
    """Each snapshot equals the model's, whatever came before."""
    world = History()
    world.edit(start)
    for step in history:
        world.edit([*step.edits, *step.callbacks])
        if step.swapped is not None:
            world.swap(*step.swapped)
        if step.rules is not None:
            rules = RULES[step.rules]
        world.collect(step.nodes, rules, step.seconds)
    world.nothing_published_has_changed()
