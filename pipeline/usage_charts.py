"""Charts of what groups of clients used, beside their limits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.metrics.kafka.entities import QuotaType, spelled
from quotascope.pages.charts import Format, LimitLine, heat_map, key, line_chart, peak_kind
from quotascope.pages.markup import Child, element
from quotascope.pages.report import Chart
from quotascope.pages.words import shown, spaced

from .rates import GroupUsage, LimitGroup, rate

CHARTS: Final = 12
"""Number of groups that a page draws."""
CHART_NOTES: Final = (
    (
        "The area is the highest mean over 11 s, which is about what a broker compares with its limit; a controller "
        "mutation quota lets a burst above it pass. The line is the mean."
    ),
    "Where a chart is empty, no request was logged: the client was idle, or the log has a gap.",
)
"""The meaning of these charts, a sentence or two each."""
_WEEK: Final = "The highest peak in each hour of the week; gray hours are not in the history"
_FEWEST_HOURS: Final = 6
"""Least number of hours of the week with requests for which a map of the hours is drawn."""


def same_for_all(limits: Mapping[str, float], candidates: Collection[str]) -> bool:
    """Return whether several candidates limit a group, all of them alike: its chart does not tell them apart."""
    return len(candidates) > 1 and len(limits) == len(candidates) and len(set(limits.values())) == 1


def usage_chart(
    group: LimitGroup, limits: Mapping[str, float], drawn: GroupUsage, colors: Mapping[str, int], zone: tzinfo
) -> Chart:
    """
    Draw the usage of a group and its limits over time, and a map of the hours of the week.

    The map is drawn if at least six hours have requests. The chart is folded if all candidates have the same limit.

    Args:
        group: clients that share a limit.
        limits: limits of the group, by candidate.
        drawn: usage of the group.
        colors: number of the color of each candidate, in the order of the legend.
        zone: time zone of the labels below the time axis.

    """
    return Chart(
        title=f"{spelled(group.user, group.client_id)}: {spaced(group.kind.label)}",
        level=3,
        elements=list(_elements(group, limits, drawn, colors, zone)),
        folded=same_for_all(limits, colors),
    )


def _elements(
    group: LimitGroup, limits: Mapping[str, float], drawn: GroupUsage, colors: Mapping[str, int], zone: tzinfo
) -> Iterator[Element]:
    """Yield what `usage_chart` draws: broker, legend, chart, limits above the chart, and the map of hours."""
    unit = partial(rate, group.kind)
    lines = [LimitLine(name=name, value=limits[name], color=color) for name, color in colors.items() if name in limits]
    together = same_for_all(limits, colors)
    chart, left_out = line_chart(drawn.usage, lines, unit, zone)
    node = "controller" if group.kind is QuotaType.CONTROLLER_MUTATION else "broker"
    yield element("p", f"on {node} {shown(drawn.broker)}", class_="where")
    yield element("p", *legend(drawn, lines, unit, together=together), class_="legend")
    yield chart
    for value, same_limits in _by_value(left_out).items():
        yield element("p", f"Far above: {_names(same_limits, together=together)}, {unit(value)}", class_="where")
    if sum(map(math.isfinite, drawn.by_hour)) >= _FEWEST_HOURS:
        yield element("p", _WEEK, class_="where above")
        yield heat_map(drawn.by_hour, unit, _WEEK)


def legend(drawn: GroupUsage, limits: Sequence[LimitLine], unit: Format, *, together: bool = False) -> Iterator[Child]:
    """Yield the entries of the legend, one for all equal limits; with `together`, it names them all by their number."""
    if drawn.usage.mean:
        yield key("used, mean", element("path", class_="mean", d="M0 5H22"))
    yield key("peak", element("rect", class_=peak_kind(drawn.usage), width=22, height=10))
    for value, same_limits in _by_value(limits).items():
        mark = same_limits[-1].mark(d="M0 5H22")  # the last is drawn above the others
        yield key(f"{unit(value)}: {_names(same_limits, together=together)}", mark)


def _by_value(limits: Sequence[LimitLine]) -> Mapping[float, Sequence[LimitLine]]:
    """Return limits by their value, in their order."""
    by_value: dict[float, list[LimitLine]] = {}
    for limit in limits:
        by_value.setdefault(limit.value, []).append(limit)
    return by_value


def _names(limits: Sequence[LimitLine], *, together: bool) -> str:
    """Return the names of the candidates of equal limits; with `together`, their number."""
    return f"all {len(limits)} candidates" if together else ", ".join(shown(limit.name, 60) for limit in limits)
