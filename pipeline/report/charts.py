"""The usage of one group of clients beside its limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from xml.etree.ElementTree import Element

from quotascope.pages.charts import Format, LimitLine, heat_map, key, line_chart
from quotascope.pages.markup import Child, element
from quotascope.pages.words import shown

from .summary import GroupSummary
from .usage import GroupUsage
from .words import rate, who

_WEEK = "The highest peak in each hour of the week; gray hours are not in the history"


def group_section(
    summary: GroupSummary, drawn: GroupUsage, colors: Mapping[str, int], zone: tzinfo
) -> Iterator[Element]:
    """
    A heading, a line chart with its legend, and a heat map.

    Args:
        summary: the group and its limits by candidate.
        drawn: its usage.
        colors: number of the color of each candidate.
        zone: time zone of the labels below the time axis.

    """
    group = summary.group
    unit = partial(rate, group.kind)
    limits = [
        LimitLine(name=name, value=value, color=colors[name])
        for name, value in summary.limits.items()
    ]
    chart, left_out = line_chart(drawn.usage, limits, unit, zone)
    yield element("h3", f"{who(group.user, group.client_id)}: {group.kind.label}")
    yield element("p", f"on broker {shown(drawn.broker)}", class_="where")
    yield element("p", *_legend(drawn, limits, unit), class_="legend")
    yield chart
    for limit in left_out:
        text = f"Far above: {shown(limit.name)}, {unit(limit.value)}"
        yield element("p", text, class_="where")
    yield element("p", _WEEK, class_="where above")
    yield heat_map(drawn.by_hour, unit, _WEEK)


def _legend(
    drawn: GroupUsage, limits: Sequence[LimitLine], unit: Format
) -> Iterator[Child]:
    if drawn.usage.mean:
        yield key("used, mean", element("path", class_="mean", d="M0 5H22"))
    yield key("peak", element("rect", class_="peak", width=22, height=10))
    by_value: dict[float, list[LimitLine]] = {}
    for limit in limits:
        by_value.setdefault(limit.value, []).append(limit)
    for value, alike in by_value.items():
        names = ", ".join(shown(limit.name, 60) for limit in alike)
        mark = alike[-1].mark(d="M0 5H22")  # the last is drawn above the others
        yield key(f"{unit(value)}: {names}", mark)
