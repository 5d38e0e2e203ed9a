"""The tool that draws dashboards without a Grafana."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tools.pictures.graphs import round_moments, round_ticks
from tools.pictures.page import page
from tools.pictures.prometheus import Prometheus
from tools.pictures.values import color, written

LABELS = {"quota_type": "fetch", "user": "<b>u</b>", "client_id": "c", "cluster": "c1"}


class Answers(Prometheus):
    """A Prometheus that has the same series for every question."""

    def _ask(self, what: str, expression: str, times: Any) -> list[dict[str, Any]]:
        assert not re.search(r"\$\{|\$__|\$cluster", self._filled(expression))
        assert times["end" if what == "query_range" else "time"] == self.end
        point = [self.end, "0.95"]
        key = "value" if what == "query" else "values"
        return [{"metric": LABELS, key: point if what == "query" else [point, point]}]


def test_every_dashboard_is_drawn(dashboards: dict[str, dict[str, Any]]) -> None:
    """Each panel stands on the page, and names of strangers are text, not markup."""
    for dashboard in dashboards.values():
        drawn = page(dashboard, Answers("http://x", 1e9, 30, {"user": "$(x)"}))
        for panel in dashboard["panels"]:
            assert panel["title"].replace("'", "&#x27;") in drawn
        assert "<b>u</b>" not in drawn


def test_no_answer_is_shown_as_such(dashboards: dict[str, dict[str, Any]]) -> None:
    """Gray, not green."""

    class Silent(Answers):
        def _ask(self, *_: Any) -> list[dict[str, Any]]:
            return []

    drawn = page(dashboards["quotascope-overview"], Silent("http://x", 1e9, 30, {}))
    assert drawn.count('class="stat unknown"') == 6


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.0, "percentunit", "0 %"),
        (0.954, "percentunit", "95.4 %"),
        (1_500_000.0, "Bps", "1.5 MB/s"),
        (0.25, "s", "250 ms"),
        (90.0, "s", "1.5 mins"),
        (12.0, "short", "12"),
    ],
)
def test_numbers_have_their_unit(value: float, unit: str, expected: str) -> None:
    """Roughly as Grafana writes them."""
    assert written(value, unit) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 7, [0, 2, 4, 6, 8]),
        (-5, 0, [-6, -4, -2, 0]),
        (-1, 1.3, [-1, 0, 1, 2]),
        (0, 0, [0, 0.25, 0.5, 0.75, 1]),
    ],
)
def test_axes_have_round_values(low: float, high: float, expected: list[float]) -> None:
    """They begin below the lowest line and end above the highest."""
    assert round_ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize("minutes", [1, 8, 30, 60, 24 * 60])
def test_axes_have_round_times(minutes: int) -> None:
    """A few full minutes or hours, none of them outside."""
    start, end = 1e9 + 7, 1e9 + 7 + 60 * minutes
    moments = round_moments(start, end)
    assert 1 <= len(moments) <= 7
    assert start <= moments[0] <= moments[-1] <= end
    assert all(at % 60 == 0 for at in moments)


def test_a_value_has_the_color_of_the_highest_step_that_it_reaches() -> None:
    """The lowest step has no value."""
    steps: list[dict[str, Any]] = [
        {"color": "green", "value": None},
        {"color": "red", "value": 1},
    ]
    assert (color(0.9, steps), color(1, steps)) == ("#73BF69", "#F2495C")
