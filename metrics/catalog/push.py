"""The push over OTLP."""

from __future__ import annotations

from .family import counter

OTLP_EXPORTS = counter(
    "quotascope_otlp_exports_total",
    "Pushes over OTLP by outcome: success, partial when the receiver rejected some points, or failure. Only when one is configured.",
    ("outcome",),
    "exports",
    "the receiver's answers",
)

OTLP_POINTS = counter(
    "quotascope_otlp_points_total",
    "Points pushed over OTLP: accepted, rejected by a receiver that took others, or lost because it was not reached or refused the request. Only when a push is configured.",
    ("outcome",),
    "points",
    "the receiver's answers",
)
