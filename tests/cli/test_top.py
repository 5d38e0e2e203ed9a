"""`quotascope top`: keys and choices, the screen, failed reads, and a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from tests.cli.conftest import Run, Serve
from tests.cli.ptys import terminal
from tests.cli.usages import rendered, usage_of
from tests.commands import COMMAND
from tests.exporter.examples import health, snapshot, team, usage
from tests.exporter.sources.http.misbehaving import answering, serving

from quotascope.cli.terminal import Draw
from quotascope.cli.top import show
from quotascope.cli.top.choices import (
    BACKSPACE,
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    PAGE_DOWN,
    PAGE_UP,
    UP,
    Choices,
    TopOrder,
)
from quotascope.cli.top.keyboard import keys_in
from quotascope.cli.top.screen import chosen, screen, sparkline
from quotascope.cli.top.show import Read
from quotascope.exporter.api.answers import entities_document
from quotascope.exporter.api.client import Observed, exporter_target, read_recent
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.diagnosis.trails import RECENT_STEPS, STEP_SECONDS, Trails
from quotascope.exporter.errors import LimitsError
from quotascope.exporter.page.query import EntityQuery, find_entities
from quotascope.exporter.page.teams import Teams
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Snapshot, ThrottleCause
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas.team_finder import TeamFinder


def after(*keys: str) -> Choices:
    choices = Choices()
    for key in keys:
        choices = choices.pressed(key)
    return choices


def test_keys_go_through_orders_and_types() -> None:
    """A key goes through all orders or types, and then begins again."""
    assert after("s").order is TopOrder.USED
    assert after(*"sssss").order is TopOrder.URGENCY
    assert after("t").kind == "produce"
    assert after(*"ttttt").kind == "all"


def test_a_filter_is_typed_kept_and_dropped() -> None:
    """Letters are text and not commands while a filter is typed."""
    assert after(*"/qs") == Choices(text="qs", typing=True)
    assert after(*"/as", BACKSPACE, ENTER) == Choices(text="a")
    assert after(*"/as", ESCAPE) == Choices()
    assert after(*"/as", ENTER, ESCAPE) == Choices()
    assert after("/", UP, "\x01", *"x" * 99).text == "x" * 60


def test_scrolling_ends_at_the_top() -> None:
    """Keys scroll without a lower end, which only the screen knows."""
    assert after(DOWN, "j", PAGE_DOWN, " ").scrolled == 22
    assert after(DOWN, UP, "k").scrolled == 0
    assert after(PAGE_DOWN, HOME).scrolled == 0
    assert after(PAGE_DOWN, "s").scrolled == 0


@pytest.mark.parametrize(
    ("keys", "rows"),
    [((UP, "k"), -1), ((DOWN, "j"), 1), ((PAGE_UP,), -10), ((PAGE_DOWN, " "), 10), ((HOME,), -50), (("x", "\n"), 0)],
)
def test_keys_scroll_by_rows_and_pages(keys: tuple[str, ...], rows: int) -> None:
    """Letters scroll like arrows, the space bar like the key for the next page, and other keys not at all."""
    assert {Choices(scrolled=50).pressed(key).scrolled for key in keys} == {50 + rows}


@pytest.mark.parametrize("keys", ["q", "/x"])
def test_it_ends_by_q_or_whenever_it_has_to(keys: str) -> None:
    """`q` or a signal ends the screen, even while a filter is typed; an unknown key does nothing."""
    assert after(*keys, END).over
    assert after("?", "\n") == Choices()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("sq", ["s", "q"]),
        ("\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        ("\x1b[5~\x1b[6~\x1b[1~", ["page up", "page down", "home"]),
        ("\x1b", ["escape"]),
        ("/ä😀\r", ["/", "ä", "😀", "enter"]),
        ("\x7f\x08\x04", ["backspace", "backspace", "end"]),
        ("\x1b[15~\x1b[1;5Cx", ["x"]),
    ],
)
def test_keys_are_distinguished(text: str, keys: list[str]) -> None:
    """Unknown keys are not taken for characters."""
    assert keys_in(text) == keys


MANY = [usage_of(f"user-{number:02}", "app", usage=1000.0 - number) for number in range(50)]


def shown(
    *entities: EntityUsage, choices: Choices | None = None, width: int = 130, height: int = 20, problem: str = ""
) -> list[str]:
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
    """Lines are no wider and no more than the terminal has room for."""
    for width in (10, 59, 60, 84, 115, 116, 200):
        for height in (1, 6, 20):
            lines = shown(*MANY, width=width, height=height)
            assert len(lines) <= max(6, height)
            assert all(len(line) <= width for line in lines)


def test_the_first_row_on_the_cluster() -> None:
    """A line below the table shows the first row's use on all brokers, where there is room."""
    (*_, line, _, _) = shown(usage_of("alice", usage=30e6, limit=20e6), width=100)
    assert line == "produce, alice / app: cluster ≥ 30.0 MB/s of at most 20.0 MB/s"
    assert not any("cluster" in line for line in shown(*MANY, height=9))


