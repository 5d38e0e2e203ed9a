from collections.abc import Iterable
from dataclasses import replace
from math import inf

import pytest
from tests.exporter.examples import limits, usage

from quotascope.alerts.links import Dashboard
from quotascope.alerts.thresholds import NEAR_LIMIT
from quotascope.cli.usage_table import style_of
from quotascope.exporter.diagnosis.selection import Order, Selection, Show, in_order, matching
from quotascope.exporter.page.columns import color_of
from quotascope.exporter.snapshot import Columns, EntityUsage
from quotascope.metrics.catalog import boards
from quotascope.metrics.catalog import thresholds as shared
from quotascope.metrics.kafka.entities import QuotaType

NEAR = NEAR_LIMIT.value
FULL = usage(user="carol", client_id="c", usage=990.0, limit=1000.0)
SLOW = usage(user="bob", usage=500.0, limit=1000.0, throttle_time_seconds=3.0)
IDLE = usage(user="Alice", broker="10", usage=1.0, limit=2000.0)
FREE = usage(user="dave", broker="9", usage=7.0, configured=limits(rules={}))
UNKNOWN = usage(user="fay", usage=7.0)
BROKE = usage(QuotaType.CONTROLLER_MUTATION, "erin", usage=0.5, limit=1.0, tokens=-1.0, burst_tokens=10.0)
ALL = (IDLE, FREE, FULL, SLOW, BROKE)


def ordered(rows: Iterable[EntityUsage], selection: Selection, max_count: int | None = None) -> list[str]:
    return [usage.entity.user for usage in in_order(Columns.of(rows).usages, selection, max_count)]


def users(selection: Selection, max_count: int | None = None) -> list[str]:
    rows = in_order(matching(Columns.of(ALL).usages, selection), selection, max_count)
    return [usage.entity.user for usage in rows]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(near_limit=NEAR, show=Show.LIMITED), {"Alice", "bob", "carol", "erin"}),
        (Selection(near_limit=NEAR, show=Show.NEAR), {"bob", "carol", "erin"}),
        (Selection(near_limit=NEAR, show=Show.THROTTLED), {"bob"}),
        (Selection(near_limit=NEAR, show=Show.ALL), {"Alice", "bob", "carol", "dave", "erin"}),
        (Selection(near_limit=NEAR, quota_type=QuotaType.CONTROLLER_MUTATION), {"erin"}),
        (Selection(near_limit=NEAR, broker="10"), {"Alice"}),
        (Selection(near_limit=NEAR, text="C"), {"carol", "Alice"}),
    ],
)
def test_who_is_shown(selection: Selection, expected: set[str]) -> None:
    """A throttled entity is shown whatever it uses; a text is searched in user and client-id, ignoring case."""
    assert set(users(selection)) == expected


def test_any_usage_of_a_limit_of_zero_is_above_it() -> None:
    """Any usage of a limit of zero comes before all that is near a limit, and an idle entity uses none of it."""
    blocked, idle = usage(user="blocked", usage=1e-3, limit=0.0), usage(user="idle", usage=0.0, limit=0.0)
    rows = [usage(user="over", usage=1e18, limit=1.0), UNKNOWN, idle, blocked]
    usages = Columns.of(rows).usages
    assert ordered(rows, Selection(near_limit=NEAR, order=Order.USED)) == ["blocked", "over", "fay", "idle"]
    assert ordered(rows, Selection(near_limit=NEAR))[:2] == ["blocked", "over"]
    assert {
        entity_usage.entity.user for entity_usage in matching(usages, Selection(near_limit=NEAR, show=Show.NEAR))
    } == {
        "blocked",
        "over",
    }
    used = {entity_usage.entity.user: entity_usage.used for entity_usage in usages}
    assert (used["blocked"], used["idle"]) == (inf, None)
    assert (color_of(used["blocked"], NEAR), style_of(usage(usage=1.0, limit=0.0), NEAR)) == ("over", "yellow")


