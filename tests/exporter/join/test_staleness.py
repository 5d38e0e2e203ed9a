"""Beans that the rules do not explain: left over, or in use after all; and which node's mutation beans count."""

import ast
import re
from collections.abc import Mapping
from functools import partial
from math import nan

import pytest
from tests.exporter.join.world import Numbers, Rules, World, entity, leads
from tests.exporter.recorded import CAPTURES, limits, read

from quotascope.exporter.join.staleness import active_controllers
from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.snapshot import LimitsHealth
from quotascope.exporter.sources.jolokia import columns_of
from quotascope.exporter.sources.source import LayoutTracker
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange

PRODUCE, REQUEST = QuotaType.PRODUCE, QuotaType.REQUEST
MUTATION = QuotaType.CONTROLLER_MUTATION
ALICE = {PRODUCE: {QuotaEntity("alice"): 100.0}}
PAIRS = {PRODUCE: {QuotaEntity(DEFAULT, DEFAULT): 100.0}}


USER_FETCH = {QuotaType.FETCH: {QuotaEntity("alice"): 1.0}}
CLIENTS = {PRODUCE: {QuotaEntity(None, DEFAULT): 1.0}}
Step = tuple[Rules, Numbers, float, bool]
"""Rules, what is measured of client c, seconds since the last collection, and whether it is shown."""


def used(usage: float | None, kind: QuotaType = PRODUCE, *, throttle_ms: float = nan) -> Numbers:
    return entity(kind, "", "c", usage=usage, throttle_ms=throttle_ms)


@pytest.mark.parametrize(
    "history",
    [
        # real traffic goes up and down: a series must not flicker within the minute
        [
            (ALICE, used(10.0), 15, False),
            *((ALICE, used(usage), 15, True) for usage in (20.0, 19.0, 19.5, 19.0, 19.0)),
            (ALICE, used(18.0), 1, False),
        ],
        # one that comes back within the minute is as recent as before, though it is idle now
        [
            (ALICE, used(10.0), 15, False),
            (ALICE, used(20.0), 15, True),
            (ALICE, {}, 15, False),
            (ALICE, used(0.0), 15, True),
            (ALICE, used(0.0), 31, False),
        ],
        # it is compared with the last collection alone
        [(ALICE, used(10.0), 15, False), (ALICE, used(10.0), 15, False), (ALICE, used(15.0), 15, True)],
        # a starved consumer has no rate, but its throttle grows
        [(ALICE, used(0.0), 15, False), (ALICE, used(0.0, throttle_ms=5.0), 15, True)],
        [(ALICE, used(0.0), 15, False), (ALICE, used(0.5), 15, True)],
        # Kafka divides by S - 1 to S windows: without traffic a rate can still rise by that much
        [(ALICE, used(100.0), 15, False), (ALICE, used(109.0), 15, False)],
        [(ALICE, used(100.0, MUTATION), 15, False), (ALICE, used(199.0, MUTATION), 15, False)],
        # decay, an unrecorded fetch and a number that is gone are no traffic
        *(
            [(ALICE, used(10.0), 15, False), (ALICE, used(usage), 15, False)]
            for usage in (10.0, 5.0, 0.0, -50.0, nan, None)
        ),
        # a fetch that was taken back leaves a negative rate, which fades
        [(ALICE, used(-100.0, QuotaType.FETCH), 15, False), (ALICE, used(-1.0, QuotaType.FETCH), 15, False)],
        # what was in use under a rule that went is compared, not taken for new, and its last traffic is no rise
        [(CLIENTS, used(10.0), 15, True), (ALICE, used(9.0), 15, False)],
        [(CLIENTS, used(10.0), 15, True), *((ALICE, used(usage), 15, False) for usage in (5_000.0, 4_000.0, 0.0))],
        # the rule that was missing is known now, and it does not explain the bean either
        [
            (ALICE, used(10.0), 15, False),
            (ALICE, used(20.0), 15, True),
            (PAIRS, used(20.0), 15, False),
            (PAIRS, used(20.0), 15, False),
        ],
        # limits that are read again are the same rules
        [(ALICE, used(10.0), 15, False), ({**ALICE}, used(20.0), 15, True)],
        # an hour back must not mean an hour of stale beans
        [(ALICE, used(1.0), 15, False), (ALICE, used(2.0), 15, True), (ALICE, used(2.0), -3600, False)],
    ]
)  # fmt: skip
def test_a_bean_that_no_rule_explains_is_shown_while_it_is_in_use(history: list[Step]) -> None:
    """The broker may know a rule that was not read yet: clients that use more are not hidden."""
    world, rules = World(), None
    for number, (seconds, beans, rules_after, is_shown) in enumerate(history):
        if seconds is not rules:
            limits_read = limits(seconds)
            rules, world.limits = seconds, limits_read if world.limits is None else limits_read.after(world.limits)
        snapshot = world.collect_one(beans, seconds=rules_after)
        assert (number, bool(snapshot.entities)) == (number, is_shown)


