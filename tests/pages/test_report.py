"""A report as a page, as CSV, and in a terminal: the same words."""

from __future__ import annotations

import csv
import io
import json

import pytest
from tests.pipeline.report.reader import HARMLESS, PLAIN, Reader

from quotascope.pages.charts import swatch
from quotascope.pages.markup import element
from quotascope.pages.report import Cell, Chart, Lines, Mark, Report, Rows, csv_of, html

HOSTILE = "<script>alert(1)</script>\n\x1b[2J"


def page(*blocks: Rows | Lines | Chart) -> Reader:
    return Reader(html(Report(title="Usage", where="usage", blocks=blocks)))


def numbered(rows: int, page_rows: int) -> Rows:
    return Rows(heads=("entity", "#used"), rows=[(f"e{number}", "1") for number in range(rows)], page_rows=page_rows)


@pytest.mark.parametrize(
    ("rows", "page_rows", "row_count", "caption"),
    [
        (2, 2, 2, None),
        (3, 2, 2, "and 1 more: --json has all"),
        (2_002, 2, 2, "and 2,000 more: --json has all"),
    ],
)
def test_rows_beyond_the_number_on_a_page_are_counted(
    rows: int, page_rows: int, row_count: int, caption: str | None
) -> None:
    """A long table ends with the number of rows that it leaves out."""
    text = page(numbered(rows, page_rows)).text
    assert text.count("|1|") == row_count
    assert ("more" in text) == (caption is not None)
    assert caption is None or caption in text


def test_a_page_has_a_hundred_rows_by_default() -> None:
    """A table that sets no number of rows shows 100 on a page."""
    text = page(Rows(heads=("entity", "#used"), rows=[(f"e{number}", "1") for number in range(101)])).text
    assert text.count("|1|") == 100
    assert "and 1 more: --json has all" in text


def test_columns_without_any_text_are_left_out() -> None:
    """A column that is empty in all rows has no head, wherever it stands; an unknown value keeps its column."""
    rows = Rows(
        heads=("query", "user", "=side", "#longest", "by rule"),
        rows=[("", "alice", "", "unknown", ""), ("", "bob", "", "", "")],
        below="by rule",
    )
    filled = rows.filled()
    assert (filled.heads, filled.name, filled.below) == (["user", "#longest"], 0, "")
    assert filled.rows == [["alice", "unknown"], ["bob", ""]]
    assert "query" not in page(rows).text
    full = Rows(heads=("query", "user"), rows=[("q", "alice"), ("", "bob")], name=1)
    assert full.filled().name == 1
    assert full.filled().rows == [["q", "alice"], ["", "bob"]]


def test_names_are_text_in_each_part_of_a_report() -> None:
    """A page has untrusted names as text in sentences, cells, headings, legends and lines to be copied."""
    blocks = (
        Rows(
            title=HOSTILE,
            heads=("entity",),
            rows=[(HOSTILE,), (Cell(HOSTILE, Mark.WORSE),)],
            legend=HOSTILE,
            folded=True,
        ),
        Rows(title="empty", heads=("entity",), rows=(), empty=HOSTILE),
        Lines(lines=(HOSTILE,), faint=True),
        Lines(title="Commands", lines=(HOSTILE,), copied=True),
        Chart(title=HOSTILE, level=3, elements=(element("svg", swatch("red"), viewBox="0 0 1 1"),)),
    )
    sentences = (HOSTILE,)
    report = Report(title=HOSTILE, where=HOSTILE, headline=sentences, caveats=sentences, blocks=blocks, notes=sentences)
    reader = Reader(html(report))
    assert reader.kinds <= PLAIN
    assert reader.attributes <= HARMLESS | {"fill"}
    assert reader.text.count("alert(1)") == 14


def test_a_block_without_rows_is_left_out_unless_it_has_a_sentence() -> None:
    """A block without rows has its heading only with a sentence below it."""
    text = page(
        Rows(title="Left out", heads=("entity",), rows=()),
        Rows(title="Kept", heads=("entity",), rows=(), empty="No client was throttled."),
    ).text
    assert "Left out" not in text
    assert "Kept|No client was throttled." in text


@pytest.mark.parametrize(("count", "beginning"), [(6, "|#1|#2|"), (7, "candidate|limited|#1 tight|3|")])
def test_few_rows_with_short_heads_are_columns(count: int, beginning: str) -> None:
    """Up to six rows are shown as columns, so that figures of a kind stand side by side."""
    names = [f"#{number}" for number in range(1, count + 1)]
    rows = Rows(heads=("candidate", "#limited"), rows=[(f"{name} tight", "3") for name in names], short=names)
    assert beginning in page(rows).text


def test_csv() -> None:
    """Names are one line and no formula; unknown values are empty, and keys without a column are left out."""
    records: list[dict[str, object]] = [
        {"user": HOSTILE, "amount": None, "topics": {}},
        {"user": "=1+1", "amount": 1.5},
    ]
    first_row, second_row = csv.DictReader(io.StringIO(csv_of(("user", "amount"), records)))
    assert (json.loads(first_row["user"]), first_row["amount"]) == (HOSTILE, "")
    assert (second_row["user"], second_row["amount"]) == ("'=1+1", "1.5")
    assert csv_of(("user", "amount"), []) == "user,amount\n"
