"""Where utilisation goes when it goes on like this: the same guess for alerts and dashboards."""

from __future__ import annotations

from typing import Final

from .promql import call

WINDOW: Final = "6h"
"""The past that the trend is taken from."""


def in_three_hours(history: str) -> str:
    """
    What some series will be in three hours.

    >>> in_three_hours("up[6h]")
    'predict_linear(up[6h], 3 * 3600)'
    """
    return call("predict_linear", history, "3 * 3600")
