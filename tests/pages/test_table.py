from __future__ import annotations

from xml.etree.ElementTree import tostring

import pytest

from quotascope.pages.markup import element
from quotascope.pages.table import table


def test_columns_have_the_kind_of_their_head() -> None:
    """# is for numbers, = for words of ours, and all else for names; elements may be cells."""
    made = table(("who", "#bytes", "=how"), [("etl", "7", element("b", "full"))])
    assert tostring(made, encoding="unicode") == (
        '<div class="wide"><table>'
        '<thead><tr><th class="name">who</th><th class="number">bytes</th><th class="word">how</th></tr></thead>'
        '<tbody><tr><td class="name">etl</td><td class="number">7</td><td class="word"><b>full</b></td></tr></tbody>'
        "</table></div>"
    )


@pytest.mark.parametrize(
    ("rows", "caption"), [(2, None), (3, "and 1 more"), (2_002, "and 2,000 more")]
)
def test_rows_beyond_the_most_are_counted(rows: int, caption: str | None) -> None:
    """A long table ends with how many there are beside it."""
    made = table(("who",), [("etl",)] * rows, most=2)
    assert len(made.findall(".//tbody/tr")) == 2
    assert made.findtext(".//caption") == caption


def test_row_of_another_length() -> None:
    """A row that does not fit its heads is a mistake, not a crooked table."""
    with pytest.raises(ValueError, match="zip"):
        table(("who", "#bytes"), [("etl",)])


def test_a_hundred_rows_are_shown_if_nothing_is_said() -> None:
    """As many as somebody may look through."""
    made = table(("who",), [("etl",)] * 101)
    assert len(made.findall(".//tbody/tr")) == 100
    assert made.findtext(".//caption") == "and 1 more"