def test_teams_of_rows() -> None:
    """A wide terminal has a column for teams, with a dash for an entity without one."""
    teams = TeamFinder((team("pay\n", user="alice"),))
    lines = shown(usage_of("alice"), usage_of("bob"), width=120, choices=Choices(teams=teams))
    assert any("team" in line for line in lines[:3])
    assert sum("pay" in line for line in lines) == 1
    narrow = shown(usage_of("alice"), width=80, choices=Choices(teams=teams))
    assert not any("pay" in line for line in narrow)
    assert any("teams: needs 100 columns" in line for line in narrow)


def test_the_whole_is_reported_in_the_first_line() -> None:
    """Sources, entities, and connections that are muted at this moment."""
    waiting = usage_of("bob", throttle_time_seconds=2.0)
    (first, *_) = shown(waiting, MANY[0])
    assert first.startswith("quotascope top  sources up 1/2; 2 limited, 1 client throttled lately; muted now 3")


def test_a_row_reports_usage_limit_delay_trail_and_rule() -> None:
    """A row has usage, limit, delay, rule, and a trail whose last step is the present."""
    lines = shown(usage_of("bob", "app", usage=500.0, throttle_time_seconds=2.0))
    row = " ".join(lines[3].split())
    assert row == "1 bob / app produce 0.50 / 1.00 kB/s █████░░░░░ 50% 2.00 s ▄ 1 bob / app"


def test_ids_of_nodes_are_whole() -> None:
    """Amazon MSK's controllers are 10001 to 10003; the largest id has ten digits."""
    for broker in ("10001", "2147483647"):
        seen = snapshot(usage(broker=broker, limit=1_000.0, usage=1.0), nodes=(NodeUsage(broker=broker),))
        assert f"\n{broker} user alice" in rendered(screen(seen, Trails(), Choices(), 80, 20), 80)


def test_a_throttle_by_another_quota_is_reported() -> None:
    """A mutation quota shows at the requests of a broker."""
    hidden = usage_of("bob", usage=0.0, throttle_time_seconds=2.0)
    hidden.cause = ThrottleCause.CONTROLLER_MUTATION
    assert any("throttled by a con" in line for line in shown(hidden))


def test_scrolling_stops_at_the_last_row() -> None:
    """Scrolling stops at the last row, however far it went."""
    lines = shown(*MANY, choices=Choices(scrolled=10_000), height=10)
    assert sum("user-" in line for line in lines) == 5
    assert any("user-49" in line for line in lines)


