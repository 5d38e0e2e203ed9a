"""The addresses of the parts before and after the one that is shown."""

from __future__ import annotations

import pytest
from tests.exporter.examples import snapshot, usage

from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.page.query import read_query
from quotascope.exporter.page.view import view_of


@pytest.mark.parametrize(
    ("offset", "size", "before", "following"),
    [
        (0, 10, None, "?show=all&offset=10&size=10"),
        (4, 10, "?show=all&size=10", "?show=all&offset=14&size=10"),
        (10, 10, "?show=all&size=10", "?show=all&offset=20&size=10"),
        (25, 10, "?show=all&offset=15&size=10", None),
        (19, 10, "?show=all&offset=9&size=10", "?show=all&offset=29&size=10"),
        (20, 10, "?show=all&offset=10&size=10", None),
        (0, 30, None, None),
        (0, 29, None, "?show=all&offset=29&size=29"),
    ],
)
def test_parts(
    offset: int, size: int, before: str | None, following: str | None
) -> None:
    """Of thirty; the first has none before it, the last none after it, and none begins before the first."""
    shown = snapshot(*(usage(user=f"user-{number:02}") for number in range(30)))
    given = {"show": "all", "offset": str(offset), "size": str(size)}
    view = view_of(shown, Trails(), read_query(given))
    assert view.total == 30
    assert len(view.rows) == min(size, 30 - offset)
    assert (view.before, view.following) == (before, following)
