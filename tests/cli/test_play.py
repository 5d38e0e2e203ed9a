"""The demo's screen; the table of quota entities fits its terminal and stands still."""

import re
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group
from rich.text import Text
from tests.cli.usages import demo_after, rendered, usage_of
from tests.exporter.examples import usage
from tests.strategies import texts

from quotascope.cli.play import farewell, intro, play, ranking, screen, summary, table, view
from quotascope.cli.usage_table import WIDEST, UsageBar
from quotascope.exporter.config import Config
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import EntityUsage, Snapshot
from quotascope.metrics.kafka.entities import QuotaType

URL = "http://127.0.0.1:9749"
EMPTY = Snapshot(taken_at=0.0)


def shown(snapshot: Snapshot, width: int, height: int) -> list[str]:
    text = rendered(screen(snapshot, URL, width, height), width)
    return text.rstrip("\n").split("\n")


async def test_the_table_agrees_with_the_metrics() -> None:
    """Utilization and throttle time in the terminal are those that Prometheus reads."""
    snapshot = await demo_after(20)
    metrics = Renderer().render(snapshot, snapshot.taken_at).decode()
    labels = 'broker="1",client_id="notebook",quota_type="fetch",user="dana"'
    used, delay = (
        float(re.findall(rf"^{name}{{{labels}}} (.*)$", metrics, re.MULTILINE)[0])
        for name in ("kafka_quota_utilization_ratio", "kafka_quota_throttle_time_seconds")
    )
    rows = rendered(view(snapshot, 100), 100).split("\n")
    row = next(line for line in rows if line.startswith("dana / notebook") and "fetch" in line)
    assert f" {used:.0%} 4 <default> / notebook " in row
    assert row.split()[-2:] == [f"{delay:.2f}", "s"]
    assert any(" 5 <default> / <default> " in line for line in rows), "its longest rule is not cut"


async def test_fills_no_more_than_the_terminal() -> None:
    """The table never scrolls, however small the terminal is, and rows without room are counted."""
    snapshot = await demo_after(10)
    for width, height in product((40, 80, 100, 140), (6, 12, 24, 50)):
        lines = shown(snapshot, width, height)
        assert len(lines) <= height, (width, height)
        assert max(map(len, lines)) <= width, (width, height)
    lines = shown(snapshot, 140, 20)
    rows = len(lines) - len(shown(EMPTY, 140, 20))
    assert lines[-1].rstrip().endswith(f"; {len(snapshot.entities) - rows} more rows")


async def test_as_many_rows_as_there_is_room_for() -> None:
    """The table has one row or more, and leaves room for a heading, a blank line and a total."""
    snapshot = await demo_after(10)
    every = len(ranking(snapshot.measured))
    for height in range(1, every + 10):
        text = rendered(view(snapshot, 100, height), 100).rstrip("\n")
        lines = text.split("\n")
        rows = [line for line in lines[:-1] if re.search(r" (produce|fetch|request|controlle)", line)]
        assert lines[-1].startswith("muted now: ")
        assert len(rows) == min(max(1, height - 4), every)


def test_a_small_terminal_is_all_table() -> None:
    """With few lines or columns the explanation gives way, but not the address."""
    for width, height in [(100, 12), (60, 40)]:
        lines = shown(EMPTY, width, height)
        assert f"Page: {URL}/" in lines[0]
        assert lines[1].startswith("entity")
    assert shown(EMPTY, 100, 24)[0].startswith("Simulated clients")
    lines = rendered(intro("http://127.0.0.1:65535"), 80).rstrip().split("\n")
    assert len(lines) == 6, "the explanation is a handful of lines even in the smallest usual terminal"
    assert lines[-1].startswith("Page: http://127.0.0.1:65535/   for Prometheus: /metrics")


def test_ranking() -> None:
    """Rows are sorted by throttle time, then by the nearness to the limit, with unlimited entities last."""
    throttled = usage_of("throttled", usage=1.0, throttle_time_seconds=2.0)
    near = usage_of("near", usage=900.0)
    far = usage_of("far", usage=10.0)
    unlimited = usage_of("unlimited", usage=9e9, limit=None)
    assert ranking([unlimited, far, near, throttled]) == [throttled, near, far, unlimited]