def test_who_may_have_a_limit_is_not_left_out() -> None:
    """An entity whose limit is unknown is in the usual view, which is not empty without the Admin API."""
    unknown = Columns.of([UNKNOWN]).usages
    counts = {
        show: len(matching(unknown, Selection(near_limit=NEAR, show=show)))
        for show in (Show.LIMITED, Show.NEAR, Show.ALL)
    }
    assert counts == {Show.LIMITED: 1, Show.NEAR: 0, Show.ALL: 1}


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (Order.URGENCY, ["bob", "erin", "carol", "Alice", "dave"]),
        (Order.USED, ["carol", "bob", "erin", "Alice", "dave"]),
        (Order.DELAY, ["bob", "carol", "erin", "Alice", "dave"]),
        (Order.NAME, ["Alice", "bob", "carol", "dave", "erin"]),
        (Order.USAGE, ["carol", "bob", "dave", "Alice", "erin"]),
        (Order.LIMIT, ["Alice", "bob", "carol", "dave", "erin"]),
        (Order.TYPE, ["carol", "bob", "Alice", "dave", "erin"]),
        (Order.BROKER, ["carol", "bob", "erin", "dave", "Alice"]),
    ],
)
def test_orders(order: Order, names: list[str]) -> None:
    """Amounts of other units come by themselves, and node 9 before node 10."""
    assert users(Selection(near_limit=NEAR, order=order, show=Show.ALL)) == names


def test_by_urgency() -> None:
    """
    The throttled come first by throttle time, then the near, the unknown, the others, the unlimited.

    No large number changes this order.
    """
    rows = [
        FREE,
        usage(user="little", usage=1.0, limit=100.0),
        UNKNOWN,
        usage(user="no usage", limit=100.0),
        usage(user="much", usage=70.0, limit=100.0),
        usage(user="near", usage=90.0, limit=100.0),
        usage(user="far over", usage=1e18, limit=1.0),
        usage(user="slow", usage=1.0, limit=100.0, throttle_time_seconds=1e-3),
        usage(user="slowest", usage=1.0, throttle_time_seconds=1e9),
    ]
    names_in_order = ordered(rows, Selection(near_limit=NEAR))
    assert names_in_order == ["slowest", "slow", "far over", "near", "fay", "no usage", "much", "little", "dave"]
    assert ordered(rows, Selection(near_limit=NEAR, backwards=True))[:3] == ["dave", "little", "much"]
    assert ordered(rows, Selection(near_limit=NEAR), 3) == names_in_order[:3]


@pytest.mark.parametrize(
    ("order", "names"), [(Order.DELAY, ["longest", "much", "little"]), (Order.USED, ["much", "longest", "little"])]
)
def test_of_equals_the_other_figure_decides(order: Order, names: list[str]) -> None:
    """Of two clients with equal use the one with the longer delay comes first, and the other way round."""
    rows = [
        usage(user="little", usage=10.0, limit=100.0, throttle_time_seconds=2.0),
        usage(user="much", usage=90.0, limit=100.0, throttle_time_seconds=2.0),
        usage(user="longest", usage=10.0, limit=100.0, throttle_time_seconds=5.0),
    ]
    assert ordered(rows, Selection(near_limit=NEAR, order=order)) == names


@pytest.mark.parametrize("order", [Order.USAGE, Order.LIMIT, Order.TOKENS])
def test_no_number_is_no_zero(order: Order) -> None:
    """An entity with an unknown number comes after one whose number is 0."""
    bucket = QuotaType.CONTROLLER_MUTATION
    rows = [usage(bucket, "zero", usage=0.0, limit=0.0, tokens=0.0), usage(bucket, "unknown")]
    assert (
        ordered(rows, Selection(near_limit=NEAR, order=order))
        == ordered(rows[::-1], Selection(near_limit=NEAR, order=order))
        == ["zero", "unknown"]
    )


def test_by_the_rule_that_decides() -> None:
    """Entities under the strongest level come first, and those without a rule last."""
    rules = limits()
    rows = [usage(user="x"), usage(user="zoe", configured=rules), usage(user="alice", configured=rules)]
    assert ordered(rows, Selection(near_limit=NEAR, order=Order.LEVEL)) == ["alice", "zoe", "x"]


