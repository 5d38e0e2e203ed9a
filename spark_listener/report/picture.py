"""The timeline as a PNG, where matplotlib is (the extra plots)."""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from quotascope.pages.files import put
from quotascope.pages.words import seconds, shown

from .account import Account
from .colours import CAUSES, FAILED_STAGE, STAGE, THROTTLED
from .errors import ReportError
from .tables import headline
from .timeline import Lane, Timeline, ticks, timeline
from .totals import causes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_MOST_LANES = 25
_WIDTH, _DPI = 13.0, 120
_ROW, _EDGES = 0.2, 1.6
_BAR, _GAP = 0.8, 0.6
_VISIBLE = 0.005
"""Bars that are shorter, as a part of the whole, are drawn without an edge, or there would be nothing of them."""


def write_picture(account: Account, path: Path) -> None:
    """Draw the timeline. Raises `ReportError` where matplotlib is missing or the file cannot be written."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - the extra plots
    except ImportError as error:
        raise ReportError(
            "a picture needs matplotlib: pip install 'quotascope[plots]'"
        ) from error
    drawn = timeline(account, _MOST_LANES)
    rows = sum(1 + len(lane.failed) + _GAP for lane in drawn.lanes)
    figure = Figure(
        figsize=(_WIDTH, _EDGES + rows * _ROW), dpi=_DPI, layout="constrained"
    )
    axes = figure.subplots()
    _draw(axes, drawn)
    title = f"{shown(account.app) or 'A Spark job'}\n{headline(account)}"
    axes.set_title(title, loc="left", fontsize=10, parse_math=False)
    handles, labels = _legend(account)
    figure.legend(
        handles, labels, loc="outside lower left", ncols=6, fontsize=8, frameon=False
    )
    with warnings.catch_warnings():  # a name may hold what no font here has
        warnings.simplefilter("ignore", UserWarning)
        drawing = BytesIO()
        figure.savefig(drawing, format="png")
    try:
        put(path, drawing.getvalue())
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from error


def _draw(axes: Axes, drawn: Timeline) -> None:
    top, marks = 0.0, []
    for lane in drawn.lanes:
        marks.append((top, lane.label))
        _lane(axes, lane, top, drawn.seconds)
        top += 1 + len(lane.failed) + _GAP
    axes.set_yticks([place for place, _ in marks])
    axes.set_yticklabels([name for _, name in marks], fontsize=8, parse_math=False)
    times = ticks(drawn.seconds)
    axes.set_xticks(times, [f"+{seconds(time)}" if time else "0" for time in times], fontsize=8)  # fmt: skip
    axes.set_xlim(0, drawn.seconds)
    axes.set_ylim(top, -1)
    axes.grid(axis="x", color="#d9dfe6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)


def _lane(axes: Axes, lane: Lane, top: float, whole: float) -> None:
    for row, spans in enumerate((lane.work, *lane.failed)):
        for span in spans:
            took = span.ended - span.began
            edge = "white" if took > whole * _VISIBLE else span.colour
            axes.barh(
                top + row,
                took,
                _BAR,
                span.began,
                color=span.colour,
                edgecolor=edge,
                linewidth=0.8,
            )
            if span.throttled:
                axes.barh(top + row + 0.2, span.throttled, 0.35, span.began, color=THROTTLED)  # fmt: skip


def _legend(account: Account) -> tuple[list[Artist], list[str]]:
    from matplotlib.patches import Patch  # noqa: PLC0415 - as above

    keys = {"stage or batch": STAGE, "failed stage": FAILED_STAGE}
    keys |= {
        cause.value: CAUSES[cause] for cause, failed, _ in causes(account) if failed
    }
    if any(attempt.throttled_ms for attempt in account.attempts):
        keys["told to wait, as noted"] = THROTTLED
    return [Patch(color=colour) for colour in keys.values()], list(keys)
