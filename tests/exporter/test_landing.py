from __future__ import annotations

from html.parser import HTMLParser

from tests.exporter.examples import health, snapshot, usage

from quotascope.exporter.landing import landing_page
from quotascope.exporter.snapshot import Folds, LimitsHealth


class Page(HTMLParser):
    """The text of a page, and which tags it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count it."""
        del attrs
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It closes the last one that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.text += data


def test_sources_and_numbers() -> None:
    """The page says how much there is and how the sources are."""
    page = Page(landing_page(snapshot(usage()), None))
    assert "Quota entities: 1, nodes: 1." in page.text
    assert "broker-1jolokiaup0.250 s12" in page.text
    assert "wrong or missing" not in page.text
    assert page.open == []


def test_what_is_not_shown_one_by_one() -> None:
    """Nobody has to wonder where an entity is."""
    shown = snapshot(left_out=(usage(),), folds=Folds(overflow=1))
    text = Page(landing_page(shown, None)).text
    assert "Quota entities: 1, nodes: 1.\nNot shown one by one: 1 folded." in text


def test_what_is_wrong_is_told_with_what_to_do() -> None:
    """Nobody has to look into the log first."""
    shown = snapshot(
        sources=(health(up=False, error="refused"),),
        limits=None,
        limits_health=LimitsHealth(configured=False),
    )
    page = Page(landing_page(shown, "prod"))
    assert "quotascope: prod" in page.text
    assert "error: Source 'broker-1' (jolokia) cannot be read: refused" in page.text
    assert "Set kafka.bootstrap_servers" in page.text


def test_hostile_text_is_text() -> None:
    """Names and error texts from outside are shown, not run."""
    hostile = "<script>alert(1)</script>\"'&<b>\n\x1b"
    shown = snapshot(sources=(health(hostile, up=False, error=hostile * 500),))
    page = Page(landing_page(shown, hostile))
    assert "<script>alert(1)</script>" in page.text
    assert "script" not in page.tags
    assert "\x1b" not in page.text
    assert len(page.text) < 10_000


def test_before_the_first_collection() -> None:
    """There is a page at once."""
    assert "under way" in Page(landing_page(None, None)).text
