from collections.abc import Iterable
from dataclasses import replace
from math import inf

import pytest
from tests.exporter.examples import limits, usage

from quotascope.cli.usage_table import style_of
from quotascope.exporter.diagnosis.selection import Order, Selection, Show, in_order, matching
from quotascope.exporter.page.columns import color_of
from quotascope.exporter.snapshot import Columns, EntityUsage
from quotascope.metrics import QuotaType

FULL = usage(user="carol", client_id="c", usage=990.0, limit=1000.0)
SLOW = usage(user="bob", usage=500.0, limit=1000.0, throttle_time_seconds=3.0)
IDLE = usage(user="Alice", broker="10", usage=1.0, limit=2000.0)
FREE = usage(user="dave", broker="9", usage=7.0, of=limits(rules={}))
UNKNOWN = usage(user="fay", usage=7.0)
BROKE = usage(QuotaType.CONTROLLER_MUTATION, "erin", usage=0.5, limit=1.0, tokens=-1.0, burst_tokens=10.0)
ALL = (IDLE, FREE, FULL, SLOW, BROKE)


def ordered(rows: Iterable[EntityUsage], selection: Selection, most: int | None = None) -> list[str]:
    return [usage.entity.user for usage in in_order(Columns.of(rows).usages, selection, most)]


def users(selection: Selection, most: int | None = None) -> list[str]:
    rows = in_order(matching(Columns.of(ALL).usages, selection), selection, most)
    return [usage.entity.user for usage in rows]


@pytest.mark.parametrize(
    ("selection", "shown"),
    [
        (Selection(show=Show.LIMITED), {"Alice", "bob", "carol", "erin"}),
        (Selection(show=Show.NEAR), {"bob", "carol", "erin"}),
        (Selection(show=Show.THROTTLED), {"bob"}),
        (Selection(show=Show.ALL), {"Alice", "bob", "carol", "dave", "erin"}),
        (Selection(quota_type=QuotaType.CONTROLLER_MUTATION), {"erin"}),
        (Selection(broker="10"), {"Alice"}),
        (Selection(text="C"), {"carol", "Alice"}),
    ],
)
def test_who_is_shown(selection: Selection, shown: set[str]) -> None:
    """A throttled entity counts, whatever it uses; a text is looked for in user and client-id, in either case."""
    assert set(users(selection)) == shown


def test_any_usage_of_a_limit_of_zero_is_above_it() -> None:
    """Kafka finds it violated: it comes before all that is near a limit, and none of it is used by an idle entity."""
    blocked, idle = usage(user="blocked", usage=1e-3, limit=0.0), usage(user="idle", usage=0.0, limit=0.0)
    rows = [usage(user="over", usage=1e18, limit=1.0), UNKNOWN, idle, blocked]
    found = Columns.of(rows).usages
    assert ordered(rows, Selection(order=Order.USED)) == ["blocked", "over", "fay", "idle"]
    assert ordered(rows, Selection())[:2] == ["blocked", "over"]
    assert {each.entity.user for each in matching(found, Selection(show=Show.NEAR))} == {"blocked", "over"}
    used = {each.entity.user: each.used for each in found}
    assert (used["blocked"], used["idle"]) == (inf, None)
    assert (color_of(used["blocked"]), style_of(usage(usage=1.0, limit=0.0))) == ("over", "yellow")


def test_who_may_have_a_limit_is_not_left_out() -> None:
    """An unknown limit is no missing one: without the Admin API, the usual view is not empty."""
    unknown = Columns.of([UNKNOWN]).usages
    found = {show: len(matching(unknown, Selection(show=show))) for show in (Show.LIMITED, Show.NEAR, Show.ALL)}
    assert found == {Show.LIMITED: 1, Show.NEAR: 0, Show.ALL: 1}


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (Order.URGENCY, ["bob", "erin", "carol", "Alice", "dave"]),
        (Order.USED, ["erin", "carol", "bob", "Alice", "dave"]),
        (Order.DELAY, ["bob", "erin", "carol", "Alice", "dave"]),
        (Order.NAME, ["Alice", "bob", "carol", "dave", "erin"]),
        (Order.USAGE, ["carol", "bob", "dave", "Alice", "erin"]),
        (Order.LIMIT, ["Alice", "bob", "carol", "dave", "erin"]),
        (Order.TYPE, ["carol", "bob", "Alice", "dave", "erin"]),
        (Order.BROKER, ["erin", "carol", "bob", "dave", "Alice"]),
    ],
)
def test_orders(order: Order, names: list[str]) -> None:
    """Amounts of other units come by themselves, and node 9 before node 10."""
    assert users(Selection(order=order, show=Show.ALL)) == names


def test_by_urgency() -> None:
    """The throttled by their throttle time, the near, the unknown, the others, the unlimited: none of them is passed by a great number."""
    rows = [
        FREE,
        usage(user="little", usage=1.0, limit=100.0),
        UNKNOWN,
        usage(user="no usage", limit=100.0),
        usage(user="much", usage=70.0, limit=100.0),
        usage(user="near", usage=80.0, limit=100.0),
        usage(user="far over", usage=1e18, limit=1.0),
        usage(user="slow", usage=1.0, limit=100.0, throttle_time_seconds=1e-3),
        usage(user="slowest", usage=1.0, throttle_time_seconds=1e9),
    ]
    found = ordered(rows, Selection())
    assert found == ["slowest", "slow", "far over", "near", "fay", "no usage", "much", "little", "dave"]
    assert ordered(rows, Selection(backwards=True))[:3] == ["dave", "little", "much"]
    assert ordered(rows, Selection(), 3) == found[:3]


