"""Writes a snapshot in the text formats of Prometheus."""

from .rows import own_version
from .text import OPENMETRICS, TEXT, Renderer, TextFormat, accepts_gzip, choose_format, gzipped

__all__ = ["OPENMETRICS", "TEXT", "Renderer", "TextFormat", "accepts_gzip", "choose_format", "gzipped", "own_version"]