def test_the_last_line_reports_the_keys_and_what_they_chose() -> None:
    """The last line shows the keys and what they chose, or the text being typed, or a problem."""
    assert shown(MANY[0])[-1].startswith("s sort: urgency   t type: all   / filter   arrows")
    assert "/ filter: user   " in shown(MANY[0], choices=Choices(text="user"))[-1]
    typing = Choices(text="a\nb", typing=True)
    assert shown(MANY[0], choices=typing)[-1].startswith("filter: a\\nb_   Enter")
    assert shown(MANY[0], problem="no\nconnection")[-1].startswith("no\\nconnection")


def test_hostile_names_stay_on_their_row() -> None:
    """A hostile name breaks no line, and has no control character and no markup."""
    lines = shown(usage_of("[red]\x1b[2J\n", "x" * 5_000))
    assert sum("[red]" in line for line in lines) == 2  # its row, and its line on the cluster
    assert not any("\x1b" in line for line in lines)


FULL = usage_of("carol", "c", usage=990.0)
SLOW = usage_of("bob", "b", usage=500.0, throttle_time_seconds=3.0)
IDLE = usage_of("Alice", "", usage=1.0)
FREE = usage_of("dave", "d", limit=None)
HIDDEN = usage_of("eve", limit=None, throttle_time_seconds=1.0)


@pytest.mark.parametrize(
    ("choices", "users"),
    [
        (Choices(), ["bob", "eve", "carol", "Alice"]),
        (Choices(order=TopOrder.USED), ["carol", "bob", "Alice", "eve"]),
        (Choices(order=TopOrder.DELAY), ["bob", "eve", "carol", "Alice"]),
        (Choices(order=TopOrder.NAME), ["Alice", "bob", "carol", "eve"]),
        (Choices(order=TopOrder.USAGE), ["carol", "bob", "eve", "Alice"]),
        (Choices(kind="fetch"), []),
        (Choices(kind="produce", text="ALI"), ["Alice"]),
        (Choices(text="c"), ["carol", "Alice"]),
    ],
)
def test_what_is_shown(choices: Choices, users: list[str]) -> None:
    """Limited and throttled entities in each order, of a type or a name, ignoring case."""
    everything = snapshot(IDLE, FREE, FULL, SLOW, HIDDEN)
    assert [usage_row.entity.user for usage_row in chosen(everything, choices)] == users


@given(st.lists(st.none() | st.floats(-1e9, 1e9)))
def test_a_sparkline_has_a_character_for_each_ratio(parts: list[float | None]) -> None:
    """A sparkline has a character for each ratio, whatever the numbers are, on every terminal."""
    assert len(sparkline(parts)) == len(parts)
    assert sparkline(parts, ascii_only=True).isascii()


def test_a_sparkline_is_full_from_one_on() -> None:
    """An unknown ratio is a blank."""
    assert sparkline([None, -1.0, 0.0, 0.3, 0.6, 0.9, 1.0, 9.0]) == " ▁▁▃▅▇██"
    assert sparkline([0.0, 1.0], ascii_only=True) == "_#"


class _Screen:
    """A screen in place of the terminal, which keeps each drawing as text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.console = Console(width=100, height=20)
        self.drawn: list[str] = []
        monkeypatch.setattr(show, "full_screen", self._full_screen)

    @contextmanager
    def _full_screen(self, _: Console) -> Iterator[Draw]:
        yield self._draw

    def _draw(self, what: RenderableType) -> None:
        with self.console.capture() as capture:
            self.console.print(what)
        self.drawn.append(capture.get())


@asynccontextmanager
async def _reading(*looks: Snapshot | Exception) -> AsyncIterator[Read]:
    coming = iter(looks)

    async def read() -> Observed:
        look = next(coming)
        if isinstance(look, Exception):
            raise look
        return look, ()

    yield read


def test_a_defect_ends_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen shows why a read failed, and goes on; any other error ends it and is raised."""
    screen = _Screen(monkeypatch)
    looks = snapshot(), LimitsError("away"), snapshot(), TypeError("a defect")
    with pytest.raises(TypeError, match="a defect"):
        asyncio.run(show.watch(_reading(*looks), screen.console, Choices(), 0.0))
    old = ["the figures are old: away" in picture for picture in screen.drawn]
    assert old == [False, True, False]


