"""The push over OTLP."""

from __future__ import annotations

from .family import counter

OTLP_EXPORTS = counter(
    "quotascope_otlp_exports_total",
    "Pushes over OTLP by outcome: success, partial (some points rejected) or failure; absent without OTLP.",
    ("outcome",),
    "exports",
    "the receiver's answers",
)

OTLP_POINTS = counter(
    "quotascope_otlp_points_total",
    "Points pushed over OTLP by outcome: accepted, rejected or lost; absent without OTLP.",
    ("outcome",),
    "points",
    "the receiver's answers",
)
