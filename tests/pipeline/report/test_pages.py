"""The pages, whatever names they show: as text, and in a real browser, by day and by night."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from tests.chromium.browser import Browser, browser
from tests.pipeline.blame.logs import saturated, stored
from tests.pipeline.recommend.advices import advice, hit, recommendation
from tests.pipeline.report.reader import HARMLESS, PLAIN, Reader
from tests.pipeline.report.results import (
    HOSTILE,
    hostile_replay,
    replayed,
    result,
    seconds,
    throttled,
    usages,
    whatif_page,
)

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.report import Report, Rows, html
from quotascope.pipeline.rates import LimitGroup
from quotascope.pipeline.runs import blame as blame_question
from quotascope.pipeline.runs import recommend as recommend_question
from quotascope.pipeline.runs import usage as usage_question
from quotascope.pipeline.runs.usage import ClientUsage, Usage
from quotascope.quotas import kafka_configs

DAY, NIGHT = (255, 255, 255), (22, 28, 34)
FIRST = {"light": (11, 98, 164), "dark": (109, 179, 242)}
"""The color of the first candidate."""
FOREIGN = "document.querySelectorAll('script, img, iframe, a, link, object, form').length"
UNFOLD = "document.querySelectorAll('details').forEach(part => { part.open = true })"
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
CUT = "[...document.querySelectorAll('.wide')].filter(t => t.scrollWidth > t.clientWidth).length"
SMALLEST = (
    "Math.min(99, ...[...document.querySelectorAll('svg text')].map(t => parseFloat(getComputedStyle(t).fontSize) * "
    "t.getScreenCTM().a))"
)
HEAT = (
    "JSON.stringify([...document.querySelectorAll('svg.heat')].map(s => [s.getBoundingClientRect().width, "
    "s.viewBox.baseVal.width]))"
)
CELLS = (
    "JSON.stringify([...document.querySelectorAll('{row} > *')].map(c => c.getBoundingClientRect())"
    ".filter(r => r.width).map(r => [r.left, r.right]))"
)
DRAWN = "[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 5).length"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def whatif(*, hostile: bool) -> str:
    if hostile:
        summary = hostile_replay()
        rows = seconds([(0, 5), (30, 7)], user=HOSTILE, client_id=HOSTILE, broker=HOSTILE)
        return whatif_page(summary, usages(rows, [group.group for group in summary.groups]))
    names = {"user": "svc-team-analytics", "client_id": "my-application-1", "level": "user_default_client"}
    counts = {"requests": 1_234_567, "delayed_bytes": 123_456_789_012, "refused_mutations": 12_345}
    summary = replayed(
        throttled(9_000, candidate="tight", limit=1_200.0),
        result(limit=1_500.0),
        throttled(8_123_000, candidate="tight", **names, **counts),
    )
    alice = LimitGroup(QuotaType.PRODUCE, "alice", "app1")
    return whatif_page(summary, usages(seconds((n, 1_000) for n in range(600)), [alice]))


def recommended(*, hostile: bool) -> str:
    user, broker = (HOSTILE, HOSTILE) if hostile else ("alice", "1")
    result = advice([recommendation(user)], None, [hit(user, user)], user)
    groups = list(recommend_question.charted(result))
    drawn = usages(seconds(((n, 100_000) for n in range(600)), user=user, broker=broker), groups)
    commands = kafka_configs(result.changes, bootstrap_servers="b:9092")
    return html(recommend_question.report(result, commands, drawn))


def blamed(*, hostile: bool, victims: int = 30) -> str:
    with TemporaryDirectory() as folder:
        rows = saturated(HOSTILE + "y" * 200 if hostile else "dana", other_clients=victims)
        return html(blame_question.report(blame_question.blame(stored(Path(folder), rows))))


def used(*, hostile: bool) -> str:
    name = HOSTILE if hostile else "orders"
    topics = Counter({name: 7_000, **{f"{name}{n}": 100 - n for n in range(20)}})
    clients = [
        ClientUsage(name, name, kind, amount=10_000, requests=30, unsized=n, topics=topics, protocol=100)
        for n, kind in enumerate(QuotaType)
    ]  # fmt: skip
    totals = dict.fromkeys((kind.label for kind in QuotaType), 10_000)
    unsized = {kind.label: 1 for kind in [*QuotaType][1:]}
    return html(usage_question.report(Usage(name, 0, 60_000, clients, totals, unsized)))


PAGES = [whatif, recommended, blamed, used]
MORE: dict[Callable[..., str], set[str]] = {
    whatif: {"style"},
    blamed: {"fill", "style"},
    used: {"fill", "preserveaspectratio"},
}
"""Attributes that no other page has; they hold colors and numbers."""


@pytest.mark.parametrize("page", PAGES)
def test_page_holds_nothing_that_runs(page: Callable[..., str]) -> None:
    """The page has no script, no address and no handler; names are text."""
    text = page(hostile=True)
    reader = Reader(text)
    assert reader.kinds <= PLAIN
    assert reader.attributes <= HARMLESS | MORE.get(page, set())
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text) < 200_000


@pytest.mark.real
@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("page", PAGES)
def test_page_in_a_browser(page: Callable[..., str], *, hostile: bool, chromium: Browser, tmp_path: Path) -> None:
    """A page loads nothing, runs nothing, fits its window, and its drawings are visible."""
    file = tmp_path / "page.html"
    file.write_text(page(hostile=hostile), encoding="utf-8")
    chromium.requests.clear()
    chromium.open(file)
    assert chromium.requests == [file.as_uri()]
    assert chromium.complaints == []
    assert chromium.evaluate(FOREIGN) == 0
    assert chromium.evaluate(WIDER) is False
    assert chromium.evaluate(DRAWN) >= 3
    if hostile:
        assert "<script>alert('hit')</script>" in chromium.evaluate("document.body.innerText")


@pytest.mark.real
@pytest.mark.parametrize(("scheme", "paper"), [("light", DAY), ("dark", NIGHT)])
def test_page_by_day_and_by_night(scheme: str, paper: tuple[int, int, int], chromium: Browser, tmp_path: Path) -> None:
    """The page and the colors of candidates follow the reader's light or dark mode."""
    file = tmp_path / "page.html"
    file.write_text(whatif(hostile=False), encoding="utf-8")
    chromium.prefer(scheme)
    chromium.open(file, height=2_400)
    picture = chromium.picture()
    colors = Counter(map(tuple, np.asarray(picture).reshape(-1, 3).tolist()))
    assert colors.most_common(1)[0][0] == paper
    assert colors[FIRST[scheme]] > 500


