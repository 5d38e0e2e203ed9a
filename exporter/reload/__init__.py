"""Reading the configuration again while the exporter runs."""

from .reloader import Reloader

__all__ = ["Reloader"]
