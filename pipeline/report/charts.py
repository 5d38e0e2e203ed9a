"""The usage of one group of clients beside its limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from xml.etree.ElementTree import Element

from quotascope.pages.markup import Child, element
from quotascope.pages.words import shown

from .heat_map import heat_map
from .line_chart import Limit, line_chart
from .rollups import Drawn
from .style import SERIES
from .summary import GroupSummary
from .words import rate, who

_WEEK = "The highest peak in each hour of the week; grey hours are not in the history"


def group_section(
    summary: GroupSummary, drawn: Drawn, colours: Mapping[str, int], zone: tzinfo
) -> Iterator[Element]:
    """
    A heading, a line chart with its legend, and a heat map.

    Args:
        summary: the group and its limits by candidate.
        drawn: what it used.
        colours: number of each candidate.
        zone: whose clock is written below the time axis.

    """
    group = summary.group
    limits = [
        Limit(name=name, value=value, colour=colours[name])
        for name, value in summary.limits.items()
    ]
    chart, left_out = line_chart(group.kind, drawn.usage, limits, zone)
    yield element("h3", f"{who(group.user, group.client_id)}: {group.kind.label}")
    yield element("p", f"on broker {shown(drawn.broker)}", class_="where")
    yield element("p", *_legend(summary, drawn, limits), class_="legend")
    yield chart
    for limit in left_out:
        told = f"Far above: {shown(limit.name)}, {rate(group.kind, limit.value)}"
        yield element("p", told, class_="where")
    yield element("p", _WEEK, class_="where above")
    yield heat_map(drawn.by_hour, lambda value: rate(group.kind, value), _WEEK)


def _legend(
    summary: GroupSummary, drawn: Drawn, limits: Sequence[Limit]
) -> Iterator[Child]:
    if drawn.usage.mean:
        yield _key("used, mean", element("path", class_="mean", d="M0 5H22"))
    yield _key("peak", element("rect", class_="peak", width=22, height=10))
    by_value: dict[float, list[Limit]] = {}
    for limit in limits:
        by_value.setdefault(limit.value, []).append(limit)
    for value, alike in by_value.items():
        last = alike[-1]  # drawn above the others
        dashes = "" if last.colour < SERIES else "6 4"
        mark = element("path", class_=f"limit s{last.colour % SERIES}", d="M0 5H22", stroke_dasharray=dashes)  # fmt: skip
        names = ", ".join(shown(limit.name, 60) for limit in alike)
        yield _key(f"{rate(summary.group.kind, value)}: {names}", mark)


def _key(name: str, mark: Element) -> Element:
    svg = element("svg", mark, class_="key", viewBox="0 0 22 10")
    return element("span", svg, f" {name}")