@pytest.mark.parametrize(
    ("reported", "leader", "expected"),
    [
        ({"1": True}, None, {"1": True}),
        ({"1": False}, "1", {"1": False}),
        ({"1": None, "2": True}, "1", {"1": False, "2": True}),
        ({"1": None, "2": False}, "1", {"1": True, "2": False}),
        ({"1": None, "2": None}, "2", {"1": False, "2": True}),
        ({"1": None}, None, {"1": None}),
        ({"1": None, "2": False}, None, {"1": None, "2": False}),
        ({"1": True, "2": True}, "1", {"1": True, "2": True}),
        ({}, "1", {}),
    ],
)
def test_a_node_knows_best_itself(
    reported: dict[str, bool | None], leader: str | None, expected: dict[str, bool | None]
) -> None:
    """A node leads by its own report, then by another's, then by the Admin API's answer."""
    assert active_controllers(reported, leader) == expected


Beans = Mapping[str, Mapping[str, float | None]]
DEFAULT_CLIENT = {QuotaEntity(None, DEFAULT): 1e6}
WITH_USERS = {**DEFAULT_CLIENT, QuotaEntity(DEFAULT): 1e6}
WITH_PAIR = {**WITH_USERS, QuotaEntity("u1", "c:1"): 1e6}
MOMENTS: list[tuple[Mapping[QuotaEntity, float], set[tuple[str, str]]]] = [
    ({}, set()),
    ({}, set()),
    (DEFAULT_CLIENT, set()),
    (DEFAULT_CLIENT, {("", "c:1")}),
    (WITH_USERS, {("svc:team a", ""), ("u1", "")}),
    (WITH_PAIR, {("svc:team a", ""), ("u1", "c:1"), ("u1", "")}),
    ({}, set()),
    ({}, set()),
]
"""Eight moments of a real broker (see `captures/README.md`): produce rules, user and client-id of entities in use."""


def recorded() -> list[Beans]:
    text = (CAPTURES / "presence.txt").read_text("utf-8")
    return [
        {
            name: ast.literal_eval(attributes.replace("null", "None"))
            for name, attributes in re.findall(r"^    (.+) (\{.*\})$", part, re.MULTILINE)
        }
        for part in re.split(r"^\d .*$", text, flags=re.MULTILINE)[1:]
    ]


def test_only_beans_in_use_are_shown() -> None:
    """
    Beans that the rules explain are shown, and the others counted, also right after a start.

    Beans that decay under new rules disappear at once, and never come back.
    """
    running, columns = World(), LayoutTracker(columns_of)
    for number, (beans, (rules, expected)) in enumerate(zip(recorded(), MOMENTS, strict=True)):
        keys = [(name, tuple(attributes)) for name, attributes in beans.items()]
        numbers = [nan if value is None else value for attributes in beans.values() for value in attributes.values()]
        layout, values = columns.place(keys, numbers)
        table = BeanTable(node_id="1", layout=layout, values=values)
        for world in (World(), running):
            snapshot = world.join.snapshot(
                [read(table)], limits({PRODUCE: rules} if rules else {}), LimitsHealth(), 30.0 * number
            )
            names = {(entity_usage.entity.user, entity_usage.entity.client_id) for entity_usage in snapshot.entities}
            assert (number, names) == (number, expected)
            entities = sum("byte-rate" in attributes for attributes in beans.values())
            assert snapshot.nodes[0].stale_entities[PRODUCE] == entities - len(expected)


def of(text: str) -> ReleaseRange:
    release = KafkaRelease.parse(text)
    return ReleaseRange(oldest=release, newest=release)


def shown(world: World, nodes: Mapping[str, list[Numbers]]) -> set[tuple[str, str, str]]:
    return {(e.entity.broker, e.entity.user, e.entity.client_id) for e in world.collect(nodes).entities}


BOB = entity(PRODUCE, "bob", usage=0.0)
BOB_APP = entity(PRODUCE, "bob", "app", usage=22_000.0)
APP = entity(PRODUCE, "", "app", usage=0.0)
UNKNOWN: Mapping[str, ReleaseRange] = {}
WIDE = {"1": ReleaseRange(oldest=KafkaRelease(4, 1), newest=None)}
BEFORE_ALL = {"1": ReleaseRange(oldest=None, newest=KafkaRelease(2, 4, zookeeper=True))}


@pytest.mark.parametrize(
    "releases",
    [{"1": of("2.8")}, {"1": of("3.9-zk")}, {"1": of("4.1")}, WIDE, BEFORE_ALL, UNKNOWN, {"2": of("4.1")}],
    ids=str,
)
def test_a_busy_client_without_a_limit_is_shown_before_4_2(releases: Mapping[str, ReleaseRange]) -> None:
    """
    A rule of another kind was removed since the broker's start.

    Bob is measured by pairs, steadily, for minutes; the bean of all of bob's clients is stale.
    """
    world = World(limits(ALICE, releases=releases))
    for _ in range(20):
        assert shown(world, {"1": [BOB, BOB_APP]}) == {("1", "bob", "app")}
    assert shown(world, {"1": [BOB, entity(PRODUCE, "bob", "app", usage=0.0)]}) == {("1", "bob", "")}


