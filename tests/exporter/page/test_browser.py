"""The page in a real browser: with and without its script, by day and by night."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from math import inf
from urllib.parse import urlencode

import numpy as np
import pytest
from aiohttp import web
from tests.chromium.browser import Browser, browser
from tests.exporter.examples import NOW, health, limits, snapshot, team, usage

from quotascope.exporter.alert_terms import AlertTerms
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import CollectionConfig, Config
from quotascope.exporter.http import Handlers
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import NodeUsage, Snapshot
from quotascope.exporter.teams import SoldKeeper, TeamAdder
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

pytestmark = pytest.mark.real

DAY, NIGHT = (255, 255, 255), (22, 28, 34)
HOSTILE = "</title><script>document.title='hit'</script><img src=x onerror=document.title='hit'>\"'\n\u202e"
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
BROKEN = """
[...document.querySelectorAll("td > span")].filter(e => {
  const range = document.createRange(); range.selectNodeContents(e);
  return e.innerText === "unknown" && range.getClientRects().length > 1; }).length
"""
"""Cells with a word on two lines."""
DRAWN = "[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 5).length"
NAMES = "[...document.querySelectorAll('#entities tbody th')].map(e => e.textContent)"
SORTED = "[...document.querySelectorAll('th[aria-sort]')].map(e => e.textContent + e.getAttribute('aria-sort'))"
CONTRAST = """
(() => {
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const paper = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return "rgb(255, 255, 255)"; };
  const texts = [...document.querySelectorAll("body *")].filter(e =>
    [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
    && !e.closest("svg, .skip") && e.getClientRects().length);
  return Math.min(...texts.map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(paper(e))].sort((x, y) => y - x);
    return (a + .05) / (b + .05); }));
})()
"""


TEAMS = (
    replace(team("ETL", user="bob"), contact=HOSTILE, budgets={QuotaType.PRODUCE: 400.0}),
    team(HOSTILE, user=HOSTILE),
)


def shown() -> Snapshot:
    """
    Return an entity over the limit, one close to it, one with a hostile name, and a source that is down.

    Alice has quotas of two types at a level.
    """
    rules = limits()
    quotas = {**rules.rules, QuotaType.CONTROLLER_MUTATION: QuotaRules({QuotaEntity("alice"): 1e9})}
    state = snapshot(
        usage(configured=rules, limit=1_000.0, usage=1_500.0, throttle_time_seconds=2.5),
        usage(user="bob", client_id="etl", configured=rules, limit=500.0, usage=425.0),
        usage(user=HOSTILE, client_id=HOSTILE, limit=500.0, usage=50.0),
        usage(
            QuotaType.CONTROLLER_MUTATION,
            "deploy",
            "terraform-and-more",
            limit=99.9,
            usage=11.25,
            tokens=1010.5,
            burst_tokens=1098.9,
        ),
        limits=limits(rules=quotas),
        sources=(health(), health("broker-2", up=False, error=HOSTILE)),
        nodes=(NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: 2.0}),),
    )
    return replace(
        state, teams=TeamAdder(TEAMS).add_up(state), sold=SoldKeeper({QuotaType.PRODUCE: 1_000.0}).update(state)
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Yield the address of an exporter that has one snapshot, in a thread of its own."""
    collection = Collection([], LimitsRefresh(), 0, clock=lambda: NOW)
    collection.latest, collection.latest_began = shown(), inf
    terms = AlertTerms(teams=TEAMS)
    config = Config(cluster=HOSTILE, collection=CollectionConfig(max_age_seconds=0))
    runbooks = {"Alert": "# Alert\n\n`" + "x" * 300 + "`"}
    app = Handlers(collection, config, runbooks, clock=lambda: NOW, terms=terms).app()
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    with asyncio.Runner() as main:
        loop = main.get_loop()
        main.run(runner.setup())
        main.run(web.TCPSite(runner, "127.0.0.1", 0).start())
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        main.run(runner.cleanup())


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def chromium(opened: Browser) -> Iterator[Browser]:
    """Yield a browser as usual: by day, with scripts."""
    opened.prefer("light")
    opened.requests.clear()
    opened.complaints.clear()
    yield opened
    opened.scripts(run=True)


