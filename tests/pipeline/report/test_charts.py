from __future__ import annotations

from xml.etree.ElementTree import Element

from quotascope.metrics import QuotaType
from quotascope.pages.charts import Curve, LimitLine
from quotascope.pipeline.rates import GroupUsage, rate
from quotascope.pipeline.report.whatif import _legend


def test_legend_draws_limits_as_the_chart_does() -> None:
    """In the color of the candidate, dashed from the ninth on; equal limits share a line."""
    curve = Curve(begin_ms=0, end_ms=1_000, piece_ms=1_000, times_ms=[0], mean=[1.0], peak=[1.0])
    drawn = GroupUsage(broker="1", usage=curve, by_hour=[])
    limits = [
        LimitLine(name=f"c{n}", value=value, color=n)
        for n, value in ((0, 1_000.0), (7, 2_000.0), (8, 3_000.0), (9, 3_000.0))
    ]
    keys = [
        each
        for each in _legend(drawn, limits, lambda value: rate(QuotaType.PRODUCE, value))
        if isinstance(each, Element)
    ]
    marks = [path for each in keys for path in each.iter("path") if "limit" in path.attrib["class"]]
    assert [(mark.attrib["class"], mark.get("stroke-dasharray")) for mark in marks] == [
        ("limit s0", ""),
        ("limit s7", ""),
        ("limit s1", "6 4"),
    ]
    names = ["".join(each.itertext()).strip() for each in keys]
    assert names == ["used, mean", "peak", "1 kB/s: c0", "2 kB/s: c7", "3 kB/s: c8, c9"]