@pytest.mark.parametrize("releases", [{"1": of("4.2")}, {"1": of("4.4")}, {"2": of("4.2")}], ids=str)
def test_rules_in_force_decide_since_4_2(releases: Mapping[str, ReleaseRange]) -> None:
    """A steady bean under other tags is left over from earlier rules."""
    world = World(limits(ALICE, releases=releases))
    for _ in range(3):
        assert shown(world, {"1": [BOB, BOB_APP]}) == {("1", "bob", "")}


def test_each_broker_is_judged_by_its_own_release() -> None:
    """Stale beans are judged by each broker's own release, as in a rolling upgrade to 4.2."""
    world = World(limits(ALICE, ("1", "2"), releases={"1": of("4.1"), "2": of("4.2")}))
    for _ in range(3):
        assert shown(world, {"1": [BOB, BOB_APP], "2": [BOB, BOB_APP]}) == {("1", "bob", "app"), ("2", "bob", "")}
    assert shown(world, {"3": [BOB, BOB_APP]}) == {("3", "bob", "app")}


@pytest.mark.parametrize(
    ("rules", "beans", "expected"),
    [
        # a client of a rule is measured by the rule's tags: its idle bean is no leftover
        ({PRODUCE: {QuotaEntity("bob"): 5.0}}, [BOB, BOB_APP], {("bob", ""), ("bob", "app")}),
        # without a word about the same client an idle bean is idle
        (ALICE, [entity(PRODUCE, "carol", usage=0.0), BOB_APP], {("carol", ""), ("bob", "app")}),
        (CLIENTS, [APP, BOB_APP], {("", "app"), ("bob", "app")}),
        ({PRODUCE: {QuotaEntity(None, "x"): 5.0}}, [APP, BOB_APP], {("bob", "app")}),
        (
            {PRODUCE: {QuotaEntity(None, "x"): 5.0}},
            [entity(PRODUCE, "", "etl", usage=0.0), BOB_APP],
            {("", "etl"), ("bob", "app")},
        ),
        # one of a group, or of another type, is no traffic of this one
        (
            {**ALICE, **USER_FETCH},
            [BOB, entity(QuotaType.FETCH, "bob", "app", usage=9.0)],
            {("bob", ""), ("bob", "app")},
        ),
        (ALICE, [BOB, entity(PRODUCE, "", "app", usage=9.0)], {("bob", ""), ("", "app")}),
        # no rule is left: all that has traffic is in use
        ({}, [entity(PRODUCE, "bob", usage=3.0), entity(PRODUCE, "carol", usage=0.0)], {("bob", "")}),
    ],
)  # fmt: skip
def test_only_the_idle_bean_of_a_busy_client_is_stale(
    rules: Rules, beans: list[Numbers], expected: set[tuple[str, str]]
) -> None:
    """Rates show which beans an old broker uses, and without rates the rules do."""
    world = World(limits(rules, releases={"1": of("3.9")}))
    for _ in range(2):
        assert {(user, client) for _, user, client in shown(world, {"1": beans})} == expected


def test_mutations_of_a_node_that_does_not_lead_stay_out() -> None:
    """Only the leader's buckets are shown, whatever the release."""
    world = World(limits({MUTATION: {QuotaEntity("alice"): 1.0}}, releases={"1": of("3.9")}, active_controller="2"))
    assert shown(world, {"1": [entity(MUTATION, "bob", "app", usage=5.0)]}) == set()


@pytest.mark.parametrize("usage", [None, nan, 0.0, 5.0])
def test_a_client_that_was_busy_lingers_as_any_other(usage: float | None) -> None:
    """A rise counts for a minute, also where the traffic alone had shown the bean."""
    world = World(limits(ALICE, releases={"1": of("3.9")}))
    shown(world, {"1": [used(10.0)]})
    assert shown(world, {"1": [used(20.0)]}) == {("1", "", "c")}
    assert shown(world, {"1": [used(usage, throttle_ms=nan)]}) == {("1", "", "c")}
    assert len(world.collect({"1": [used(usage)]}, 61.0).entities) == (usage == 5.0)


def test_a_new_leader_shows_what_rose_before_it_led() -> None:
    world = World(limits({MUTATION: {QuotaEntity("alice"): 1.0}}, releases={"1": of("4.4"), "2": of("4.4")}))
    bob = partial(entity, MUTATION, "bob", "app")
    for usage in (1.0, 9.0):
        assert shown(world, {"1": [bob(usage=usage), leads(0)], "2": [leads(1)]}) == set()
    assert shown(world, {"1": [bob(usage=9.0), leads(1)], "2": [leads(0)]}) == {("1", "bob", "app")}