@pytest.mark.parametrize(
    ("order", "names"), [(Order.DELAY, ["longest", "much", "little"]), (Order.USED, ["much", "longest", "little"])]
)
def test_of_equals_the_other_figure_decides(order: Order, names: list[str]) -> None:
    """Of equal use the longer delay comes first, of equal delays the greater use."""
    rows = [
        usage(user="little", usage=10.0, limit=100.0, throttle_time_seconds=2.0),
        usage(user="much", usage=90.0, limit=100.0, throttle_time_seconds=2.0),
        usage(user="longest", usage=10.0, limit=100.0, throttle_time_seconds=5.0),
    ]
    assert ordered(rows, Selection(order=order)) == names


@pytest.mark.parametrize("order", [Order.USAGE, Order.LIMIT, Order.TOKENS])
def test_no_number_is_no_zero(order: Order) -> None:
    """An entity whose number is not known comes after one whose number is 0."""
    bucket = QuotaType.CONTROLLER_MUTATION
    rows = [usage(bucket, "zero", usage=0.0, limit=0.0, tokens=0.0), usage(bucket, "unknown")]
    assert ordered(rows, Selection(order=order)) == ordered(rows[::-1], Selection(order=order)) == ["zero", "unknown"]


def test_by_the_rule_that_decides() -> None:
    """The strongest level first; a rule for no one last."""
    rules = limits()
    rows = [usage(user="x"), usage(user="zoe", of=rules), usage(user="alice", of=rules)]
    assert ordered(rows, Selection(order=Order.LEVEL)) == ["alice", "zoe", "x"]


def test_backwards_the_unknown_still_come_last() -> None:
    """No number is not a small number; who has no bucket comes after the emptiest one in both directions."""
    turned = Selection(order=Order.USED, show=Show.ALL, backwards=True)
    assert users(turned) == ["Alice", "bob", "carol", "erin", "dave"]
    assert users(turned, 2) == ["Alice", "bob"]
    assert users(Selection(show=Show.ALL, order=Order.NAME, backwards=True), 1) == ["erin"]
    rows = [usage(user="blind", throttle_time_seconds=None), usage(user="zero"), SLOW]
    assert ordered(rows, Selection(order=Order.DELAY, backwards=True)) == ["zero", "bob", "blind"]
    assert [users(Selection(order=Order.TOKENS, backwards=back))[0] for back in (False, True)] == ["erin"] * 2


def test_no_more_than_asked_for() -> None:
    """The first few are the same as those of the whole order; of no client none is named."""
    every_user = users(Selection(show=Show.ALL))
    assert [users(Selection(show=Show.ALL), most) for most in range(6)] == [every_user[:most] for most in range(6)]
    assert ordered([], Selection(backwards=True), 5) == []
    usages = Columns.of(ALL).usages
    assert list(in_order(usages, Selection())[:3]) == list(in_order(usages, Selection(), 3))
    assert list(usages[1:3]) == list(usages)[1:3]


@pytest.mark.parametrize(
    ("used", "near", "color", "terminal"),
    [
        (-1.0, False, "fine", "green"),
        (0.0, False, "fine", "green"),
        (0.79, False, "fine", "green"),
        (0.8, True, "near", "yellow"),
        (0.99, True, "near", "yellow"),
        (1.0, True, "over", "yellow"),
        (1.5, True, "over", "yellow"),
    ],
)
def test_from_eighty_percent_on_it_is_close(used: float, color: str, terminal: str, *, near: bool) -> None:
    """Documented in docs/page.md; page, terminal and filter agree, and what is throttled is red whatever it uses."""
    full = usage(usage=used * 1000, limit=1000.0)
    assert bool(matching(Columns.of([full]).usages, Selection(show=Show.NEAR))) is near
    assert color_of(used) == color
    assert style_of(full) == terminal
    throttled = replace(full, throttle_time_seconds=0.1)
    slow = Columns.of([throttled]).usages
    assert matching(slow, Selection(show=Show.NEAR)) == [throttled]
    assert color_of(used, throttled=True) == "over"
    assert style_of(throttled) == "red"


def test_what_is_unknown_has_no_color() -> None:
    """Green would say that all is well."""
    assert (color_of(None), style_of(UNKNOWN), style_of(FREE)) == ("", "dim", "dim")


def test_the_first_page_makes_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many entities there are: those that the number they are sorted by rules out stay numbers."""
    crowd = [usage(user=f"u{n}", usage=float(n), limit=1000.0) for n in range(500)]
    columns, made = Columns.of(crowd), list[int]()
    usage_at = Columns.usage_at

    def counted(self: Columns, row: int) -> EntityUsage:
        made.append(row)
        return usage_at(self, row)

    monkeypatch.setattr(Columns, "usage_at", counted)
    wanted = Selection(show=Show.ALL)
    rows = in_order(matching(columns.usages, wanted), wanted, 5)
    assert [each.usage for each in rows] == [499.0, 498.0, 497.0, 496.0, 495.0]
    assert len(made) <= 10