def eventually(become: Callable[[], bool]) -> None:
    """Wait for what the page does by itself; between two pages nothing answers."""
    end = time.monotonic() + 30
    while True:
        with suppress(AssertionError):
            if become():
                return
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("scripts", [True, False])
def test_page_in_a_browser(*, scripts: bool, chromium: Browser, url: str) -> None:
    """The page loads only its own style and script, no name runs as code, and everything is drawn under the policy."""
    chromium.scripts(run=scripts)
    chromium.open(url)
    expected = {url, url + "-/page.css"}
    script = {url + "-/page.js"}
    assert expected <= set(chromium.requests) <= expected | script
    assert chromium.complaints == []
    assert chromium.evaluate("document.title").startswith("quotascope: </title>")
    assert chromium.evaluate("document.querySelectorAll('img, iframe').length") == 0
    assert chromium.evaluate(DRAWN) >= 4
    assert chromium.evaluate(WIDER) is False
    assert "onerror=" in chromium.evaluate("document.body.innerText")


def focus(chromium: Browser, elements: str, place: int = 0) -> None:
    chromium.evaluate(f"document.querySelectorAll({elements!r})[{place}].focus()")


def enter(chromium: Browser, elements: str, place: int = 0) -> None:
    focus(chromium, elements, place)
    chromium.press("Enter", "\r")


def test_everything_works_without_scripts(chromium: Browser, url: str) -> None:
    """A header is a link that sorts, the form filters when Enter is pressed: with the keyboard alone."""
    chromium.scripts(run=False)
    chromium.open(url)
    assert chromium.evaluate(SORTED) == []
    assert chromium.evaluate(NAMES)[:2] == ["user alice", "bob / etl"]
    for direction in ("Useddescending", "Usedascending"):
        enter(chromium, "#by-used")
        eventually(lambda: chromium.evaluate(SORTED) == [direction])  # noqa: B023 - at once
    assert chromium.evaluate(NAMES)[-2:] == ["bob / etl", "user alice"]
    focus(chromium, "#q")
    chromium.type("ETL")
    chromium.press("Enter", "\r")
    eventually(lambda: chromium.evaluate(NAMES) == ["bob / etl"])
    assert chromium.evaluate(SORTED) == ["Usedascending"]
    assert "q=ETL" in chromium.evaluate("location.search")


def test_the_script_does_the_same_without_leaving(chromium: Browser, url: str) -> None:
    """Typing filters and a click on a header sorts at once. Page and focus stay, and the address follows."""
    chromium.open(url)
    chromium.evaluate("window.stayed = true")
    focus(chromium, "#q")
    chromium.type("etl")
    eventually(lambda: chromium.evaluate(NAMES) == ["bob / etl"])
    assert "q=etl" in chromium.evaluate("location.search")
    assert chromium.evaluate("document.activeElement.id") == "q"
    chromium.evaluate("document.getElementById('q').select()")
    chromium.type("b")
    enter(chromium, "#by-name")
    eventually(lambda: chromium.evaluate(SORTED) == ["User and client-idascending"])
    assert chromium.evaluate("document.activeElement.id") == "by-name"
    assert chromium.evaluate("window.stayed") is True
    assert chromium.complaints == []
    # old numbers are not taken for new ones
    chromium.open(url)
    chromium.evaluate("window.fetch = () => Promise.reject(new Error('away'))")
    focus(chromium, "#q")
    chromium.type("x")
    eventually(lambda: "old" in chromium.evaluate("document.getElementById('status').textContent"))
    assert len(chromium.evaluate(NAMES)) == 4


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(("place", "name"), [(1, "bob / etl"), (2, "</title>")])
def test_entities_of_a_team(place: int, name: str, *, scripts: bool, chromium: Browser, url: str) -> None:
    """A team is chosen from the list, whatever its name, and stays chosen when a header sorts."""
    chromium.scripts(run=scripts)
    chromium.open(url)
    chromium.evaluate(f"document.getElementById('team').selectedIndex = {place}")
    enter(chromium, "#selection button")
    eventually(lambda: len(chromium.evaluate(NAMES)) == 1)
    assert chromium.evaluate(NAMES)[0].lstrip('"').startswith(name)
    enter(chromium, "#by-name")
    eventually(lambda: chromium.evaluate(SORTED) == ["User and client-idascending"])
    assert len(chromium.evaluate(NAMES)) == 1
    assert "team=" in chromium.evaluate("location.search")
    assert chromium.complaints == []