async def test_summary_and_farewell() -> None:
    """Lines have muted connections by quota type and refused topics, and at the end a summary."""
    snapshot = await demo_after(10)
    muted = (
        r"muted now: fetch \d, produce \d, request \d, controller mutation \d; topics refused with error 89: [1-9]\d*"
    )
    assert re.fullmatch(muted, summary(snapshot, 0))
    ended = r"The demo ended after 10 s\. Throttle time in responses: [1-9][\d.]* s; topics refused: [1-9]\d*\."
    assert re.fullmatch(ended, farewell(snapshot, 10.2))


CONFIG = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0}})


async def test_ends_when_its_time_is_over(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A play without any time still says where it is, shows the table once, and says goodbye."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("quotascope.cli.play.time", SimpleNamespace(monotonic=lambda: 0.0))  # a busy machine stops
    await play(CONFIG, 0)
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r"Page: http://127\.0\.0\.1:\d+/ ", line) for line in lines)
    assert len([line for line in lines if line.startswith("entity ")]) == 1
    assert lines[-1].startswith("The demo ended after 0 s.")


WIDTHS = [20, 40, 56, 76, 80, 96, 100, 140, 200]


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("width", WIDTHS)
def test_fits_the_terminal_and_stands_still(width: int) -> None:
    """No line is wider than the terminal, a row is one line, and columns begin at the same place for all rows."""
    text = rendered(table([usage_of(), usage_of("x" * 500)], width), width)
    assert max(map(len, stripped(text))) <= min(width, WIDEST)
    assert len(stripped(text)) == 4
    small = usage_of("a", "b", usage=1.0, limit=10.0)
    large = usage_of("a" * 99, "b" * 99, usage=1e15, limit=9e14, throttle_time_seconds=3)
    heads = {stripped(rendered(table(rows, width), width))[0] for rows in ([], [small], [large], [small, large])}
    assert len(heads) == 1


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (40, {"entity", "used", "delay"}),
        (60, {"entity", "quota", "usage / limit", "used", "delay"}),
        (80, {"entity", "quota", "usage / limit", "used", "rule", "delay"}),
        (140, {"entity", "quota", "usage / limit", "used", "rule", "delay"}),
    ],
)
def test_narrow_terminals_show_less(width: int, columns: set[str]) -> None:
    """Entity, utilization and throttle time are in every table, other columns in wide ones."""
    head = stripped(rendered(table([], width), width))[0]
    assert all(column in head for column in columns)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            usage_of("etl", "spark", usage=1_200.0, throttle_time_seconds=0.25),
            "etl / spark produce 1.20 / 1.00 kB/s ███ 120% 1 etl / spark 0.25 s",
        ),
        (usage_of(limit=None), "alice / app produce 500 B/s unlimited - no rule 0 s"),
        (
            usage_of(limit=None, known=False),
            "alice / app produce 500 / ? B/s ? unknown 0 s",
        ),
        (usage_of(usage=0.0), "alice / app produce 0.00 / 1.00 kB/s ░░░ 0% 1 alice / app 0 s"),
        (usage_of(usage=None), "alice / app produce ? / 1.00 kB/s ? 1 alice / app 0 s"),
        (
            usage(QuotaType.CONTROLLER_MUTATION, "erin", usage=0.5, limit=1.0, tokens=-1.0, burst_tokens=10.0),
            "user erin controller 0.50 / 1.00 mut/s ██░ 50% unknown 0 s",
        ),
    ],
    ids=["throttled", "unlimited", "unknown", "zero", "no usage", "a bucket that is overdrawn at half the rate"],
)
def test_row_at_100_columns(row: EntityUsage, words: str) -> None:
    """A row has entity, usage, limit, utilization, rule and throttle; unlimited, unknown and zero differ."""
    text = stripped(rendered(table([row], 100), 100))[2]
    assert text.split() == words.split()


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
    """The bar has ASCII characters if the output takes only these."""
    text = rendered(Group(UsageBar(0.5, "red"), Text("x")), 4, encoding="ascii")
    assert text.startswith("##..")
    assert text.isascii()