@pytest.mark.real
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("width", [420, 881, 1_025, 1_101, 1_400])
def test_narrow_windows(
    page: Callable[..., str], width: int, *, hostile: bool, chromium: Browser, tmp_path: Path
) -> None:
    """No table is cut at its right, the page does not scroll sideways, and the text of drawings is large enough."""
    file = tmp_path / "page.html"
    file.write_text(page(hostile=hostile), encoding="utf-8")
    chromium.open(file, width=width)
    chromium.evaluate(UNFOLD)
    assert chromium.evaluate(WIDER) is False
    assert chromium.evaluate(CUT) == 0
    assert 11 <= chromium.evaluate(SMALLEST) < (99 if page in {whatif, blamed} else 100)  # the others draw no text


@pytest.mark.real
@pytest.mark.parametrize("width", [420, 881])
@pytest.mark.parametrize("columns", [4, 5], ids=["table", "blocks"])
def test_a_row_without_a_bar_has_its_cells_under_their_heads(
    columns: int, width: int, chromium: Browser, tmp_path: Path
) -> None:
    """In a window of any width, rows with and without a bar have their cells where the others have them."""
    heads = ("team", "#in", "#out", "#cost", "contact")[:columns]
    rows = Rows(heads=heads, rows=[("all", "1", "2", "3", "-")[:columns]] * 2, shares=(None, 0.5))
    file = tmp_path / "page.html"
    file.write_text(html(Report(title="Cost", where="usage", blocks=[rows])), encoding="utf-8")
    chromium.open(file, width=width)
    head, without, with_bar = (
        json.loads(chromium.evaluate(CELLS.format(row=row)))
        for row in ("thead tr", "tbody tr:nth-child(1)", "tbody tr:nth-child(2)")
    )
    assert without == with_bar
    assert head in ([], without)  # blocks have no row of heads


@pytest.mark.real
@pytest.mark.parametrize("width", [900, 1_400])
def test_a_heat_map_of_few_clients_is_no_larger_than_one_of_many(width: int, chromium: Browser, tmp_path: Path) -> None:
    """Cells and names of a heat map keep their size, however many clients it has and however wide the window is."""
    file = tmp_path / "page.html"
    for victims in (2, 30):
        file.write_text(blamed(hostile=False, victims=victims), encoding="utf-8")
        chromium.open(file, width=width)
        ((labels, drawn),) = json.loads(chromium.evaluate(HEAT))
        assert labels == drawn
