"""The metrics that a Collector got, as it writes them."""

from __future__ import annotations

from typing import Any

from tests.collector.collector import Collector
from tests.exporter.otlp.messages import Key, translated


def received(collector: Collector) -> list[dict[str, Any]]:
    return [
        metric
        for request in collector.requests()
        for resource in request["resourceMetrics"]
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    ]


def series(collector: Collector) -> dict[Key, float]:
    series: dict[Key, float] = {}
    for metric in received(collector):
        name = translated(metric["name"], metric.get("unit", ""), counts="sum" in metric)
        for point in (metric.get("gauge") or metric["sum"])["dataPoints"]:
            pairs = {pair["key"]: pair["value"]["stringValue"] for pair in point["attributes"]}
            key = (name, tuple(sorted(pairs.items())))
            assert key not in series
            series[key] = point["asDouble"]
    assert series
    return series
