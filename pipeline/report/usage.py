"""What an entity used over time, in as many pieces as a drawing has room for."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType
from quotascope.pages.charts import Curve

PIECES: Final = 360
_SECOND: Final = 1_000
_WINDOWS: Final = 11
"""Seconds over which a broker averages by default (`quota.window.num` of `quota.window.size.seconds`)."""
_SCALES: Final = {QuotaType.REQUEST: 1e-4}
"""From what a roll-up counts to what a limit is in: us of thread time a second are that many percent of a thread."""


def usage(
    kind: QuotaType,
    starts_ms: NDArray[np.int64],
    amounts: NDArray[np.int64],
    span_ms: tuple[int, int],
) -> Curve:
    """
    Usage from the seconds of a roll-up; its peaks are the highest of `peaks`, its rates in the unit of the quota type.

    Args:
        kind: gives the unit.
        starts_ms: when the seconds begin, in order; those without usage are missing.
        amounts: what was used in each, as `quotascope.pipeline.history.schema.ROLLUP` counts.
        span_ms: the beginning and the end of what is drawn.

    """
    begin, end = span_ms
    begin -= begin % _SECOND
    piece = _piece(end - begin)
    pieces, first = np.unique((starts_ms - begin) // piece, return_index=True)
    sums = np.add.reduceat(_rates(kind, amounts), first)
    means = (sums * (_SECOND / piece)).tolist()
    highest = np.maximum.reduceat(peaks(kind, starts_ms, amounts), first)
    return Curve(
        begin_ms=begin,
        end_ms=max(end, begin + piece),
        piece_ms=piece,
        times_ms=(begin + pieces * piece).tolist(),
        mean=means if piece >= _WINDOWS * _SECOND else (),
        peak=highest.tolist(),
    )


def peaks(
    kind: QuotaType, starts_ms: NDArray[np.int64], amounts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """For each second the mean rate over the 11 s that end with it: about what a broker compares with a limit."""
    total = np.concatenate(([0.0], np.cumsum(_rates(kind, amounts))))
    oldest = np.searchsorted(starts_ms, starts_ms - (_WINDOWS - 1) * _SECOND)
    sums: NDArray[np.float64] = total[1:] - total[oldest]
    return (np.maximum(sums, 0.0) / _WINDOWS).astype(np.float64)


def _rates(kind: QuotaType, amounts: NDArray[np.int64]) -> NDArray[np.float64]:
    return (amounts * _SCALES.get(kind, 1.0)).astype(np.float64)


def _piece(length_ms: int) -> int:
    """Whole seconds."""
    return max(1, -(-length_ms // (PIECES * _SECOND))) * _SECOND
