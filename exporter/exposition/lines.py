"""The lines of a family: what stands before the values, and no series twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from .series import encodable

LineStart = Callable[[Sequence[str]], bytes]
"""Makes the start of a line of label values."""
Cells = list[bytes]
"""The start of a line and its value, in turns; both empty for a series that is not shown."""


def line_starts(family: str, labels: Sequence[str], cluster: str | None) -> LineStart:
    """
    Return what makes the start of a line of label values: the end of the line before, name and labels.

    Labels are sorted by name, as prometheus_client does.

    Args:
        family: Its name.
        labels: Their names, in the order in which values come.
        cluster: Value of the label ``cluster``, None for no such label.

    """
    fixed = {} if cluster is None else {"cluster": _escaped(cluster).replace("%", "%%")}
    places = {name: place for place, name in enumerate(labels)}
    names = sorted({*labels, *fixed})
    order = [places[name] for name in names if name not in fixed]
    pairs = ",".join(f'{name}="{fixed.get(name, "%s")}"' for name in names)
    template = f"\n{family}{{{pairs}}} " if names else f"\n{family} "

    def start(values: Sequence[str]) -> bytes:
        text = template % tuple([_escaped(values[place]) for place in order])
        return text.encode()

    return start


def distinct(cells: Cells) -> Cells:
    """Each series once: where it first comes, with its first value."""
    starts, values = cells[::2], cells[1::2]
    once = dict.fromkeys(starts)
    if len(once) == len(starts):
        return cells
    first = dict(zip(reversed(starts), reversed(values), strict=True))
    return list(chain.from_iterable((start, first[start]) for start in once))


def _escaped(label: str) -> str:
    text = encodable(label).replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace('"', '\\"')
