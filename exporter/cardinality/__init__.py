"""Keeps the number of series in bounds: totals stay right, and each entity that is not shown is counted."""

from .cardinality import Cardinality

__all__ = ["Cardinality"]
