"""What the demo shows at a glance."""

import re
from itertools import product

import pytest
from tests.cli.usages import demo_after, rendered, usage_of

from quotascope.cli.play import farewell, intro, play, ranking, screen, summary, view
from quotascope.exporter.config import Config
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import Snapshot

URL = "http://127.0.0.1:9749"
EMPTY = Snapshot(taken_at=0.0)


def shown(snapshot: Snapshot, width: int, height: int) -> list[str]:
    """The lines of the screen."""
    text = rendered(screen(snapshot, URL, width, height), width)
    return text.rstrip("\n").split("\n")


async def test_a_client_is_shown_as_throttled_within_five_seconds() -> None:
    """Who starts the demo soon sees a producer over its limit, and which rule throttles it."""
    text = rendered(view(await demo_after(5), 100), 100)
    row = next(line for line in text.split("\n") if "1 etl / spark-nightly" in line)
    assert re.search(r"produce .* \d\.\d\d s +\d\.\d\d s$", row.rstrip())


async def test_the_table_agrees_with_the_metrics() -> None:
    """Utilization, throttle time and total in the terminal are those that Prometheus reads."""
    snapshot = await demo_after(20)
    metrics = Renderer().render(snapshot, snapshot.taken_at).decode()
    labels = 'broker="1",client_id="notebook",quota_type="fetch",user="dana"'
    used, delay, waited = (
        float(re.findall(rf"^{name}{{{labels}}} (.*)$", metrics, re.MULTILINE)[0])
        for name in (
            "kafka_quota_utilization_ratio",
            "kafka_quota_throttle_time_seconds",
            "kafka_quota_throttled_seconds_total",
        )
    )
    rows = rendered(view(snapshot, 100), 100).split("\n")
    row = next(line for line in rows if line.startswith("dana / notebook") and "fetch" in line)
    assert f" {used:.0%} 4 <default> / notebook " in row
    assert row.split()[-4:] == [f"{delay:.2f}", "s", f"{waited:.1f}", "s"]
    assert any(" 5 <default> / <default> " in line for line in rows), "its longest rule is not cut"


async def test_fills_no_more_than_the_terminal() -> None:
    """However small the terminal is, nothing scrolls; what is left out is counted."""
    snapshot = await demo_after(10)
    for width, height in product((40, 80, 100, 140), (6, 12, 24, 50)):
        lines = shown(snapshot, width, height)
        assert len(lines) <= height, (width, height)
        assert max(map(len, lines)) <= width, (width, height)
    lines = shown(snapshot, 140, 20)
    rows = len(lines) - len(shown(EMPTY, 140, 20))
    assert lines[-1].rstrip().endswith(f"; {len(snapshot.entities) - rows} more rows")


async def test_as_many_rows_as_there_is_room_for() -> None:
    """Beside a heading, a blank line, and a line about the whole: not one less, and one at least."""
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
    """First who waited longest, then who is nearest to the limit, last who has none."""
    waited = usage_of("waited", usage=1.0, throttled_seconds_total=2.0)
    near = usage_of("near", usage=900.0)
    far = usage_of("far", usage=10.0)
    unlimited = usage_of("unlimited", usage=9e9, limit=None)
    assert ranking([unlimited, far, near, waited]) == [waited, near, far, unlimited]


async def test_summary_and_farewell() -> None:
    """Lines about who is muted at this moment, by quota type, and what was refused; and in the end about what happened."""
    snapshot = await demo_after(10)
    muted = r"muted now: fetch \d, produce \d, request \d, controller mutation \d; refused with error 89: [1-9]\d*"
    assert re.fullmatch(muted, summary(snapshot, 0))
    ended = r"The demo ended after 10 s\. Requests throttled: [1-9]\d*; partitions refused: [1-9]\d*\."
    assert re.fullmatch(ended, farewell(snapshot, 10.2))


CONFIG = Config.model_validate({"server": {"address": "127.0.0.1", "port": 0}})


async def test_ends_when_its_time_is_over(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time at all it still says where it is, shows the table once, and takes its leave."""
    monkeypatch.delenv("COLUMNS", raising=False)
    await play(CONFIG, 0)
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r"Page: http://127\.0\.0\.1:\d+/ ", line) for line in lines)
    assert len([line for line in lines if line.startswith("entity ")]) == 1
    assert lines[-1].startswith("The demo ended after 0 s.")