@pytest.mark.parametrize("path", ["", "rules", "teams", "entity?user=alice"])
@pytest.mark.parametrize(("scheme", "paper"), [("light", DAY), ("dark", NIGHT)])
def test_by_day_and_by_night(scheme: str, paper: tuple[int, int, int], path: str, chromium: Browser, url: str) -> None:
    """The page follows the reader's light or dark mode, and every text has a contrast of 4.5 to 1."""
    chromium.prefer(scheme)
    chromium.open(url + path, height=1_200)
    pixels = np.asarray(chromium.picture()).reshape(-1, 3).tolist()
    assert Counter(map(tuple, pixels)).most_common(1)[0][0] == paper
    assert chromium.evaluate(CONTRAST) >= 4.5


def test_keyboard(chromium: Browser, url: str) -> None:
    """The first Tab offers to skip the navigation, each next one is visible, and wide tables can be scrolled."""
    chromium.open(url)
    stops = []
    for _ in range(30):
        chromium.press("Tab")
        stops.append(chromium.evaluate("document.activeElement.textContent || document.activeElement.id"))
        assert chromium.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert stops[0] == "Skip to the content"
    assert {"q", "Filter", "Used", "Throttle"} <= set(stops)


ENTITY = f"entity?{urlencode({'user': HOSTILE, 'client_id': HOSTILE})}"
CUT = """
[...document.querySelectorAll("body *:not(option)")].filter(e => e.getClientRects().length && !e.closest(".skip, svg"))
  .filter(e => { const r = e.getBoundingClientRect();
    return r.left < 0 || r.right > document.documentElement.clientWidth + 1; })
  .map(e => e.outerHTML.slice(0, 200))
"""
"""What is not wholly within the window, scrolling aside."""


PATHS = ("", "rules", "teams", "entity?user=alice", ENTITY, "runbooks/", "runbooks/Alert")


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_cut_in_any_window(path: str, chromium: Browser, url: str) -> None:
    """Pages with any names fit telephones and desktops; the browser reports no error, and no name runs as code."""
    for width in (420, 500, 900, 1200, 1400):
        chromium.open(url + path, width=width)
        assert chromium.evaluate(WIDER) is False
        assert chromium.evaluate(CUT) == []
        assert chromium.evaluate(BROKEN) == 0
        assert chromium.complaints == []
        assert "hit" not in chromium.evaluate("document.title").split()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_row_leads_to_its_entity(*, scripts: bool, chromium: Browser, url: str) -> None:
    """A row, also of a hostile name, leads to a page with the entity's rules, last minutes, episodes and a way back."""
    heading = "document.querySelector('h1').innerText"
    chromium.scripts(run=scripts)
    for place, name in enumerate(("user alice", "bob / etl", "deploy / terraform", '"</title><script>')):
        chromium.open(url)
        enter(chromium, "#entities tbody th a", place)
        eventually(lambda: chromium.evaluate(heading).startswith(name))  # noqa: B023 - at once
    chromium.open(url + "entity?user=alice")
    text = chromium.evaluate("document.body.innerText")
    assert "produce: 3 user alice applies, 1,000 B/s" in text
    assert "ongoing" in text
    assert chromium.evaluate("document.querySelectorAll('svg.minutes rect.over').length") == 2
    enter(chromium, "nav a")
    eventually(lambda: chromium.evaluate(heading) == "Quota entities")
    enter(chromium, "nav a", 1)
    eventually(lambda: chromium.evaluate(heading).startswith("Rules"))
    assert "3 user alice" in chromium.evaluate("document.body.innerText")
    assert chromium.complaints == []


def test_a_color_means_the_same_everywhere(chromium: Browser, url: str) -> None:
    """Red means throttled or at the limit, and amber near it, in texts, bars and the legend."""
    colors: dict[str, set[str]] = {}
    for path in ("", "rules", "teams", "entity?user=alice"):
        chromium.open(url + path)
        for kind in ("over", "near", "fine"):
            colors.setdefault(kind, set()).update(
                chromium.evaluate(
                    f"[...document.querySelectorAll('.{kind}')].map(e => getComputedStyle(e)[e.closest('svg') ? "
                    "'fill' : 'color'])"
                )
            )
        assert chromium.evaluate("document.querySelectorAll('.legend .over, .legend .near, .legend .fine').length") == 3
    assert [len(colors_of_kind) for colors_of_kind in colors.values()] == [1, 1, 1]
    assert len(set.union(*colors.values())) == 3
