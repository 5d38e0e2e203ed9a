"""From a snapshot to what Prometheus reads."""

from .renderer import Renderer
from .rows import own_version
from .text import (
    OPENMETRICS,
    TEXT,
    SnapshotCollector,
    TextFormat,
    accepts_gzip,
    choose_format,
    exposition,
    gzipped,
)

__all__ = [
    "OPENMETRICS",
    "TEXT",
    "Renderer",
    "SnapshotCollector",
    "TextFormat",
    "accepts_gzip",
    "choose_format",
    "exposition",
    "gzipped",
    "own_version",
]
