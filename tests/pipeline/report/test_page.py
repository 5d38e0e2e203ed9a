from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.report.names import HOSTILE
from tests.pipeline.report.reader import HARMLESS, PLAIN, Reader
from tests.pipeline.report.results import (
    account,
    hostile_account,
    result,
    seconds,
    throttled,
    usages,
)

from quotascope.metrics import QuotaType
from quotascope.pipeline.report.summary import Group
from quotascope.pipeline.report.whatif_page import _row, headline, whatif_page
from quotascope.pipeline.whatif.mode import Mode

ALICE = Group(QuotaType.PRODUCE, "alice", "app1")


def test_page_tells_all() -> None:
    """Candidates, who would be hit, and usage beside the limits."""
    told = account(
        throttled(90_000, candidate="tight", limit=2_000.0),
        result(candidate="now", limit=500_000.0),
        throttled(1_000, candidate="tight", user="bob", level="default_user"),
    )
    drawn = usages(seconds((n, 1_000 + n) for n in range(600)), [ALICE])
    text = Reader(whatif_page(told, drawn)).text
    for words in (
        "“tight” (2 of 2 limited, throttled 1 min 31 s)",
        "2 kB/s",
        "alice / app1: produce",
        "on broker 1",
        "Far above: now, 500 kB/s",
        "Mon 00h: 1.59 kB/s",
        "Mon 01h: no data",
        "1 more group",
        "2026-11-23 00:00:00 UTC",
        "upper bounds",
    ):
        assert words in text, words


def test_figures_of_a_client() -> None:
    """Each in its unit: results hold ms, bytes and shares."""
    row = throttled(
        90_000,
        candidate="tight",
        limit=2_000.0,
        requests=1_234,
        throttled_requests=56,
        longest_throttle_ms=1_500,
        delayed_bytes=2_500_000,
        rejected_mutations=1_000,
        recovery_ms=125_000,
    )
    assert [*_row(row)] == ["tight", "2 kB/s", "user client", "1,234", "56", "1 min 30 s", "10 %", "1.50 s", "2.5 MB", "1,000", "2 min 5 s"]  # fmt: skip


def test_page_holds_nothing_that_runs() -> None:
    """No script, no address, no handler: whatever names are, they are text."""
    told = hostile_account()
    rows = seconds([(0, 5), (1, 7)], user=HOSTILE, client_id=HOSTILE, broker=HOSTILE)
    drawn = usages(rows, [each.group for each in told.groups])
    page = whatif_page(told, drawn)
    found = Reader(page)
    assert found.kinds <= PLAIN
    assert found.attributes <= HARMLESS
    assert "default-src 'none'" in page
    assert "url(" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert len(page) < 200_000


@given(name=st.text(max_size=40))
def test_any_name(name: str) -> None:
    """Names of any characters make a page that can be written and read."""
    told = account(throttled(5, candidate="now", user=name, client_id=name))
    page = whatif_page(told, {})
    assert Reader(page.encode().decode()).kinds <= PLAIN


@pytest.mark.parametrize("mode", Mode)
def test_page_says_what_its_mode_means(mode: Mode) -> None:
    """Figures of the two modes mean different things, and only the closed loop knows of delays."""
    text = Reader(whatif_page(account(throttled(5), mode=mode), {})).text
    assert ("upper bounds" in text) == (mode is Mode.OPEN_LOOP)
    assert ("later by" in text) == (mode is Mode.CLOSED_LOOP)


def test_nobody_is_hit() -> None:
    """It says so."""
    told = account(result(), names=["now"])
    assert headline(told) == "No candidate would have throttled any client."
    assert Reader(whatif_page(told, {})).told.count(headline(told)) == 2


def test_nothing_is_limited() -> None:
    """That no limit throttles is something else than that there is none."""
    told = account(names=["now"])
    assert headline(told) == "No candidate limits any client of this history: all of them are unlimited."  # fmt: skip


def test_headline_of_several() -> None:
    """From the mildest to the hardest."""
    told = account(throttled(5_000, candidate="now"), throttled(60_000, candidate="tight"))  # fmt: skip
    assert headline(told) == (
        "From “now” (1 of 1 limited, throttled 5 s) to “tight” (1 of 1 limited, throttled 1 min)."
    )
