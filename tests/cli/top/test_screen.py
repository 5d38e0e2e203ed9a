import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.usages import rendered, usage_of
from tests.exporter.examples import health, snapshot

from quotascope.cli.top.choices import Choices, TopOrder, TopType
from quotascope.cli.top.screen import chosen, screen, sparkline
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.snapshot import Columns, EntityUsage, NodeUsage, Snapshot, ThrottleCause
from quotascope.metrics import QuotaType

MANY = [usage_of(f"user-{number:02}", "app", usage=1000.0 - number) for number in range(50)]


def shown(
    *entities: EntityUsage, choices: Choices | None = None, width: int = 130, height: int = 20, problem: str = ""
) -> list[str]:
    """The lines of the screen."""
    seen: Snapshot = snapshot(
        *entities,
        nodes=(NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: 3.0}),),
        sources=(health(), health("broker-2", up=False)),
    )
    trails = Trails()
    trails.note(seen)
    drawn = screen(seen, trails, choices or Choices(), width, height, problem)
    return rendered(drawn, width).splitlines()


def test_everything_fits_into_every_terminal() -> None:
    """No line is longer than the terminal is wide, and there are no more than it has."""
    for width in (10, 59, 60, 84, 115, 116, 200):
        for height in (1, 6, 20):
            lines = shown(*MANY, width=width, height=height)
            assert len(lines) <= max(6, height)
            assert all(len(line) <= width for line in lines)


def test_the_whole_is_reported_in_the_first_line() -> None:
    """Sources, entities, and connections that are muted at this moment."""
    waiting = usage_of("bob", throttle_time_seconds=2.0)
    (first, *_) = shown(waiting, MANY[0])
    assert first.startswith("quotascope top  sources up 1/2; 2 limited, 1 throttled lately; muted now 3")


def test_a_row_reports_usage_limit_delay_trail_and_rule() -> None:
    """The last stretch of the trail is the present one."""
    lines = shown(usage_of("bob", "app", usage=500.0, throttle_time_seconds=2.0))
    row = " ".join(lines[3].split())
    assert row == "1 bob / app produce 0.50 / 1.00 kB/s █████░░░░░ 50% 2.00 s ▄ 1 bob / app"


def test_a_throttle_by_another_quota_is_reported() -> None:
    """A mutation quota shows at the requests of a broker."""
    hidden = usage_of("bob", usage=0.0, throttle_time_seconds=2.0)
    hidden.cause = ThrottleCause.CONTROLLER_MUTATION
    assert any("throttled by a con" in line for line in shown(hidden))


def test_scrolling_stops_at_the_last_row() -> None:
    """However far it went."""
    lines = shown(*MANY, choices=Choices(first=10_000), height=10)
    assert sum("user-" in line for line in lines) == 5
    assert any("user-49" in line for line in lines)


def test_the_last_line_reports_the_keys_and_what_they_chose() -> None:
    """Or what is typed, or what is wrong."""
    assert shown(MANY[0])[-1].startswith("s sort: used   t type: all   / filter   arrows")
    assert "/ filter: user   " in shown(MANY[0], choices=Choices(text="user"))[-1]
    typing = Choices(text="a\nb", typing=True)
    assert shown(MANY[0], choices=typing)[-1].startswith("filter: a\\nb_   Enter")
    assert shown(MANY[0], problem="no\nconnection")[-1].startswith("no\\nconnection")


def test_hostile_names_stay_on_their_row() -> None:
    """No line breaks, no control characters, no markup."""
    lines = shown(usage_of("[red]\x1b[2J\n", "x" * 5_000))
    assert sum("[red]" in line for line in lines) == 1
    assert not any("\x1b" in line for line in lines)


FULL = usage_of("carol", "c", usage=990.0)
SLOW = usage_of("bob", "b", usage=500.0, throttle_time_seconds=3.0)
IDLE = usage_of("Alice", "", usage=1.0)
FREE = usage_of("dave", "d", limit=None)
HIDDEN = usage_of("eve", limit=None, throttle_time_seconds=1.0)


@pytest.mark.parametrize(
    ("choices", "users"),
    [
        (Choices(), ["carol", "bob", "Alice", "eve"]),
        (Choices(order=TopOrder.DELAY), ["bob", "eve", "carol", "Alice"]),
        (Choices(order=TopOrder.NAME), ["Alice", "bob", "carol", "eve"]),
        (Choices(order=TopOrder.USAGE), ["carol", "bob", "eve", "Alice"]),
        (Choices(kind=TopType.FETCH), []),
        (Choices(kind=TopType.PRODUCE, text="ALI"), ["Alice"]),
        (Choices(text="c"), ["carol", "Alice"]),
    ],
)
def test_what_is_shown(choices: Choices, users: list[str]) -> None:
    """Limited and throttled entities in each order, of a type or a name, ignoring case."""
    everything = Columns.of([IDLE, FREE, FULL, SLOW, HIDDEN]).usages
    assert [each.entity.user for each in chosen(everything, choices)] == users


@given(st.lists(st.none() | st.floats(-1e9, 1e9)))
def test_a_sparkline_has_a_character_for_each_ratio(parts: list[float | None]) -> None:
    """Whatever the numbers are, on every terminal."""
    assert len(sparkline(parts)) == len(parts)
    assert sparkline(parts, ascii_only=True).isascii()


def test_a_sparkline_is_full_from_one_on() -> None:
    """An unknown ratio is a blank."""
    assert sparkline([None, -1.0, 0.0, 0.3, 0.6, 0.9, 1.0, 9.0]) == " ▁▁▃▅▇██"
    assert sparkline([0.0, 1.0], ascii_only=True) == "_#"
