"""The exporter: built from a configuration, run, and swapped to another configuration while it runs."""

from .exporter import Exporter
from .parts import Parts, build_parts
from .reload import Reloader

__all__ = ["Exporter", "Parts", "Reloader", "build_parts"]
