"""The table of quota entities fits its terminal and stands still."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group
from rich.text import Text
from tests.cli.usages import rendered, usage_of
from tests.exporter.examples import usage
from tests.strategies import texts

from quotascope.cli.play import table
from quotascope.cli.usage_table import WIDEST, UsageBar
from quotascope.exporter.snapshot import EntityUsage
from quotascope.metrics import QuotaType

WIDTHS = [20, 40, 56, 76, 80, 96, 100, 140, 200]


def lines(text: str) -> list[str]:
    """The lines without the blanks at their ends."""
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("width", WIDTHS)
def test_fits_the_terminal_and_stands_still(width: int) -> None:
    """No line is wider than the terminal, and a row is one line; whatever rows hold, columns begin where they began before."""
    text = rendered(table([usage_of(), usage_of("x" * 500)], width), width)
    assert max(map(len, lines(text))) <= min(width, WIDEST)
    assert len(lines(text)) == 4
    small = usage_of("a", "b", usage=1.0, limit=10.0)
    large = usage_of("a" * 99, "b" * 99, usage=1e15, limit=9e14, throttle_time_seconds=3)
    heads = {lines(rendered(table(rows, width), width))[0] for rows in ([], [small], [large], [small, large])}
    assert len(heads) == 1


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (40, {"entity", "used", "waited"}),
        (60, {"entity", "quota", "usage / limit", "used", "waited"}),
        (80, {"entity", "quota", "usage / limit", "used", "rule", "waited"}),
        (140, {"rule", "delay", "waited", "requests"}),
    ],
)
def test_narrow_terminals_show_less(width: int, columns: set[str]) -> None:
    """Who, how much and how long is always there; the rest comes with the room for it."""
    head = lines(rendered(table([], width), width))[0]
    assert all(column in head for column in columns)


def test_row_at_100_columns() -> None:
    """The usual terminal shows entity, usage, limit, utilization, rule and throttle in one line."""
    row = usage_of("etl", "spark", usage=1_200.0, throttle_time_seconds=0.25, throttled_seconds_total=12.0)
    text = lines(rendered(table([row], 100), 100))[2]
    expected = "etl / spark produce 1.20 / 1.00 kB/s ███ 120% 1 etl / spark 0.25 s 12.0 s"
    assert text.split() == expected.split()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (usage_of(limit=None), "500 B/s unlimited - no rule 0 s 0 s"),
        (usage_of(limit=None, known=False, throttled_seconds_total=None), "500 / ? B/s ? unknown 0 s ?"),
        (usage_of(usage=0.0), "0.00 / 1.00 kB/s ░░░ 0% 1 alice / app 0 s 0 s"),
        (usage_of(usage=None), "? / 1.00 kB/s ? 1 alice / app 0 s 0 s"),
    ],
    ids=["unlimited", "unknown", "zero", "no usage"],
)
def test_unlimited_unknown_and_zero(row: EntityUsage, words: str) -> None:
    """None of the three is shown as another."""
    text = lines(rendered(table([row], 100), 100))[2]
    assert text.split()[4:] == words.split()


def test_a_burst_counts_where_it_is_fuller() -> None:
    """A bucket that is overdrawn shows at a rate of half the limit."""
    mutations = QuotaType.CONTROLLER_MUTATION
    row = usage(mutations, "erin", usage=0.5, limit=1.0, tokens=-1.0, burst_tokens=10.0)
    assert "███ 110%" in rendered(table([row], 100), 100)


@given(user=texts, client_id=texts, width=st.sampled_from(WIDTHS))
def test_hostile_names_stay_in_their_cell(user: str, client_id: str, width: int) -> None:
    """A name can neither break a row, nor move the cursor, nor be taken for markup."""
    text = rendered(table([usage_of(user, f"[red]{client_id}")], width), width)
    assert len(text.split("\n")) == 4
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("ratio", "bar"), [(None, ""), (-0.3, "░░░░"), (0.0, "░░░░"), (0.5, "██░░"), (1.0, "████"), (7.0, "████")]
)
def test_bar(ratio: float | None, bar: str) -> None:
    """A bar is empty at nothing and full at the limit and beyond."""
    assert rendered(UsageBar(ratio, "red"), 4).strip("\n") == bar


def test_bar_in_ascii() -> None:
    """Where the output takes only ASCII, so does the bar."""
    text = rendered(Group(UsageBar(0.5, "red"), Text("x")), 4, encoding="ascii")
    assert text.startswith("##..")
    assert text.isascii()
