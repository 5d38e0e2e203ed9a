"""How evenly brokers carry the same load."""

from __future__ import annotations

from typing import Final

import numpy as np

from .layout import Floats

_TWO: Final = 2
"""Fewest brokers that can be compared."""


def jain_index(usage: Floats, brokers: int) -> Floats:
    """
    Return Jain's index of each row: 1 if all brokers have the same usage, 1 / brokers if one broker has all of it.

    Args:
        usage: Usage by row and broker; float64. Brokers without a column have no usage.
        brokers: Number of all brokers.

    Returns:
        float64 by row; NaN for fewer than two brokers, for a row without usage, and for a row with a NaN.

    >>> jain_index(np.array([[5.0, 5.0], [10.0, 0.0], [0.0, 0.0]]), 4).tolist()
    [0.5, 0.25, nan]

    """
    if brokers < _TWO or not usage.size:
        return np.full(len(usage), np.nan)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        index = np.square(usage.sum(axis=1)) / (brokers * np.square(usage).sum(axis=1))
    return np.where(np.isfinite(index) & (usage > 0).any(axis=1), index, np.nan)