@pytest.mark.parametrize("known", [True, False])
async def test_the_screen_begins_with_what_the_exporter_remembers(*, known: bool) -> None:
    """Screen and table begin with the exporter's minutes; an unknown answer is no history, and no failure."""
    full = usage(limit=100.0, usage=50.0)
    state = snapshot(full)
    trails = Trails()
    for back in range(10, -1, -1):
        trails.note(replace(state, taken_at=state.taken_at - STEP_SECONDS * back))
    page = find_entities(state, trails, EntityQuery(), Teams())
    body = encoded(entities_document(page)) if known else b'{"entities": [5]}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with serving(answering(head, body)) as url:
        recent = await read_recent(exporter_target(url))
        console = Console(width=140)
        with console.capture() as capture:
            await show.print_once(_reading(state), console, Choices(), exporter_target(url))
    screen = show._Show((state, ()), Choices())
    screen.recall(recent)
    seen = 11 if known else 1
    assert screen.trails.utilization(full) == [None] * (RECENT_STEPS - seen) + [0.5] * seen
    assert f" {'▄' * seen} " in capture.get()


CAPTURE = "split/throttled.1.jolokia2.json"


@pytest.mark.slow
def test_keys_sort_filter_and_end(agent: Serve) -> None:
    """The table is drawn again and again; the terminal is as before in the end."""
    broker = agent(CAPTURE)
    source = f"jolokia:1={broker.url}"
    with terminal(COMMAND, "top", "--source", source, "--every", "0.2s") as screen:
        screen.frame_with("s sort: urgency", "sources up 1/1")
        screen.press("s")
        screen.frame_with("s sort: used")
        screen.press("/CAROL")
        screen.frame_with("filter: CAROL_")
        screen.press("\r")
        frame = screen.frame_with("/ filter: CAROL ", "carol / spam")
        assert "alice" not in frame
        assert not screen.is_as_before
        screen.press("q")
        assert screen.program.wait(60) == 0
        assert screen.is_as_before


def test_a_signal_gives_the_terminal_back(agent: Serve) -> None:
    """The signal ends the command as Ctrl-C does."""
    broker = agent(CAPTURE)
    with terminal(COMMAND, "top", "--source", f"jolokia:1={broker.url}") as screen:
        screen.frame_with("s sort: urgency")
        screen.program.send_signal(signal.SIGINT)
        assert screen.program.wait(60) == 0
        assert screen.is_as_before


@pytest.mark.slow
def test_a_source_that_goes_away_is_reported_and_the_last_numbers_stay(agent: Serve) -> None:
    """A source that goes away is reported in place of the keys, which still work, and the last numbers stay."""
    broker = agent(CAPTURE)
    with terminal(COMMAND, "top", "--source", f"jolokia:1={broker.url}", "--every", "0.2s") as screen:
        screen.frame_with("carol / spam")
        broker.close()
        screen.frame_with("sources up 0/1", "cannot be read")


def test_without_a_terminal_there_is_one_plain_table(agent: Serve, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes and logs get one table: no colors, no cursor, and it ends."""
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = run("top", "--source", f"jolokia:1={agent(CAPTURE).url}", "--type", "produce")
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[0].startswith("sources up 1/1; ")
    assert any("carol / spam" in line for line in lines)
    assert not any(" fetch " in line for line in lines)


@pytest.mark.parametrize(("url", "exit_code"), [("http://127.0.0.1:1", 1), ("ftp://x", 2)])
def test_an_exporter_that_cannot_be_asked_is_an_error(run: Run, url: str, exit_code: int) -> None:
    """An exporter that cannot be read is an error of one line with exit code 1, or 2 for a wrong option."""
    code, out, err = run("top", "--exporter", url)
    assert (code, out) == (exit_code, "")
    assert err.startswith("quotascope: ")
    assert len(err.splitlines()) == 1