def test_backwards_the_unknown_still_come_last() -> None:
    """Entities with an unknown number, such as those without a bucket, come last in both directions."""
    turned = Selection(near_limit=NEAR, order=Order.USED, show=Show.ALL, backwards=True)
    assert users(turned) == ["Alice", "erin", "bob", "carol", "dave"]
    assert users(turned, 2) == ["Alice", "erin"]
    assert users(Selection(near_limit=NEAR, show=Show.ALL, order=Order.NAME, backwards=True), 1) == ["erin"]
    rows = [usage(user="blind", throttle_time_seconds=None), usage(user="zero"), SLOW]
    assert ordered(rows, Selection(near_limit=NEAR, order=Order.DELAY, backwards=True)) == ["zero", "bob", "blind"]
    assert [users(Selection(near_limit=NEAR, order=Order.TOKENS, backwards=back))[0] for back in (False, True)] == [
        "erin"
    ] * 2


def test_no_more_than_asked_for() -> None:
    """The first few rows are those of the whole order, and no client gives no row."""
    every_user = users(Selection(near_limit=NEAR, show=Show.ALL))
    assert [users(Selection(near_limit=NEAR, show=Show.ALL), max_count) for max_count in range(6)] == [
        every_user[:max_count] for max_count in range(6)
    ]
    assert ordered([], Selection(near_limit=NEAR, backwards=True), 5) == []
    usages = Columns.of(ALL).usages
    assert list(in_order(usages, Selection(near_limit=NEAR))[:3]) == list(
        in_order(usages, Selection(near_limit=NEAR), 3)
    )
    assert list(usages[1:3]) == list(usages)[1:3]


def test_an_alert_and_the_page_call_the_same_close_to_a_limit() -> None:
    """Alerts, findings and pages share each threshold, and links the name of a dashboard."""
    assert NEAR_LIMIT.value == NEAR
    assert NEAR_LIMIT is shared.NEAR_LIMIT
    assert {dashboard.uid for dashboard in Dashboard} == {uid for name, uid in vars(boards).items() if name.isupper()}


@pytest.mark.parametrize(
    ("used", "near", "color", "terminal"),
    [
        (-1.0, False, "fine", "green"),
        (0.0, False, "fine", "green"),
        (NEAR - 0.01, False, "fine", "green"),
        (NEAR, True, "near", "yellow"),
        ((NEAR + 1) / 2, True, "near", "yellow"),
        (1.0, True, "over", "yellow"),
        (1.5, True, "over", "yellow"),
    ],
)
def test_from_the_threshold_of_the_alert_on_it_is_close(used: float, color: str, terminal: str, *, near: bool) -> None:
    """
    An entity is near its limit from the alert's threshold on, as docs/guides/page.md documents.

    Page, terminal and filter agree; a throttled entity is red whatever it uses.
    """
    full = usage(usage=used * 1000, limit=1000.0)
    assert bool(matching(Columns.of([full]).usages, Selection(near_limit=NEAR, show=Show.NEAR))) is near
    assert color_of(used, NEAR) == color
    assert style_of(full, NEAR) == terminal
    throttled = replace(full, throttle_time_seconds=0.1)
    slow = Columns.of([throttled]).usages
    assert matching(slow, Selection(near_limit=NEAR, show=Show.NEAR)) == [throttled]
    assert color_of(used, NEAR, throttled=True) == "over"
    assert style_of(throttled, NEAR) == "red"


def test_what_is_unknown_has_no_color() -> None:
    """An entity with an unknown number has no color, as green would call it well."""
    assert (color_of(None, NEAR), style_of(UNKNOWN, NEAR), style_of(FREE, NEAR)) == ("", "dim", "dim")


def test_the_first_page_makes_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page creates few rows, however many entities there are, as the others are sorted out as numbers."""
    crowd = [usage(user=f"u{n}", usage=float(n), limit=1000.0) for n in range(500)]
    columns, created = Columns.of(crowd), list[int]()
    usage_at = Columns.usage_at

    def counted(self: Columns, row: int) -> EntityUsage:
        created.append(row)
        return usage_at(self, row)

    monkeypatch.setattr(Columns, "usage_at", counted)
    selection = Selection(near_limit=NEAR, show=Show.ALL)
    rows = in_order(matching(columns.usages, selection), selection, 5)
    assert [entity_usage.usage for entity_usage in rows] == [499.0, 498.0, 497.0, 496.0, 495.0]
    assert len(created) <= 10
