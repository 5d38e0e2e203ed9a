"""Keeps the number of series in bounds, without making totals wrong and never in silence."""

from .cardinality import Cardinality

__all__ = ["Cardinality"]
