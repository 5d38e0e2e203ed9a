"""Beans that the rules do not explain: left over, or in use after all; and which node's mutation beans count."""

import ast
import re
from collections.abc import Mapping
from math import nan

import pytest
from tests.exporter.join.world import Numbers, Rules, World, entity
from tests.exporter.recorded import CAPTURES, limits, read

from quotascope.exporter.join.staleness import active_controllers
from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.snapshot import LimitsHealth
from quotascope.exporter.sources.jolokia import columns_of
from quotascope.exporter.sources.source import LayoutTracker
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

PRODUCE, REQUEST = QuotaType.PRODUCE, QuotaType.REQUEST
MUTATION = QuotaType.CONTROLLER_MUTATION
ALICE = {PRODUCE: {QuotaEntity("alice"): 100.0}}
PAIRS = {PRODUCE: {QuotaEntity(DEFAULT, DEFAULT): 100.0}}


CLIENTS = {PRODUCE: {QuotaEntity(None, DEFAULT): 1.0}}
Step = tuple[Rules, Numbers, float, bool]
"""Rules, what is measured of client c, seconds since the last collection, and whether it is shown."""


def used(usage: float | None, kind: QuotaType = PRODUCE, *, throttle_ms: float = nan) -> Numbers:
    return entity(kind, "", "c", usage=usage, throttle_ms=throttle_ms)


@pytest.mark.parametrize(
    "history",
    [
        # real traffic goes up and down: a series must not flicker within the minute
        [(ALICE, used(10.0), 15, False), *((ALICE, used(usage), 15, True) for usage in (20.0, 19.0, 19.5, 19.0, 19.0)), (ALICE, used(18.0), 1, False)],
        # one that comes back within the minute is as recent as before, though it is idle now
        [(ALICE, used(10.0), 15, False), (ALICE, used(20.0), 15, True), (ALICE, {}, 15, False), (ALICE, used(0.0), 15, True), (ALICE, used(0.0), 31, False)],
        # it is compared with the last collection alone
        [(ALICE, used(10.0), 15, False), (ALICE, used(10.0), 15, False), (ALICE, used(15.0), 15, True)],
        # a starved consumer has no rate, but its throttle grows
        [(ALICE, used(0.0), 15, False), (ALICE, used(0.0, throttle_ms=5.0), 15, True)],
        [(ALICE, used(0.0), 15, False), (ALICE, used(0.5), 15, True)],
        # Kafka divides by S - 1 to S windows: without traffic a rate can still rise by that much
        [(ALICE, used(100.0), 15, False), (ALICE, used(109.0), 15, False)],
        [(ALICE, used(100.0, MUTATION), 15, False), (ALICE, used(199.0, MUTATION), 15, False)],
        # decay, an unrecorded fetch and a number that is gone are no traffic
        *([(ALICE, used(10.0), 15, False), (ALICE, used(usage), 15, False)] for usage in (10.0, 5.0, 0.0, -50.0, nan, None)),
        # a fetch that was taken back leaves a negative rate, which fades
        [(ALICE, used(-100.0, QuotaType.FETCH), 15, False), (ALICE, used(-1.0, QuotaType.FETCH), 15, False)],
        # what was in use under a rule that went is compared, not taken for new, and its last traffic is no rise
        [(CLIENTS, used(10.0), 15, True), (ALICE, used(9.0), 15, False)],
        [(CLIENTS, used(10.0), 15, True), *((ALICE, used(usage), 15, False) for usage in (5_000.0, 4_000.0, 0.0))],
        # the rule that was missing is known now, and it does not explain the bean either
        [(ALICE, used(10.0), 15, False), (ALICE, used(20.0), 15, True), (PAIRS, used(20.0), 15, False), (PAIRS, used(20.0), 15, False)],
        # limits that are read again are the same rules
        [(ALICE, used(10.0), 15, False), ({**ALICE}, used(20.0), 15, True)],
        # an hour back must not mean an hour of stale beans
        [(ALICE, used(1.0), 15, False), (ALICE, used(2.0), 15, True), (ALICE, used(2.0), -3600, False)],
    ]
)  # fmt: skip
def test_a_bean_that_no_rule_explains_is_shown_while_it_is_in_use(history: list[Step]) -> None:
    """The broker may know a rule that was not read yet: clients that use more are not hidden."""
    world, rules = World(), None
    for number, (now, beans, after, is_shown) in enumerate(history):
        if now is not rules:
            rules, world.limits = now, limits(now)
        snapshot = world.collect_one(beans, after=after)
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
    """Then whether another one leads, then what the Admin API said."""
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
    What the rules explain is shown, the rest is counted, by an exporter that was just started and by one that runs.

    Beans that decay under new rules disappear at once, and never come back.
    """
    running, columns = World(), LayoutTracker(columns_of)
    for number, (beans, (rules, shown)) in enumerate(zip(recorded(), MOMENTS, strict=True)):
        keys = [(name, tuple(attributes)) for name, attributes in beans.items()]
        numbers = [nan if each is None else each for attributes in beans.values() for each in attributes.values()]
        layout, values = columns.place(keys, numbers)
        table = BeanTable(node_id="1", layout=layout, values=values)
        for world in (World(), running):
            snapshot = world.join.snapshot(
                [read(table)], limits({PRODUCE: rules} if rules else {}), LimitsHealth(), 30.0 * number
            )
            found = {(each.entity.user, each.entity.client_id) for each in snapshot.entities}
            assert (number, found) == (number, shown)
            entities = sum("byte-rate" in attributes for attributes in beans.values())
            assert snapshot.nodes[0].stale_entities[PRODUCE] == entities - len(shown)
