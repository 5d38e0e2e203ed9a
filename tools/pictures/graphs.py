"""Lines over time, as SVG."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from .prometheus import Prometheus, Series
from .values import COLORS, PALETTE, written

LEFT, RIGHT, BOTTOM, TOP = 62, 10, 18, 6
_LEGEND_LINE = 17
_TICKS = 4
_ROUND = (1, 2, 2.5, 5, 10)
_MOMENTS = 6
_ROUND_SECONDS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400, 604800)


@dataclass
class Line:
    """A named line."""

    name: str
    points: list[tuple[float, float]]
    is_limit: bool
    color: str
    last: float = math.nan


def graph(
    panel: Mapping[str, Any], prometheus: Prometheus, size: tuple[int, int]
) -> str:
    """A panel of lines."""
    lines = list(_lines(panel, prometheus))
    if not any(line.points for line in lines):
        return '<p class="none">No data</p>'
    defaults = panel["fieldConfig"]["defaults"]
    stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    if stacked:
        lines = _stacked(lines)
    legend_rows = min(len(lines), 6)
    plot = _Plot(size[0], size[1] - legend_rows * _LEGEND_LINE, lines, prometheus)
    unit = defaults["unit"]
    drawn = "".join(
        (*plot.axes(unit), *plot.thresholds(defaults), *plot.paths(stacked=stacked))
    )
    svg = f'<svg width="{plot.width}" height="{plot.height}">{drawn}</svg>'
    highest = sorted(lines, key=lambda line: not line.last > 0)
    return svg + _legend(highest[:legend_rows], unit)


def _lines(panel: Mapping[str, Any], prometheus: Prometheus) -> Iterator[Line]:
    limits = {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]}
    count = 0
    for target in panel["targets"]:
        for series in prometheus.over_time(target["expr"]):
            is_limit = target["refId"] in limits
            shade = COLORS["red"] if is_limit else PALETTE[count % len(PALETTE)]
            count += not is_limit
            name = _name(target["legendFormat"], series["metric"])
            points = _points(series)
            last = points[-1][1] if points else math.nan
            yield Line(name, points, is_limit, shade, last)


def _points(series: Series) -> list[tuple[float, float]]:
    numbers = ((at, float(value)) for at, value in series["values"])
    return [(at, value) for at, value in numbers if math.isfinite(value)]


def _name(legend: str, labels: Mapping[str, str]) -> str:
    for part in legend.split("{{")[1:]:
        label = part.partition("}}")[0]
        legend = legend.replace(f"{{{{{label}}}}}", labels.get(label, ""))
    return legend.strip()


def _stacked(lines: Iterable[Line]) -> list[Line]:
    total: dict[float, float] = {}
    stacked = []
    for line in lines:
        points = []
        for at, value in line.points:
            total[at] = total.get(at, 0) + value
            points.append((at, total[at]))
        stacked.append(replace(line, points=points))
    return stacked


def round_ticks(low: float, high: float) -> list[float]:
    """
    Round values, some four steps from one below the lowest to one above the highest.

    >>> round_ticks(0, 7), round_ticks(-1, 1.3), round_ticks(0, 0)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [-1.0, 0.0, 1.0, 2.0], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / _TICKS))
    step = next(each for each in _ROUND if each * power * _TICKS >= span) * power
    first, last = math.floor(low / step), math.ceil((low + span) / step)
    return [number * step for number in range(first, last + 1)]


def round_moments(start: float, end: float) -> list[float]:
    """
    At most six round times between two.

    >>> round_moments(30, 330)
    [60, 120, 180, 240, 300]
    """
    step = next(each for each in _ROUND_SECONDS if (end - start) / each <= _MOMENTS)
    first = math.ceil(start / step) * step
    return [first + step * number for number in range(int((end - first) // step) + 1)]


class _Plot:
    def __init__(
        self, width: int, height: int, lines: Sequence[Line], prometheus: Prometheus
    ) -> None:
        self.width, self.height = width, height
        self._lines, self._prometheus = lines, prometheus
        values = [value for line in lines for _, value in line.points]
        self._ticks = round_ticks(min(0, *values), max(0, *values))
        self._low, self._high = self._ticks[0], self._ticks[-1]

    def _x(self, at: float) -> float:
        share = (at - self._prometheus.start) / (60 * self._prometheus.minutes)
        return LEFT + share * (self.width - LEFT - RIGHT)

    def _y(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return self.height - BOTTOM - share * (self.height - BOTTOM - TOP)

    def axes(self, unit: str) -> Iterator[str]:
        """Grid, values at the left, times below."""
        for value in self._ticks:
            y = self._y(value)
            yield f'<line x1="{LEFT}" x2="{self.width - RIGHT}" y1="{y}" y2="{y}" class="grid"/>'
            yield f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{written(value, unit)}</text>'
        for at in round_moments(self._prometheus.start, self._prometheus.end):
            clock = time.strftime("%H:%M", time.localtime(at))
            yield f'<text x="{self._x(at)}" y="{self.height - 3}" text-anchor="middle">{clock}</text>'

    def thresholds(self, defaults: Mapping[str, Any]) -> Iterator[str]:
        """Dashed lines where the alerts' thresholds are, as far as they are in view."""
        if defaults["custom"]["thresholdsStyle"]["mode"] == "off":
            return
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is not None and step["value"] <= self._high:
                y, shade = self._y(step["value"]), COLORS[step["color"]]
                yield f'<line x1="{LEFT}" x2="{self.width - RIGHT}" y1="{y}" y2="{y}" stroke="{shade}" stroke-dasharray="6 4" opacity="0.7"/>'

    def paths(self, *, stacked: bool) -> Iterator[str]:
        """The lines, those below last so that areas do not hide them."""
        for line in reversed(self._lines):
            if not line.points:
                continue
            ways = " ".join(
                f"{self._x(at):.1f},{self._y(value):.1f}" for at, value in line.points
            )
            dash = ' stroke-dasharray="8 6"' if line.is_limit else ""
            yield f'<polyline points="{ways}" fill="none" stroke="{line.color}" stroke-width="1.5"{dash}/>'
            if not line.is_limit:
                first, last = self._x(line.points[0][0]), self._x(line.points[-1][0])
                base = self._y(max(self._low, 0))
                opacity = 0.4 if stacked else 0.08
                yield f'<polygon points="{first},{base} {ways} {last},{base}" fill="{line.color}" opacity="{opacity}"/>'


def _legend(lines: Iterable[Line], unit: str) -> str:
    entries = (
        f'<div class="legend"><span style="color:{line.color}">{"┅" if line.is_limit else "━"}</span> '
        f"{escape(line.name[:90])}<b>{written(line.last, unit)}</b></div>"
        for line in lines
    )
    return "".join(entries)
